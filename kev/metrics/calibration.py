"""Metrics of how sure the answers are, from two arrays: confidence, and 1.0 where the answer is right.

Definitions, so that no reader has to guess: confidence is the largest probability; "at 0.9" includes 0.9 itself;
answers of equal confidence are accepted together or not at all, since no threshold could part them.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kev.metrics.rows import Floats, Integers

CONFIDENT = 0.9
BINS = 10
EDGES = np.linspace(0.0, 1.0, BINS + 1)
TOP_BINS = (0.9, 0.95, 0.99)
SELECTIVE = (0.5, 0.8)


def bin_of(confidence: Floats) -> Integers:
    """Which of the ten equal bins each confidence is in: [lo, hi), the last one closed."""
    return np.clip(np.searchsorted(EDGES, confidence, side="right") - 1, 0, BINS - 1)


def expected_calibration_error(confidence: Floats, correct: Floats) -> float:
    """The mean over bins, weighted by their share, of |accuracy - mean confidence|; empty bins count nothing."""
    bins = bin_of(confidence)
    total = 0.0
    for number in np.unique(bins):
        inside = bins == number
        gap = abs(float(correct[inside].mean()) - float(confidence[inside].mean()))
        total += float(inside.mean()) * gap
    return total


@dataclass(frozen=True)
class RiskSteps:
    """One step per distinct confidence, from the surest down: how many are accepted so far, and how many wrong."""

    accepted: Floats
    errors: Floats

    @property
    def total(self) -> float:
        return float(self.accepted[-1])

    def coverage(self, budget: float) -> float:
        """The largest share that can be accepted with at most `budget` of it wrong."""
        within = self.errors <= budget * self.accepted
        return float(self.accepted[within].max(initial=0.0)) / self.total

    def area(self) -> float:
        """The area under error rate against share accepted (AURC): the risk of each step over its own width."""
        newly = np.diff(self.accepted, prepend=0.0)
        return float((newly * (self.errors / self.accepted)).sum()) / self.total


def risk_steps(confidence: Floats, correct: Floats) -> RiskSteps:
    """The steps of accepting answers from the surest down."""
    order = np.argsort(-confidence, kind="stable")
    ends = step_ends(confidence[order])
    accepted = np.arange(1.0, len(order) + 1)
    return RiskSteps(accepted[ends], np.cumsum(1.0 - correct[order])[ends])


def step_ends(descending: Floats) -> Integers:
    """The last position of every run of equal values."""
    return np.flatnonzero(np.append(descending[1:] != descending[:-1], True))


def top_bins(confidence: Floats, correct: Floats) -> dict[str, dict[str, Any]]:
    """For 0.9, 0.95 and 0.99: how many answers are at least so sure, and how many of them are wrong."""
    out = {}
    for threshold in TOP_BINS:
        inside = confidence >= threshold
        n, errors = int(inside.sum()), int((1.0 - correct[inside]).sum())
        out[f"{threshold:g}"] = {"n": n, "errors": errors, "error_rate": errors / n if n else None}
    return out


def selective(confidence: Floats, correct: Floats) -> dict[str, dict[str, float]]:
    """Accuracy on the surest half and the surest four fifths, answers tied at the cut-off included."""
    descending = np.sort(confidence)[::-1]
    out = {}
    for share in SELECTIVE:
        cutoff = descending[math.ceil(share * len(descending)) - 1]
        inside = confidence >= cutoff
        out[f"{share:g}"] = {
            "coverage": float(inside.mean()),
            "accuracy": float(correct[inside].mean()),
            "confidence_cutoff": float(cutoff),
        }
    return out
