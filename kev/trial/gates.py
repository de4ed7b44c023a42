"""In-trial gates: what a trial must pass to be worth a look. They screen, and decide nothing a round registers."""

import math
from collections.abc import Mapping
from typing import Any

from kev import files
from kev.reads.mechanism import TOLERANCES
from kev.trial.scoring import Scored

BOTH_CORRECT = 0.7
CONFIDENT_ERRORS = 0.1
TASK_REGRESSION = 0.05
VARIANT_REGRESSION = 0.05
FLIP_INCREASE = 0.05
TRANSFER_REGRESSION = 0.02
BRIER_INCREASE = 0.02

ABSENT = object()

POLICY = {
    "role": "screening only; nothing is released or refused by it",
    "isolation_tolerances": TOLERANCES,
    "heldout_pairs_at_least": BOTH_CORRECT,
    "transfer_confident_errors_at_most": CONFIDENT_ERRORS,
    "task_accuracy_regression_at_most": TASK_REGRESSION,
    "variant_accuracy_regression_at_most": VARIANT_REGRESSION,
    "permutation_flip_increase_at_most": FLIP_INCREASE,
    "transfer_accuracy_regression_at_most": TRANSFER_REGRESSION,
    "transfer_brier_increase_at_most": BRIER_INCREASE,
}


def gates_of(scored: Scored) -> dict[str, Any]:
    """The gates of a trial by itself. One whose figure is missing has not been passed."""
    checks = {
        "complete_coverage": is_complete(scored.development),
        "isolation_and_packing": scored.mechanism.passed,
    }
    if scored.transfer is not None:
        pairs = (scored.transfer.get("paired_flip") or {}).get("both_correct_rate")
        errors = scored.transfer["clean"]["confident_error_rate"]
        checks["transfer_complete"] = is_complete(scored.transfer)
        checks["heldout_pairs_at_least_70pct"] = pairs is not None and pairs >= BOTH_CORRECT
        checks["transfer_confident_errors_below_10pct"] = errors is not None and errors <= CONFIDENT_ERRORS
    return {"passed": all(checks.values()), "checks": checks, "policy": POLICY}


def is_complete(report: Mapping[str, Any]) -> bool:
    """Whether every record that was asked has an answer."""
    coverage = report["coverage"]
    return bool(coverage["evaluated_records"] == coverage["requested_records"] and not coverage["rejected_records"])


def gates_against(result: Mapping[str, Any], baseline: Mapping[str, Any]) -> dict[str, bool]:
    """The gates of a trial beside its study's baseline. A figure that one of them lacks is no regression; NaN is."""
    tasks = [_change(result, baseline, "tasks", task, "acc") for task in baseline.get("tasks") or {}]
    checks = {"no_task_accuracy_regression_over_5pp": all(each is None or each >= -TASK_REGRESSION for each in tasks)}
    for variant in ("none_present", "none_absent"):
        change = _change(result, baseline, "variants", variant, "acc")
        checks[f"{variant}_not_worse"] = change is None or change >= -VARIANT_REGRESSION
    flips = _change(result, baseline, "permutation", "flip_rate")
    checks["permutation_not_worse"] = flips is None or flips <= FLIP_INCREASE
    if baseline.get("transfer") and result.get("transfer"):
        accuracy = _change(result, baseline, "transfer", "clean", "acc")
        brier = _change(result, baseline, "transfer", "clean", "brier")
        checks["transfer_accuracy_not_worse"] = accuracy is None or accuracy >= -TRANSFER_REGRESSION
        checks["transfer_brier_not_worse"] = brier is None or brier <= BRIER_INCREASE
    return checks


def _at(report: Mapping[str, Any], *keys: str) -> Any:
    """What a report holds under a path of keys; ABSENT where it has no such key."""
    value: Any = report
    for key in keys:
        value = value.get(key, ABSENT) if isinstance(value, Mapping) else ABSENT
    return value


def _change(result: Mapping[str, Any], baseline: Mapping[str, Any], *keys: str) -> float | None:
    """The trial's figure minus the baseline's, without the rounding of that subtraction; None if one lacks it.

    NaN, which passes no gate, where the trial holds null or no number in the place of what the baseline has.
    """
    ours, theirs = _at(result, *keys), _at(baseline, *keys)
    if ours is ABSENT or theirs is ABSENT or theirs is None:
        return None
    one, other = files.as_finite(ours), files.as_finite(theirs)
    return math.nan if one is None or other is None else round(one - other, 12)
