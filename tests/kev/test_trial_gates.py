"""The checks of a trial: questions that do not see each other, and margins against the baseline."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from linear_scorer import EncodedText, LinearScorer
from linear_trial import CONFIG, ROOT, suite

from kev.linear import fit
from kev.predictors.local import LocalPredictor
from kev.reads.mechanism import TOLERANCES, check_mechanism
from kev.reads.records import select_partition
from kev.records.plan import TrialConfig
from kev.train.mix import trial_records
from kev.trial.gates import gates_against, gates_of
from kev.trial.scoring import Scored


@dataclass
class LeakyScorer(LinearScorer):
    """A model whose answers move a little with the number of questions it is asked."""

    leak: float = 0.0

    def score(self, encoded: Sequence[EncodedText]) -> list[list[list[float]]]:
        shift = [self.leak * len(each.request.questions) for each in encoded]
        scored = super().score(encoded)
        return [[[logits[0] + by, *logits[1:]] for logits in each] for each, by in zip(scored, shift, strict=True)]


@pytest.mark.parametrize(
    ("leak", "dtype", "passes"),
    [(0.0, "fp32", True), (0.02, "fp32", False), (0.02, "bf16", True), (0.5, "bf16", False), (0.02, "fp64", False)],
)
def test_isolation_is_held_to_the_tolerance_of_the_type_it_was_computed_in(
    leak: float, dtype: str, passes: bool
) -> None:
    records = select_partition(suite("decision-v1"), "development").records
    model = fit(trial_records(TrialConfig.model_validate(CONFIG), suite("decision-v1"), ROOT))
    check = check_mechanism(LocalPredictor(LeakyScorer(model, leak=leak), batch=1), records, dtype)
    assert check.n == 8 and check.passed == passes
    assert check.tolerance == TOLERANCES.get(dtype, TOLERANCES["fp32"])


def test_a_check_that_could_look_at_nothing_is_not_passed() -> None:
    check = check_mechanism(LocalPredictor(LinearScorer(fit([]))), [], "fp32")
    assert not check.passed


def report(**changes: Any) -> dict[str, Any]:
    return {
        "clean": {"acc": 0.8, "brier": 0.3, "confident_error_rate": 0.05},
        "tasks": {"a": {"acc": 0.8}, "b": {"acc": 0.6}},
        "variants": {"none_present": {"acc": 0.7}, "none_absent": {"acc": 0.5}},
        "permutation": {"flip_rate": 0.1},
        "paired_flip": {"both_correct_rate": 0.7},
        "coverage": {"requested_records": 9, "evaluated_records": 9, "rejected_records": 0},
        **changes,
    }


@pytest.mark.parametrize(
    ("change", "gate"),
    [
        ({"tasks": {"a": {"acc": 0.749}, "b": {"acc": 0.9}}}, "no_task_accuracy_regression_over_5pp"),
        ({"variants": {"none_present": {"acc": 0.649}, "none_absent": {"acc": 0.5}}}, "none_present_not_worse"),
        ({"variants": {"none_present": {"acc": 0.7}, "none_absent": {"acc": 0.44}}}, "none_absent_not_worse"),
        ({"permutation": {"flip_rate": 0.151}}, "permutation_not_worse"),
        ({"transfer": report(clean={"acc": 0.779, "brier": 0.3})}, "transfer_accuracy_not_worse"),
        ({"transfer": report(clean={"acc": 0.8, "brier": 0.321})}, "transfer_brier_not_worse"),
    ],
)
def test_each_gate_against_the_baseline_fails_alone_and_at_its_margin(change: dict[str, Any], gate: str) -> None:
    baseline = report(transfer=report())
    at_margin = report(
        tasks={"a": {"acc": 0.75}, "b": {"acc": 0.55}},
        variants={"none_present": {"acc": 0.65}, "none_absent": {"acc": 0.45}},
        permutation={"flip_rate": 0.15},
        transfer=report(clean={"acc": 0.78, "brier": 0.32}),
    )
    assert all(gates_against(at_margin, baseline).values())
    checks = gates_against({**at_margin, **change}, baseline)
    assert [name for name, passed in checks.items() if not passed] == [gate]


@pytest.mark.parametrize("figure", [None, math.nan, "0.9", True, 10**400])
def test_a_figure_that_is_no_number_passes_no_gate_that_the_baseline_has_a_number_for(figure: object) -> None:
    baseline = report(transfer=report())
    trial = report(transfer=report(clean={"acc": figure, "brier": 0.3}))
    checks = gates_against(trial, baseline)
    assert [name for name, passed in checks.items() if not passed] == ["transfer_accuracy_not_worse"]
    lacking = report(transfer=report(clean={"brier": 0.3}), permutation={"flip_rate": 0.1})
    assert all(gates_against(lacking, baseline).values())
    assert all(gates_against(report(), report(permutation={"flip_rate": None})).values())


def test_a_gate_whose_figure_is_missing_is_not_passed() -> None:
    mechanism = check_mechanism(LocalPredictor(LinearScorer(fit([]))), [], "fp32")
    transfer = report(paired_flip=None, clean={"confident_error_rate": None})
    checks = gates_of(Scored(report(), transfer, None, mechanism))["checks"]
    assert [name for name, passed in checks.items() if passed] == ["complete_coverage", "transfer_complete"]
