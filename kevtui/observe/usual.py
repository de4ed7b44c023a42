"""Whether a figure has left what is usual for it: its own recent median, not a number that somebody chose.

Medians on both sides. Of the five newest figures two may be anything at all, such as steps that an evaluation came
between; nothing is called unusual before enough of them are known; and what is called so stays so until it is clearly
over, measured against what was usual before it began.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kevtui.observe.newest import NewestFigures

KEPT: Final = 64
"""Figures before the newest ones, whose median is the usual one."""

LEAST: Final = 20
"""So many of those are needed: a warm-up is no slowing down, and the first gradients are large."""

RECENT: Final = 5

_RENEWED_EVERY: Final = 8
"""The usual figure moves slowly, and sorting for each of a long log's steps would cost more than reading them."""


@dataclass(frozen=True, slots=True)
class Departure:
    """The median of the newest figures, what was usual before, and the step at which it was first seen."""

    recent: float
    usual: float
    since_step: int


class Usual:
    """Follows one figure of one trial. A `limit` below 1 looks for falls to that share of the usual, one above 1 for
    rises; it is over beyond `back`, which lies nearer to 1. Infinity is a figure like any other."""

    def __init__(self, *, limit: float, back: float) -> None:
        self._limit, self._back = limit, back
        self._older, self._recent = NewestFigures(KEPT), NewestFigures(RECENT)
        self._usual: float | None = None
        self._renewed_in = 0
        self.departure: Departure | None = None

    def add(self, value: float, step: int) -> None:
        """One more figure, of `step`."""
        if len(self._recent) == RECENT and self.departure is None:
            # While it departs, nothing of it becomes usual.
            self._older.append(self._recent.oldest)
            self._renew()
        self._recent.append(value)
        if self._usual is None or len(self._recent) < RECENT:
            return
        if self.departure is None and not self._is_beyond(value, self._limit):
            return
        recent = median(self._recent)
        if self.departure is not None and not self._is_beyond(recent, self._back):
            self.departure = None
        elif self.departure is not None or self._is_beyond(recent, self._limit):
            since = self.departure.since_step if self.departure else step
            self.departure = Departure(recent, self._usual, since)

    def clear(self) -> None:
        """What came before does not compare with what comes: another attempt, another machine."""
        self._older.clear()
        self._recent.clear()
        self._usual = self.departure = None
        self._renewed_in = 0

    def _renew(self) -> None:
        self._renewed_in -= 1
        if self._renewed_in < 0 and len(self._older) >= LEAST:
            self._usual, self._renewed_in = median(self._older), _RENEWED_EVERY

    def _is_beyond(self, value: float, share: float) -> bool:
        if not self._usual:
            return False
        return value < share * self._usual if share < 1 else value > share * self._usual


def median(values: Iterable[float]) -> float:
    """The upper one of an even number, so that no two are added: one may be infinite. Not statistics.median, which
    would load random, hashlib and fractions for it."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2]
