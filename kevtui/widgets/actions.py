"""Actions from the key to the result: one row each, with its id, until its end has been in sight for a while."""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from textual.message import Message

from kevtui import format as figures
from kevtui import glyphs
from kevtui.actions.verbs import VERBS, Weight
from kevtui.observe.snapshot import Snapshot
from kevtui.widgets.ink import Ink
from kevtui.widgets.line import Line, Role
from kevtui.widgets.painting import Painting, Row, View
from kevtui.widgets.panel import Panel

if TYPE_CHECKING:
    from kevtui.actions.hands import Hands
    from kevtui.actions.sight import Eyes, SeenAction, Sight

POLL_S = 0.5
"""Between two looks while something is under way here."""

RESULT_S = 60.0
"""What came to nothing stays in sight for this long."""

WAITING, STARTING, REFUSED, TAKEN_BACK = "waiting", "starting", "refused", "taken back"

_LOOKS = {
    WAITING: (glyphs.IDLE, Role.WARN),
    STARTING: (glyphs.IDLE, Role.ACCENT),
    "pending": (glyphs.HALF, Role.ACCENT),
    "done": (glyphs.GOOD, Role.GOOD),
    TAKEN_BACK: (glyphs.NOTHING, Role.DIM),
}


@dataclass
class OwnAction:
    """One action that was agreed to here, until it is on record."""

    verb: str
    target: str
    state: str
    options: tuple[str, ...] = ()
    until: float = 0.0
    """When the waiting ends, or when the row goes; monotonic seconds."""
    text: str = ""
    id: str = ""

    @property
    def key(self) -> str:
        return f"{self.verb} {self.target}"


class ActionsPanel(Panel, can_focus=True):
    """Looks at what is on record, from a thread; and, where there are hands, acts."""

    class Looked(Message):
        """A look came back; None where it failed."""

        def __init__(self, sight: "Sight | None", trouble: str = "") -> None:
            self.sight = sight
            self.trouble = trouble
            super().__init__()

    class ControlChanged(Message):
        """Control was gained or lost, or is asked for."""

        def __init__(self, sight: "Sight") -> None:
            self.sight = sight
            super().__init__()

    class RowsChanged(Message):
        """There are more rows, or fewer."""

    class Refused(Message):
        """An action was not started; the report says why."""

        def __init__(self, report: dict[str, Any]) -> None:
            self.report = report
            super().__init__()

    def __init__(self, ink: Ink, *, id: str, open_eyes: "Callable[[], Eyes] | None") -> None:  # noqa: A002
        super().__init__(ink, id=id)
        self._open_eyes = open_eyes
        self._eyes: Eyes | None = None
        self._looking = False
        self._sight: Sight | None = None
        self._own: dict[str, OwnAction] = {}
        self._quick: Any = None

    # ------------------------------------------------------------------------------------------------------ looking

    def show(self, snapshot: Snapshot) -> None:
        if snapshot.replay is None:
            # What is under way is of now, whatever moment is looked at.
            self.snapshot = snapshot
            self.look()

    def look(self) -> None:
        """Look again, unless a look is under way: one that hangs on a dead disk is not joined by a second."""
        if self._open_eyes is None or self._looking or self.snapshot is None:
            return
        self._looking = True
        threading.Thread(target=self._look, args=(self.snapshot.session,), name="look", daemon=True).start()

    def _look(self, session: str | None) -> None:
        sight, trouble = None, ""
        try:
            if self._eyes is None and self._open_eyes is not None:
                self._eyes = self._open_eyes()
            if self._eyes is not None:
                sight = self._eyes.look(session)
        except Exception as error:
            # A look that fails is told and made again; the screen goes on.
            trouble = str(error)
        with suppress(Exception):  # the screen is gone
            self.post_message(self.Looked(sight, trouble))

    def on_actions_panel_looked(self, message: Looked) -> None:
        self._looking = False
        if message.sight is None:
            return
        before, self._sight = self._sight, message.sight
        on_record = {seen.id for seen in message.sight.actions}
        for key in [key for key, own in self._own.items() if own.state == STARTING and own.id in on_record]:
            del self._own[key]
        told = before and (before.mine, before.holder, before.asked, before.trouble)
        sight = message.sight
        if told != (sight.mine, sight.holder, sight.asked, sight.trouble):
            self.post_message(self.ControlChanged(sight))
        self._rows_may_have_changed()

    def _hurry(self) -> None:
        """Look often while something is under way, and not otherwise."""
        busy = any(own.state in (WAITING, STARTING) for own in self._own.values()) or any(
            seen.state == "pending" for seen in self._seen
        )
        if busy and self._quick is None:
            self._quick = self.set_interval(POLL_S, self._quick_look)
        elif not busy and self._quick is not None:
            self._quick.stop()
            self._quick = None

    def _quick_look(self) -> None:
        for own in list(self._own.values()):
            if own.state == WAITING and monotonic() >= own.until:
                self._start(own)
        self._repaint_rows()
        self.look()

    # ------------------------------------------------------------------------------------------------------- acting

    @property
    def hands(self) -> "Hands | None":
        """What acts, while this dashboard has control."""
        return self._able if self._sight is not None and self._sight.mine else None

    @property
    def _able(self) -> "Hands | None":
        # Not asked by its class: a dashboard that only looks does not even load that.
        return cast("Hands", self._eyes) if self._eyes is not None and self._eyes.may_act else None

    def ask_or_give(self, session: str | None) -> str:
        """Ask for control, or give it; what was done, for a person. Waits for a disk: call it from a thread."""
        if self._able is None:
            return "nothing may be changed from here"
        try:
            return self._able.ask_or_give(session)
        except OSError as error:
            return f"cannot ask for control: {error.strerror or error}"

    @property
    def waits(self) -> bool:
        """Whether something was confirmed that can still be taken back."""
        return any(own.state == WAITING for own in self._own.values())

    def under_way(self, verb: str, target: str | None) -> str:
        """What is going on with that action already, or ""."""
        for own in self._own.values():
            if own.state in (WAITING, STARTING) and own.verb == verb and own.target in (target or "", ""):
                return own.state
        same = [seen for seen in self._seen if seen.verb == verb and seen.target == (target or seen.target)]
        seen = [seen for seen in same if seen.state == "pending"]
        return f"pending as {seen[0].id}" if seen else ""

    def agree(self, verb: str, target: str, options: Sequence[str]) -> None:
        """Do it, once the time is over in which it can be taken back. A safe one is done at once."""
        hands = self.hands
        if hands is None or self.under_way(verb, target):
            return
        wait_s = 0.0 if VERBS[verb].weight is Weight.SAFE else hands.undo_window_s
        own = OwnAction(verb, target, WAITING, tuple(options), until=monotonic() + wait_s)
        self._own[own.key] = own
        if wait_s <= 0:
            self._start(own)
        self._rows_may_have_changed()

    def take_back(self) -> bool:
        """Take back everything that still waits. Returns whether anything did."""
        waiting = [own for own in self._own.values() if own.state == WAITING]
        for own in waiting:
            self._end(own, TAKEN_BACK, "nothing was done")
        return bool(waiting)

    def clear(self) -> bool:
        """Put away what came to nothing. Returns whether there was anything."""
        over = [key for key, own in self._own.items() if own.state in (REFUSED, TAKEN_BACK)]
        for key in over:
            del self._own[key]
        self._rows_may_have_changed()
        return bool(over)

    def _start(self, own: OwnAction) -> None:
        own.state = STARTING
        hands = self.hands
        if hands is None:
            self._end(own, REFUSED, "control went to somebody else; nothing was done")
            return
        self.run_worker(self._carry_out(hands, own), exit_on_error=False)

    async def _carry_out(self, hands: "Hands", own: OwnAction) -> None:
        try:
            report = await hands.do(own.verb, own.target or None, own.options)
        except OSError as error:
            report = {"state": "refused", "text": f"cannot be started: {error.strerror or error}"}
        state = report.get("state")
        if state in ("pending", "done", "failed", "interrupted"):
            own.id = str(report.get("id", ""))
            if report.get("repeated"):
                own.text = "was accepted before, and is shown again"
        else:
            self._end(own, REFUSED if state != "nothing to do" else TAKEN_BACK, str(report.get("text") or state))
            self.post_message(self.Refused(report))
        self.look()
        self._rows_may_have_changed()

    def _end(self, own: OwnAction, state: str, text: str) -> None:
        own.state, own.text, own.until = state, text, monotonic() + RESULT_S
        self._rows_may_have_changed()

    # ----------------------------------------------------------------------------------------------------- painting

    @property
    def _seen(self) -> "tuple[SeenAction, ...]":
        return self._sight.actions if self._sight is not None else ()

    def has_nothing(self, snapshot: Snapshot) -> bool:  # noqa: ARG002
        return not self._own and not self._seen

    def seen(self, key: str) -> "SeenAction | None":
        """The action on record whose row is called `key`."""
        return next((seen for seen in self._seen if seen.id == key), None)

    def _rows_may_have_changed(self) -> None:
        now = monotonic()
        for key in [key for key, own in self._own.items() if own.state in (REFUSED, TAKEN_BACK) and now > own.until]:
            del self._own[key]
        self._hurry()
        self._repaint_rows()

    def _repaint_rows(self) -> None:
        before = len(self._painting.rows)
        self.repaint()
        if len(self._painting.rows) != before:
            self.post_message(self.RowsChanged())

    def _make_painting(self) -> Painting:
        view = View(self.content_size.width, self.content_size.height, self.ink, self.filter, self.narrow)
        own = [Row.of(_own_line(own, view), f"own {key}") for key, own in self._own.items()]
        return Painting([*own, *(Row.of(_seen_line(seen, view), seen.id) for seen in reversed(self._seen))])


