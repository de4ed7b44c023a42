"""The report of a read: every block of metrics that report.json holds, from its rows."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from kev.errors import BadRows
from kev.metrics import (
    EPSILON,
    Rows,
    fit_temperature,
    measure,
    paired_flip,
    permutation,
    raw,
    scored,
    tempered,
    unknowable_report,
)

QUICK_POINTS = 81
"""Points of the grid of a report's own temperature, which weighs tasks equally and serves nothing."""

METRIC_POLICY = {
    "version": 2,
    "ece": "10 equal bins of the largest probability, the last one closed",
    "brier": "sum over options of squared differences, 0 to 2",
    "selective_ties": "answers of equal confidence are accepted together or not at all",
    "coverage_at_error": "the largest share within the budget on these rows; no guarantee for others",
    "confident_error_rate": "wrong answers at p >= 0.9, over all questions",
    "nll": "exact from logits where they are recorded, from floored probabilities otherwise",
    "nll_floor": EPSILON,
    "renormalize_returned_probabilities": True,
}


def build_report(rows: Rows, coverage: Mapping[str, int]) -> dict[str, Any]:
    """The report of `rows` as they were saved; `coverage` is how much of what was asked they are.

    `objective` is minus the mean over tasks of clean NLL. Raises BadRows if no row is scored.
    """
    clean = scored(rows)
    tasks = {task: measure(clean.take(clean.tasks == task)) for task in dict.fromkeys(clean.tasks.tolist())}
    unknown = unknowable_report(rows)
    return {
        "objective": -sum(block["nll"] for block in tasks.values()) / len(tasks) if tasks else None,
        "paired_flip": paired_flip(rows),
        "unknowable": asdict(unknown) if unknown is not None else None,
        "clean": measure(clean),
        "tasks": tasks,
        "variants": _variants(rows),
        "permutation": permutation(rows),
        **_calibration(rows, clean),
        "metric_policy": METRIC_POLICY,
        "coverage": dict(coverage),
    }


def _variants(rows: Rows) -> dict[str, Any]:
    knowable = rows.take(rows.sources != "unknowable")
    return {
        variant: measure(knowable.take(knowable.variants == variant))
        for variant in dict.fromkeys(knowable.variants.tolist())
    }


def _calibration(rows: Rows, clean: Rows) -> dict[str, Any]:
    """What one more temperature would do on these very rows: a quick look, in distribution with itself."""
    served = {float(temperature) for temperature in rows.temperature}
    recorded = bool(rows.has_logits.all())
    try:
        fitted = fit_temperature(raw(clean), points=QUICK_POINTS, average="macro")
    except BadRows:  # served at another temperature without logits: what it was before is lost
        fitted = None
    return {
        "temperature": fitted.temperature if fitted else None,
        "calibrated_clean": measure(tempered(raw(clean), fitted.temperature)) if fitted else None,
        "calibration": {
            "inference_temperature": served.pop() if len(served) == 1 else None,
            "additional_temperature": fitted.temperature if fitted else None,
            "logits_recorded": recorded,
        },
    }
