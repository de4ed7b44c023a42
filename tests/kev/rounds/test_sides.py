"""Where each side of a comparison has its rows, at the rule stage and at the stages of a confirmation."""

from typing import Any

import pytest
from checkouts import changed, good_spec
from hypothesis import given
from hypothesis import strategies as st

from kev.records.spec import RoundSpec
from kev.rounds.sides import candidate_side, parent_side
from kev.rounds.templates import FIELDS, expand, unknown_fields

SPEC = good_spec()


def read(spec: dict[str, Any] = SPEC) -> RoundSpec:
    return RoundSpec.model_validate(spec)


def test_an_arm_reads_where_the_round_says_unless_it_says_otherwise() -> None:
    assert candidate_side(read(), "2b-full").directory("street") == "runs/r201-2b-full-street"
    assert candidate_side(read(), "2b-blend").directory("street") == "runs/r201-2b-blend-street"
    assert candidate_side(read(), "2b-blend").directory("locked") is None
    assert parent_side(read(), "2b-full").directory("street") == "runs/p2b-street"


def test_transfer_is_the_trials_own_read_or_the_declared_one_and_null_goes_back_to_the_trials() -> None:
    assert candidate_side(read(), "2b-full").directory("transfer") == "runs/r201-2b-full-far"
    assert candidate_side(read(), "2b-delta").directory("transfer") == "runs/r201-delta/00-trial-0/transfer"
    assert parent_side(read(), "2b-full").directory("transfer") == "runs/p2b-far"
    own = read(changed(SPEC, "parents", "base", "transfer_read", to=None))
    assert parent_side(own, "2b-full").directory("transfer") == "runs/p2b/00-trial-0/transfer"


def test_a_stage_has_its_own_directories_and_the_pool_stays_where_it_was() -> None:
    spec = read()
    tests, locked = spec.confirm["tests"], spec.confirm["locked"]
    candidate, parent = candidate_side(spec, "2b-full", tests), parent_side(spec, "2b-full", tests)
    assert candidate.directory("streettest") == "runs/r201c-2b-cand-streettest"
    assert parent.directory("streettest") == "runs/r201c-2b-parent-streettest"
    assert candidate.rule_directory("held") == "runs/r201-2b-full-held"
    assert parent.rule_directory("held") == "runs/p2b-held"
    assert candidate.directory("transfer") == "runs/r201-2b-full-far"
    assert candidate_side(spec, "2b-full", locked).directory("locked") == "runs/locked/lamps-2b-r201-ungated/transfer"
    assert parent_side(spec, "2b-full", locked).directory("locked") == "runs/locked/p2b-ungated/transfer"


def test_a_bare_checkpoint_has_no_development_rows() -> None:
    assert candidate_side(read(), "2b-blend").development_directory() is None
    assert candidate_side(read(), "2b-full").development_directory() == "runs/r201-full/00-trial-0/development"


@given(st.text(), st.text(), st.text(), st.integers())
def test_a_value_with_braces_is_not_expanded_again(arm: str, size: str, tag: str, number: int) -> None:
    text = expand("{round}/{arm}/{size}/{tag}", round_number=number, arm=arm, size=size, tag=tag)
    assert text == f"{number}/{arm}/{size}/{tag}"


@pytest.mark.parametrize(
    ("template", "unknown"),
    [("runs/{round}-{arm}-{size}-{tag}", []), ("{}", [""]), ("{arms}", ["arms"]), ("{arm", [""]), ("a}", [""]),
     ("{{arm}}", [""]), ("plain", [])],
)  # fmt: skip
def test_fields_that_no_template_has_are_named(template: str, unknown: list[str]) -> None:
    assert unknown_fields(template) == unknown
    assert set(FIELDS) == {"round", "arm", "size", "tag"}
