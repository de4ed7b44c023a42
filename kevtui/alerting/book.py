"""Which alerts are news: each is told once, again only after a while, and never while somebody knows of it.

Pure but for what it remembers. Moments are seconds of one monotonic clock.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from kevtui.observe.acknowledged import is_known
from kevtui.observe.snapshot import Alert
from kevtui.observe.states import RANK

SETTLE_S: Final = 60.0
"""An alert is over once it was gone for so long: one that comes and goes with every step is one alert."""


@dataclass(frozen=True, slots=True)
class News:
    """An alert to be told, and how often it came back since it was last told."""

    alert: Alert
    repeats: int = 0


@dataclass(slots=True)
class _Entry:
    alert: Alert
    seen_at: float
    told_at: float | None = None
    told_rank: int = len(RANK)
    """Of the severity that was told; a graver one is told at once."""
    untold: int = 0
    """How often it was raised since it was last told."""
    present: bool = True
    over: bool = False


class AlertBook:
    """Remembers what was told, and what was acknowledged here."""

    def __init__(self, again_s: Callable[[str], float]) -> None:
        """`again_s` gives the seconds between two tellings of one alert, by its kind."""
        self._again_s = again_s
        self._entries: dict[str, _Entry] = {}
        self._known: dict[str, tuple[str, str]] = {}
        self._begun = False
        self._marked: tuple[tuple[Alert, ...], tuple[Alert, ...]] | None = None
        self.settled = False
        """Whether, without other alerts, time alone brings no news and ends nothing."""

    def take(self, alerts: Iterable[Alert], now: float) -> list[News]:
        """What is to be told of `alerts`, which are all that there are at `now`.

        Those of the first time are told already: whoever opens a dashboard sees them on it.
        """
        present = {alert.id: alert for alert in alerts}
        told = [News(alert, repeats) for alert in present.values() if (repeats := self._see(alert, now)) is not None]
        for name in self._entries.keys() - present.keys():
            self._miss(name, now)
        self._begun = True
        entries = self._entries.values()
        self.settled = not any(entry.untold or not (entry.present or entry.over) for entry in entries)
        return told

    @property
    def standing(self) -> tuple[Alert, ...]:
        """What was raised and is not over, with what has been gone for a moment only."""
        return tuple(entry.alert for entry in self._entries.values() if not entry.over)

    def _see(self, alert: Alert, now: float) -> int | None:
        """How often it came back unsaid, if it is to be told now."""
        rank = RANK[alert.severity]
        entry = self._entries.get(alert.id)
        if entry is None:
            entry = self._entries[alert.id] = _Entry(alert, now, untold=1)
            if not self._begun:
                entry.told_at, entry.told_rank, entry.untold = now, rank, 0
        elif not entry.present or alert.condition != entry.alert.condition or rank < RANK[entry.alert.severity]:
            entry.untold += 1
        entry.alert, entry.seen_at, entry.present, entry.over = alert, now, True, False
        if alert.acknowledged or is_known(self._known, alert):
            entry.untold = 0
        if not entry.untold:
            return None
        again = entry.told_at is None or now - entry.told_at >= self._again_s(alert.code)
        if not again and rank >= entry.told_rank:
            return None
        repeats, entry.untold = entry.untold - 1, 0
        entry.told_at, entry.told_rank = now, rank
        return repeats

    def _miss(self, name: str, now: float) -> None:
        entry = self._entries[name]
        entry.present = False
        if now - entry.seen_at >= SETTLE_S:
            entry.over = True
            if self._known.pop(name, None) is not None:
                self._marked = None
            if entry.told_at is None or now - entry.told_at >= self._again_s(entry.alert.code):
                del self._entries[name]

    # ---- acknowledging

    def acknowledge(self, alert: Alert) -> None:
        """Somebody here knows of `alert` as it is now."""
        self._known[alert.id] = (alert.condition, alert.severity)
        self._marked = None

    def withdraw(self) -> None:
        """Nobody here knows of anything any more."""
        self._known.clear()
        self._marked = None

    def marked(self, alerts: tuple[Alert, ...]) -> tuple[Alert, ...]:
        """`alerts`, with those marked that were acknowledged here; the very same object for the very same alerts."""
        if self._marked is None or self._marked[0] is not alerts:
            new = {alert.id for alert in alerts if not alert.acknowledged and is_known(self._known, alert)}
            marked = [replace(alert, acknowledged=True) if alert.id in new else alert for alert in alerts]
            self._marked = alerts, tuple(sorted(marked, key=lambda alert: alert.acknowledged)) if new else alerts
        return self._marked[1]
