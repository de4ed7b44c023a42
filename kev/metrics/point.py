"""Every metric of a set of rows, by name.

Means run over float64 arrays in row order: numpy sums pairwise, so another order moves the last digit.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kev.errors import BadRows
from kev.metrics.calibration import (
    CONFIDENT,
    expected_calibration_error,
    risk_steps,
    selective,
    top_bins,
)
from kev.metrics.rows import Floats, Rows

ADDITIVE: Mapping[str, Callable[[Rows], Floats]] = {
    "acc": lambda rows: rows.correct,
    "nll": lambda rows: rows.nll,
    "brier": lambda rows: rows.brier,
    "mean_conf": lambda rows: rows.confidence,
    "confident_error_rate": lambda rows: (rows.confidence >= CONFIDENT) * (1.0 - rows.correct),
    "coverage_at_0_9": lambda rows: (rows.confidence >= CONFIDENT).astype(np.float64),
}
"""Metrics that are the mean of one value per question."""

RANKED: Mapping[str, float | None] = {"aurc": None, "coverage_at_5pct_error": 0.05, "coverage_at_1pct_error": 0.01}
"""Metrics read off the risk steps: the area, or the coverage within an error budget."""

PAIRED_METRICS = (*ADDITIVE, "confidence_bias", "ece", *RANKED)
"""Metrics that a panel can compare, with an interval."""

SCORE_METRICS = ("score_mae", "ranked_probability_score")
REPORT_METRICS = (*PAIRED_METRICS, "accuracy_at_0_9", "error_rate_at_0_9", "n", *SCORE_METRICS)
"""Metrics that a panel can only report: every number a report holds by one name."""


def metric(rows: Rows, name: str) -> float | None:
    """One metric of `rows`; None where it has no value (no answer is confident, no question is a score).

    Raises BadRows for no rows at all, and for a name that is not in REPORT_METRICS.
    """
    if name not in REPORT_METRICS:
        raise BadRows(f"there is no metric {name!r}; there are {', '.join(REPORT_METRICS)}")
    _check_some(rows)
    if name in ADDITIVE:
        return float(ADDITIVE[name](rows).mean())
    match name:
        case "n":
            return len(rows)
        case "confidence_bias":
            return float(rows.confidence.mean()) - float(rows.correct.mean())
        case "ece":
            return expected_calibration_error(rows.confidence, rows.correct)
        case "accuracy_at_0_9" | "error_rate_at_0_9":
            sure = rows.correct[rows.confidence >= CONFIDENT]
            if not len(sure):
                return None
            return float(sure.mean()) if name == "accuracy_at_0_9" else float((1.0 - sure).mean())
        case "score_mae" | "ranked_probability_score":
            return score_metrics(rows).get(name)
    budget = RANKED[name]
    steps = risk_steps(rows.confidence, rows.correct)
    return steps.area() if budget is None else steps.coverage(budget)


def measure(rows: Rows) -> dict[str, Any]:
    """The block of metrics that a report holds for `rows`, under the report's names and in its order.

    Raises BadRows for no rows at all.
    """
    names = ("n", "nll", "acc", "ece", "brier", "mean_conf", "confident_error_rate", "coverage_at_0_9",
             "accuracy_at_0_9", "coverage_at_5pct_error", "coverage_at_1pct_error", "aurc", "error_rate_at_0_9",
             "confidence_bias")  # fmt: skip
    return {
        **{name: metric(rows, name) for name in names},
        "top_bins": top_bins(rows.confidence, rows.correct),
        "selective": selective(rows.confidence, rows.correct),
        **score_metrics(rows),
    }


def score_metrics(rows: Rows) -> dict[str, float]:
    """`score_mae` (levels between the expected level and the label) and `ranked_probability_score` (mean over
    questions of the mean squared difference of cumulative probabilities), over the score questions; {} without any.
    """
    rows = rows.take(rows.types == "score")
    if not len(rows):
        return {}
    distance, ranked = np.zeros(len(rows)), np.zeros(len(rows))
    for k, at in rows.blocks():
        p, labels = rows.p[at, :k], rows.labels[at]
        distance[at] = np.abs((p * np.arange(k)).sum(axis=1) - labels)
        if k > 1:
            beyond = np.arange(k) >= labels[:, None]
            ranked[at] = ((np.cumsum(p, axis=1) - beyond)[:, :-1] ** 2).mean(axis=1)
    return {"score_mae": float(distance.mean()), "ranked_probability_score": float(ranked.mean())}


def _check_some(rows: Rows) -> None:
    if not len(rows):
        raise BadRows("no rows are left to measure; check the sources, tasks and ids that the panel keeps")
