"""One session of a dashboard that shows several: its screen, its stream of Snapshots, and how its tab is marked."""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kevtui import format as figures
from kevtui import glyphs
from kevtui.feed import Feed, Silence, SnapshotSource
from kevtui.layouts import UNTOUCHED, SavedLayout
from kevtui.observe.snapshot import Severity
from kevtui.screens.panels import PanelsScreen
from kevtui.widgets.line import Role
from kevtui.widgets.tab_line import Mark

if TYPE_CHECKING:
    from kevtui.actions.sight import Eyes
    from kevtui.replay.look_back import Past


@dataclass(frozen=True, slots=True)
class Watched:
    """A session: where its Snapshots come from, and what may act on it."""

    title: str
    open_source: Callable[[], SnapshotSource[Any]]
    open_eyes: "Callable[[], Eyes] | None" = None
    open_past: "Callable[[], Past] | None" = None
    may_act: bool = False
    layout: SavedLayout = UNTOUCHED
    """How its dashboard was left the last time."""
    keep_layout: Callable[[SavedLayout], None] | None = None
    """Keeps how it is left; raises OSError, waits for a disk. None where nothing may be changed."""


class Tab:
    """A session and what was heard of it. Only the tab that is looked at paints."""

    feed: Feed

    def __init__(self, watched: Watched, screen: PanelsScreen[Any]) -> None:
        self.title = watched.title
        self.screen = screen
        self._keep_layout = watched.keep_layout
        self._kept = watched.layout
        self._newest: Any = None
        self._silence = Silence()
        self.failure: Exception | None = None
        """Why nothing more comes."""

    def get_screen(self) -> PanelsScreen[Any]:
        """The screen, for who makes it only when it is looked at."""
        return self.screen

    @property
    def snapshot(self) -> Any:
        """The newest picture, with what was acknowledged here marked so; what the screen shows may be older."""
        desk = self.screen.desk
        return self._newest if desk is None or self._newest is None else desk.marked(self._newest)

    @property
    def started(self) -> bool:
        """Whether its source was asked for anything yet."""
        return self.feed.ident is not None

    def start(self) -> None:
        self.feed.start()

    def arrived(self, snapshot: Any, *, here: bool) -> None:
        """Keep the newest picture; show it if this tab is looked at."""
        self._newest = snapshot
        if here:
            self.screen.tell_silence("")
            self.screen.show(self.snapshot)
        else:
            self.screen.hold(self.snapshot)

    def listen(self) -> None:
        """Say on the screen how long its source has not answered, or no longer."""
        silent_s = self._silence.look(self.feed.heard)
        ended = self.failure is not None
        self.screen.tell_silence(f"no answer for {figures.age(silent_s)}" if silent_s and not ended else "")

    def close(self) -> None:
        """Hear and tell nothing more."""
        self.feed.stop()
        if self.screen.desk is not None:
            self.screen.desk.close()

    def leave(self) -> None:
        """Another tab is looked at from now on."""
        self.screen.leave()
        self.feed.rest(True)

    def look_here(self) -> None:
        """The tab is looked at from now on: what came meanwhile is shown, and what comes next comes at once."""
        self.feed.rest(False)
        if (snapshot := self.snapshot) is not None:
            self.screen.show(snapshot)

    @property
    def keeps_layout(self) -> bool:
        return self._keep_layout is not None

    def keep_layout(self) -> threading.Thread | None:
        """Keep how the screen is arranged, if that is new, from a thread that is returned. Without a word if it fails:
        no habit is worth an interruption."""
        layout = self.screen.left()
        if self._keep_layout is None or layout is None or layout == self._kept:
            return None
        self._kept = layout
        keep = self._keep_layout

        def work() -> None:
            with suppress(OSError):
                keep(layout)

        thread = threading.Thread(target=work, name="layout", daemon=True)
        thread.start()
        return thread

    def mark(self, *, here: bool) -> Mark:
        """How the tab is to be shown."""
        if here:
            return Mark(self.title, here=True)
        if self.failure is not None:
            return Mark(self.title, False, f"{glyphs.BAD} ended", Role.BAD)
        if (snapshot := self.snapshot) is None:
            return Mark(self.title)
        text, role = _wrong(snapshot)
        if self.screen.asked:
            return Mark(self.title, False, f"{text} asks".strip(), Role.WARN if role is Role.DIM else role)
        return Mark(self.title, False, text, role)


def _wrong(snapshot: Any) -> tuple[str, Role]:
    """The alerts that nobody has acknowledged, as signs and numbers, the gravest first."""
    severities = [alert.severity for alert in getattr(snapshot, "alerts", ()) if not alert.acknowledged]
    counts = [(each, severities.count(each)) for each in (Severity.CRITICAL, Severity.WARNING)]
    grave = bool(counts[0][1])
    role = Role.BAD if grave else Role.WARN if counts[1][1] else Role.DIM
    return " ".join(f"{glyphs.SEVERITY[each]}{count}" for each, count in counts if count), role
