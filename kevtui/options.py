"""What the dashboard is told from outside: how it looks, what it is about, what may act."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kevtui.alerting.choices import AS_IT_COMES, Choices
from kevtui.columns import EVERY
from kevtui.deliberate import QUIET_S, SETTLE_S
from kevtui.keymap import BINDINGS, Binding
from kevtui.layouts import UNTOUCHED, SavedLayout
from kevtui.observe.snapshot import Snapshot
from kevtui.tabs import Watched

if TYPE_CHECKING:
    from kevtui.actions.sight import Eyes
    from kevtui.replay.look_back import Past


@dataclass(frozen=True, slots=True)
class Options:
    """How the screen should look. `mouse` None: on, except over SSH, where every move of the pointer is bytes."""

    theme: str | None = None
    ascii: bool = False
    mouse: bool | None = None
    beside: str | None = None
    """A session or round whose read-out is shown beside this one's, once both are there."""
    bindings: tuple[Binding, ...] = BINDINGS
    columns: tuple[str, ...] = EVERY
    """Ids of the columns of the studies."""
    open_eyes: "Callable[[], Eyes] | None" = None
    """Opens what looks at the session's actions, and may act; called by a thread, after the first Snapshot."""
    look: Callable[[str, Path], Snapshot] | None = None
    """Takes one Snapshot of another session or round, to compare with; raises KevError. Called by a thread."""
    alerts: Choices = AS_IT_COMES
    """What is told beyond the screen, and how."""
    may_act: bool = False
    """Whether the keys that change something are there at all."""
    layout: SavedLayout = UNTOUCHED
    """How the dashboard of the session was left the last time."""
    keep_layout: Callable[[SavedLayout], None] | None = None
    """Keeps how it is left; None where nothing may be changed."""
    more: tuple[Watched, ...] = ()
    """Other sessions, each on a tab of its own."""
    command_player: Callable[[str], None] | None = None
    """Where the keys of a replay go; None where a session is watched."""
    open_past: "Callable[[], Past] | None" = None
    """Opens the past of the session that is watched; None where it has none to look back at."""
    quiet_s: float = QUIET_S
    settle_s: float = SETTLE_S
    """How deliberate a key must be; see kevtui.deliberate."""


PLAIN = Options()
"""As it comes: to look at, with nothing that acts."""
