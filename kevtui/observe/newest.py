"""The newest figures of one trial, and no more of them than `most`.

Kept in flat arrays: a thousand trials as Python objects would take more memory than the whole screen may.
"""

from array import array
from collections.abc import Iterator

from kevtui.observe.derive import MOST_SAMPLES, Sample

SAMPLE_EVERY_S = 5.0


class NewestFigures:
    """Floats, in the order in which they came."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._figures = array("d")

    def __len__(self) -> int:
        return len(self._figures)

    def __iter__(self) -> Iterator[float]:
        return iter(self._figures)

    @property
    def oldest(self) -> float:
        """Raises IndexError where there is none."""
        return self._figures[0]

    def append(self, figure: float) -> None:
        self._figures.append(figure)
        del self._figures[: -self._most]

    def clear(self) -> None:
        del self._figures[:]


class NewestSamples:
    """When steps were done, a few seconds apart, so that `most` of them span the window of a rate."""

    def __init__(self, most: int = MOST_SAMPLES) -> None:
        self._most = most
        self._times, self._steps = array("d"), array("q")

    def __bool__(self) -> bool:
        return bool(self._steps)

    def __iter__(self) -> Iterator[Sample]:
        return map(Sample, self._times, self._steps)

    @property
    def last(self) -> Sample | None:
        return Sample(self._times[-1], self._steps[-1]) if self._steps else None

    def append(self, sample: Sample) -> None:
        """`sample` comes after the last, or in its place where that is too near to the one before."""
        if len(self._times) > 1 and self._times[-1] - self._times[-2] < SAMPLE_EVERY_S:
            self._times.pop()
            self._steps.pop()
        self._times.append(sample.t)
        self._steps.append(sample.step)
        del self._times[: -self._most], self._steps[: -self._most]

    def clear(self) -> None:
        del self._times[:], self._steps[:]
