"""The logged steps of one trial, each once: a later attempt replaces what the one before had written past its start."""

from array import array
from bisect import bisect_left
from math import isfinite

from kevtui.observe.snapshot import Point

MOST_KEPT = 800
"""Steps kept per trial. When full, every second of the older half goes: the curve keeps its shape and its end."""

MOST_POINTS = 400
LEAST_POINTS = 32
ALL_POINTS = 16_000
"""Points in one Snapshot over all trials: a thousand trials must not cost a thousand full curves."""

_NAN = float("nan")


class History:
    """Steps in ascending order with their loss and, where it is known, their time in seconds of one clock.

    Kept in flat arrays: a thousand trials as Python objects would take more memory than the whole screen may.
    """

    def __init__(self) -> None:
        self._steps = array("q")
        self._losses = array("d")
        self._times = array("d")
        self._stride = 0
        self._settled: list[Point] = []

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def last(self) -> tuple[int, float | None] | None:
        """(step, loss) of the furthest step that still stands."""
        return (self._steps[-1], _known(self._losses[-1])) if self._steps else None

    def add(self, step: int, loss: float | None, t: float | None = None) -> None:
        """One logged step. A step at or before the last is a new attempt: what stood from there on is dropped."""
        if self._steps and step <= self._steps[-1]:
            self.rewind(step - 1)
        self._steps.append(step)
        self._losses.append(_NAN if loss is None else loss)
        self._times.append(_NAN if t is None else t)
        if len(self._steps) > MOST_KEPT:
            self._thin()

    def insert(self, step: int, loss: float | None, t: float | None = None) -> None:
        """A step that was logged late: it takes its place among the others, or changes nothing if that is taken."""
        place = bisect_left(self._steps, step)
        if place < len(self._steps) and self._steps[place] == step:
            return
        self._stride = 0
        self._steps.insert(place, step)
        self._losses.insert(place, _NAN if loss is None else loss)
        self._times.insert(place, _NAN if t is None else t)
        if len(self._steps) > MOST_KEPT:
            self._thin()

    def rewind(self, step: int) -> None:
        """A continuation went on from `step`: later ones are void."""
        keep = bisect_left(self._steps, step + 1)
        self._stride = 0
        for column in (self._steps, self._losses, self._times):
            del column[keep:]

    def clear(self) -> None:
        self.rewind(-1)

    def points(self, most: int = MOST_POINTS) -> tuple[Point, ...]:
        """At most `most` points at an even spacing, the first and the last always among them.

        A step that was only appended leaves all points but the last the very objects that they were.
        """
        count = len(self._steps)
        if not count:
            return ()
        stride = 1
        while -(-(count - 1) // stride) + 1 > most:
            stride *= 2
        if stride != self._stride:
            self._stride, self._settled = stride, []
        while (index := len(self._settled) * stride) < count - 1:
            self._settled.append(self._point(index, index - stride))
        return (*self._settled, self._point(count - 1, (len(self._settled) - 1) * stride))

    def _point(self, index: int, before: int) -> Point:
        t, start = _known(self._times[index]), _known(self._times[0])
        at_s = None if t is None or start is None else t - start
        rate = self._rate(before, index) if before >= 0 and index > before else None
        return Point(self._steps[index], _known(self._losses[index]), at_s, rate)

    def _rate(self, a: int, b: int) -> float | None:
        lasted = self._times[b] - self._times[a]
        return 60 * (self._steps[b] - self._steps[a]) / lasted if lasted > 0 else None

    def _thin(self) -> None:
        half = len(self._steps) // 2
        self._stride = 0
        for column in (self._steps, self._losses, self._times):
            del column[1:half:2]


def points_per_trial(trials: int) -> int:
    """How many points each of `trials` trials may have in one Snapshot."""
    return max(LEAST_POINTS, min(MOST_POINTS, ALL_POINTS // max(1, trials)))


def _known(value: float) -> float | None:
    return value if isfinite(value) else None
