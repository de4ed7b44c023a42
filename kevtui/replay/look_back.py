"""The past of a session on its own screen, while the session goes on behind it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kev.errors import KevError
from kevtui.feed import Feed, SnapshotSource
from kevtui.observe.observer import leases_of, renewed
from kevtui.observe.snapshot import Snapshot
from kevtui.observe.target import Target
from kevtui.replay.command import open_history
from kevtui.replay.player import Player

if TYPE_CHECKING:
    from kevtui.screens.past import PastScreen

NOW = "now"


class Past(SnapshotSource, Protocol):
    """A source of past moments that goes where it is told to."""

    def command(self, name: str) -> None: ...


class LookBack:
    """One look back: from the key that asks for it to the one that comes back. It belongs to the screen's thread."""

    def __init__(self, screen: "PastScreen", present: Snapshot, open_past: Callable[[], Past]) -> None:
        self._screen = screen
        self._present = present
        self._past = open_past()
        self._moment: Snapshot | None = None
        self._shown: Snapshot | None = None
        self._told = {alert.id for alert in present.alerts}
        self.missed: Snapshot | None = None
        """The last Snapshot of the present in which something had moved, since the look back began."""
        self._feed = Feed(lambda: self._past, self._deliver, self._fail)
        self._feed.start()

    def command(self, name: str) -> None:
        self._past.command(name)

    def end(self) -> None:
        self._feed.stop()
        self._past.close()

    def hear(self, present: Snapshot) -> None:
        """The session went on: what is wrong with it now is told beside what was wrong then."""
        self._present = present
        if present.changed:
            self.missed = present
        for alert in present.urgent:
            if alert.id not in self._told:
                self._told.add(alert.id)
                self._screen.notify(
                    f"{NOW}: {alert.subject} {alert.text}", severity="warning", markup=False, timeout=10
                )
        self._show()

    # ---- from the feed's thread

    def _deliver(self, snapshot: Snapshot) -> None:
        self._screen.call_later(self._take, snapshot)

    def _fail(self, error: Exception) -> None:
        self._screen.call_later(self._give_up, error)

    # ----

    def _take(self, snapshot: Snapshot) -> None:
        self._moment = snapshot
        self._show()

    def _give_up(self, error: Exception) -> None:
        if not isinstance(error, KevError):
            raise error
        self._screen.come_back(str(error))

    def _show(self) -> None:
        if self._moment is not None and self._screen.is_current_look(self):
            self._shown = renewed(self._shown, with_present(self._moment, self._present))
            self._screen.paint(self._shown)


def open_past(target: Target, leases: Path | None) -> Player:
    """The past of `target`, standing still at its last moment."""
    return Player(
        lambda: open_history(target, leases or leases_of(target.root)),
        start=lambda history: history.ends_at,
        playing=False,
    )


def with_present(moment: Snapshot, present: Snapshot) -> Snapshot:
    """`moment` with what is wrong at present, marked so, above what was wrong then."""
    now = [replace(alert, subject=f"{NOW}: {alert.subject}") for alert in present.urgent]
    assert moment.replay is not None
    return replace(moment, alerts=(*now, *moment.alerts), replay=replace(moment.replay, alerts_now=len(now)))