def _own_line(own: OwnAction, view: View) -> Line:
    glyph, role = _LOOKS.get(own.state, (glyphs.BAD, Role.BAD))
    words = own.text
    if own.state == WAITING:
        words = f"in {max(0.0, own.until - monotonic()):.0f} s; u or esc takes it back"
    elif own.state == STARTING:
        words = own.text or f"is being put on record {own.id}".strip()
    pen = view.pen().gap().add(f"{glyph} ", role).add(f"{own.verb} {own.target}".strip(), Role.STRONG).gap()
    return pen.add(own.state, role).gap().add(words).line()


def _seen_line(seen: "SeenAction", view: View) -> Line:
    glyph, role = _LOOKS.get(seen.state, (glyphs.BAD, Role.BAD))
    pen = view.pen().gap().add(f"{glyph} ", role).add(f"{seen.verb} {seen.target}", Role.STRONG).gap()
    pen.add(seen.state, role).gap().add(f"{figures.age(seen.age_s)} ", Role.DIM)
    pen.add(f"{seen.id} ", Role.DIM)
    if seen.state == "pending" and (share := _share(seen.text)) is not None:
        done = round(share * 10)
        pen.add(glyphs.TRACK_DONE * done, role).add(glyphs.TRACK_LEFT * (10 - done), Role.DIM).gap()
    return pen.add(seen.text).line()


def _share(text: str) -> float | None:
    """How much of it is done, where its last word says "3/4" or "evaluated 30/400"."""
    import re

    found = re.search(r"\b(\d{1,9})\s*/\s*(\d{1,9})\b", text)
    if found is None or not int(found[2]):
        return None
    return min(1.0, int(found[1]) / int(found[2]))
