"""How far a score may be from the base's by chance alone.

The base is graded three times, on three draws of items, before anything else. The interval around it is the wider of
two: Student's t over the three grades, which sees how the draws differ, and the normal interval of a share of n items,
which does not vanish when three grades happen to agree. A score inside it is a tie.
"""

import math
import statistics
from collections.abc import Sequence
from typing import Literal

from kev.records.base import StrictRecord

GRADES = 3
T_95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}
"""Two-sided 95 % points of Student's t for 2 to 5 grades (one degree of freedom less)."""
Z_95 = 1.96
FLOOR = 1e-9


class Baseline(StrictRecord):
    """What the base scores."""

    score: float
    """On the items that submissions are graded on."""
    grades: list[float]
    """One for each draw; the first is `score`."""
    items: int
    """In each draw."""
    half_width: float
    """Of the 95 % interval around the mean of the grades, in points."""

    @property
    def mean(self) -> float:
        return statistics.fmean(self.grades)


def baseline_of(grades: Sequence[float], items: int) -> Baseline:
    """The baseline with its interval, from 2 to 5 grades of 0 to 100 on `items` items each."""
    return Baseline(score=grades[0], grades=list(grades), items=items, half_width=half_width(grades, items))


def half_width(grades: Sequence[float], items: int) -> float:
    """Half the 95 % interval around the mean of `grades`, in points."""
    drawn = T_95[len(grades)] * statistics.stdev(grades) / math.sqrt(len(grades))
    # One success and one failure more keep the interval open at 0 and at 100 (after Laplace).
    share = (statistics.fmean(grades) / 100 * items + 1) / (items + 2)
    counted = Z_95 * 100 * math.sqrt(share * (1 - share) / max(1, items))
    return max(drawn, counted)


def label_of(score: float, baseline: float, half: float) -> Literal["gain", "tie", "loss"]:
    """What `score` is against the base; on the border of the interval it is a tie."""
    difference = score - baseline
    if abs(difference) <= half + FLOOR:
        return "tie"
    return "gain" if difference > 0 else "loss"
