"""What recorded read-outs say follows from the intervals recorded in them, in each of the three shapes on record."""

from pathlib import Path
from typing import Any

import pytest

from kev.records.readout import StoredReadOut, read_readout
from kev.records.spec import RoundSpec
from kev.rounds.criteria import evaluate_all, rank, verdict
from kev.rounds.specs import load_spec

READOUTS = Path(__file__).parent.parent / "fixtures/readouts"
SHAPES = {61: "current", 62: "skills", 63: "documents"}
ROUNDS = pytest.mark.parametrize("number", SHAPES)


def recorded(number: int) -> tuple[StoredReadOut, RoundSpec]:
    return read_readout(READOUTS / f"round{number}.json"), load_spec(READOUTS / f"r{number}.json", READOUTS).spec


def comparisons(stored: StoredReadOut) -> dict[str, dict[str, Any]]:
    return {name: arm.to_json() for name, arm in stored.readout.arms.items()}


@ROUNDS
def test_every_boolean_is_recomputed(number: int) -> None:
    stored, spec = recorded(number)
    assert stored.shape == SHAPES[number]
    criteria = {name: criterion.to_json() for name, criterion in spec.rule.criteria.items()}
    seen: set[bool | None] = set()
    for arm in comparisons(stored).values():
        if not arm.get("criteria"):
            continue
        found = {name: outcome.passed for name, outcome in evaluate_all(criteria, arm).items()}
        assert found == arm["criteria"]
        assert verdict(found.values(), complete=arm["complete"]) is arm["passed"]
        seen |= set(found.values())
    assert seen >= {True, False}


@ROUNDS
def test_ranking_and_candidates_are_recomputed(number: int) -> None:
    stored, spec = recorded(number)
    keys = [key.to_json() for key in spec.rule.rank]
    selectable = {name: arm.select for name, arm in spec.arms.items()}
    found = rank(comparisons(stored), keys, selectable=selectable)
    assert found.candidates == stored.readout.candidates
    assert stored.readout.ranking in ({}, found.order)
    assert any(len(arms) > 1 for arms in found.order.values())


def test_an_arm_that_was_never_read_passes_nothing_and_still_has_a_size() -> None:
    stored, spec = recorded(62)
    found = rank(comparisons(stored), [key.to_json() for key in spec.rule.rank], selectable={})
    assert found.order["13b"] == []
