"""One session of a dashboard that shows several: its screen, its stream of Snapshots, and how its tab is marked."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kevtui import glyphs
from kevtui.feed import Feed, SnapshotSource
from kevtui.observe.snapshot import Severity
from kevtui.screens.panels import PanelsScreen
from kevtui.widgets.line import Role
from kevtui.widgets.tab_line import Mark

if TYPE_CHECKING:
    from kevtui.actions.sight import Eyes
    from kevtui.replay.look_back import Past


@dataclass(frozen=True, slots=True)
class Watched:
    """Another session beside the first: where its Snapshots come from, and what may act on it."""

    title: str
    open_source: Callable[[], SnapshotSource[Any]]
    open_eyes: "Callable[[], Eyes] | None" = None
    open_past: "Callable[[], Past] | None" = None
    may_act: bool = False


class Tab:
    """A session and what was heard of it. Only the tab that is looked at paints."""

    feed: Feed

    def __init__(self, title: str, screen: PanelsScreen[Any]) -> None:
        self.title = title
        self.screen = screen
        self.snapshot: Any = None
        """The newest picture; what the screen shows may be older."""
        self.failure: Exception | None = None
        """Why nothing more comes."""

    def get_screen(self) -> PanelsScreen[Any]:
        """The screen, for who makes it only when it is looked at."""
        return self.screen

    @property
    def started(self) -> bool:
        """Whether its source was asked for anything yet."""
        return self.feed.ident is not None

    def start(self) -> None:
        self.feed.start()

    def arrived(self, snapshot: Any, *, here: bool) -> None:
        """Keep the newest picture; show it if this tab is looked at."""
        self.snapshot = snapshot
        if here:
            self.screen.show(snapshot)
        else:
            self.screen.hold(snapshot)

    def leave(self) -> None:
        """Another tab is looked at from now on."""
        self.screen.leave()
        self.feed.rest(True)

    def look_here(self) -> None:
        """The tab is looked at from now on: what came meanwhile is shown, and what comes next comes at once."""
        self.feed.rest(False)
        if self.snapshot is not None:
            self.screen.show(self.snapshot)

    def mark(self, *, here: bool) -> Mark:
        """How the tab is to be shown."""
        if here:
            return Mark(self.title, here=True)
        if self.failure is not None:
            return Mark(self.title, False, f"{glyphs.BAD} ended", Role.BAD)
        if self.snapshot is None:
            return Mark(self.title)
        text, role = _wrong(self.snapshot)
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
