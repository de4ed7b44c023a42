"""A screen over a session that goes on, which can be taken to an earlier moment and back."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from kevtui.keymap import Binding
from kevtui.observe.snapshot import Snapshot
from kevtui.screens.panels import PanelsScreen
from kevtui.widgets.footer import Footer
from kevtui.widgets.header import READ_ONLY, Header
from kevtui.widgets.ink import Ink
from kevtui.widgets.line import Role

if TYPE_CHECKING:
    from kevtui.replay.look_back import LookBack, Past

READING = "REPLAY · reading …"

GONE = frozenset({"act", "take_back", "control", "log", "beside"})
"""Actions that are about the present."""


class PastScreen(PanelsScreen[Snapshot]):
    """Shows the present, or a moment of the past while the present goes on. Subclasses paint, and say what acts."""

    def __init__(self, ink: Ink, bindings: tuple[Binding, ...], *, of_past: tuple[Binding, ...] = ()) -> None:
        """`bindings` are those of the present, `of_past` those while a moment of the past is shown.

        Who has no control has no key that needs it, nor has who looks back.
        """
        super().__init__(ink, bindings)
        self.open_past: Callable[[], Past] | None = None
        """Opens the past of the session; None where there is none to look back at."""
        self.command_player: Callable[[str], None] | None = None
        """Where the keys of a replay go that has no present."""
        self._of_present, self._of_past = bindings, of_past
        self._mode: tuple[str, Role] = (READ_ONLY, Role.ACCENT)
        self._look_back: LookBack | None = None
        self._present: Snapshot | None = None

    def paint(self, snapshot: Snapshot) -> None:
        """Put `snapshot` on the screen."""
        raise NotImplementedError

    def hear(self, present: Snapshot) -> None:
        """The session went on while the past is shown."""

    @property
    def held_by(self) -> str:
        """Why the present may not be left now, or ""."""
        return ""

    def show(self, snapshot: Snapshot) -> None:
        """The session as it is at present."""
        self._present = snapshot
        if self._look_back is None:
            self.paint(snapshot)
        else:
            self.hear(snapshot)
            self._look_back.hear(snapshot)

    def hold(self, snapshot: Snapshot) -> None:
        self._present = snapshot
        if self.is_mounted:
            self.hear(snapshot)

    def leave(self) -> None:
        # A night that plays on where nobody sees it would cost as much as one that is looked at.
        self.come_back()

    # ------------------------------------------------------------------------------ there and back

    @property
    def in_past(self) -> bool:
        return self._look_back is not None

    def is_current_look(self, look_back: "LookBack") -> bool:
        """Whether `look_back` is the one that goes on; a late moment of an earlier one is not shown."""
        return self.is_running and self._look_back is look_back

    def action_look_back(self) -> None:
        """Show an earlier moment of the session, which goes on behind it; or the present again."""
        if self._look_back is not None:
            self.come_back()
        elif self.held_by:
            self.notify(self.held_by, timeout=4)
        elif self.open_past is not None and self._present is not None:
            from kevtui.replay.look_back import LookBack

            self.leave_log()
            self._look_back = LookBack(self, self._present, self.open_past)
            self._use_keys()
            self.query_one(Header).tell_mode(READING, Role.WARN)

    def come_back(self, why: str = "") -> None:
        """Show the present again; `why` is said where nobody asked for it."""
        if self._look_back is None:
            return
        self._look_back.end()
        missed, self._look_back = self._look_back.missed, None
        self._use_keys()
        self.query_one(Header).tell_mode(*self._mode)
        for snapshot in (missed, self._present):
            if snapshot is not None:
                self.paint(snapshot)
        if why:
            self.notify(why, severity="warning", markup=False, timeout=6)

    def action_replay(self, command: str) -> None:
        """Move about in the past."""
        if self._look_back is not None:
            self._look_back.command(command)
        elif self.command_player is not None:
            self.command_player(command)

    def on_unmount(self) -> None:
        if self._look_back is not None:
            self._look_back.end()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "replay":
            return self.in_past or self.command_player is not None
        if self.in_past and action in GONE:
            return False
        return super().check_action(action, parameters)

    # ------------------------------------------------------------------------------ what is told of the present

    def use(self, bindings: tuple[Binding, ...], mode: tuple[str, Role]) -> None:
        """What keys there are at present, and what the header says of it."""
        self._of_present, self._mode = bindings, mode
        if not self.in_past:
            self.query_one(Header).tell_mode(*mode)
            self._use_keys()

    def _use_keys(self) -> None:
        self.bindings = self._of_past if self.in_past else self._of_present
        self.query_one(Footer).use(self.bindings)
        self.refresh_bindings()
