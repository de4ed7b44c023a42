"""Criteria, verdicts and rankings over a comparison."""

import math
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kev.errors import UsageError
from kev.rounds.criteria import Outcome, evaluate, lookup, parse_path, rank, verdict

COMPARISON: dict[str, Any] = {
    "panels": {
        "hard": {
            "n": 40,
            "acc": {"candidate": 0.75, "parent": 0.5, "delta": 0.25, "ci95": [0.125, 0.375]},
            "acc_16k_plus": {"candidate": 0.5, "parent": None, "n": 4},
            "ece": {"candidate": 0.05, "parent": 0.04},
        }
    },
    "unknowable": {"candidate": 0.02, "parent": None},
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("hard.acc.candidate", 0.75),
        ("hard.acc.delta", 0.25),
        ("hard.acc.lower", 0.125),
        ("hard.acc.upper", 0.375),
        ("hard.acc_16k_plus.candidate", 0.5),
        ("hard.acc_16k_plus.parent", None),
        ("hard.ece.delta", None),
        ("hard.brier.candidate", None),
        ("absent.acc.candidate", None),
        ("unknowable.candidate", 0.02),
        ("unknowable.parent", None),
    ],
)
def test_a_path_finds_its_value_or_nothing(path: str, value: float | None) -> None:
    assert lookup(COMPARISON, parse_path(path)) == value


@pytest.mark.parametrize(
    "text",
    ["hard", "hard.acc", "hard.acc.mean", "hard.acc_8k_plus.lower", "unknowable.delta", "a.b.acc.d", ".acc.delta", 3],
)
def test_what_is_no_path_is_refused_with_the_grammar(text: object) -> None:
    with pytest.raises(UsageError, match="is no path: write"):
        parse_path(text)


def test_a_path_spells_itself() -> None:
    for text in ("hard.acc.lower", "v1.2.acc.lower", "hard.acc_under_8k.parent", "unknowable.candidate"):
        assert str(parse_path(text)) == text


def test_a_criterion_compares_a_difference_with_a_path_and_a_margin() -> None:
    criterion = {
        "left": ["hard.acc.candidate", "hard.acc.parent"],
        "op": ">=",
        "right": "hard.ece.parent",
        "plus": 0.21,
    }
    assert evaluate(criterion, COMPARISON) == Outcome(0.25, ">=", 0.25, True)
    assert evaluate({**criterion, "op": ">"}, COMPARISON).passed is False


def test_a_missing_operand_decides_nothing() -> None:
    assert evaluate({"left": "hard.nll.lower", "op": ">", "right": 0}, COMPARISON).passed is None
    assert evaluate({"left": "hard.acc.lower", "op": ">", "right": "unknowable.parent"}, COMPARISON).passed is None
    nan = {"panels": {"hard": {"acc": {"candidate": math.nan}}}}
    assert evaluate({"left": "hard.acc.candidate", "op": "<", "right": 9}, nan).passed is None


@pytest.mark.parametrize(
    ("criterion", "reason"),
    [
        ({"left": "hard.acc.lower", "op": "=>", "right": 0}, "op"),
        ({"left": "hard.acc.lower", "op": ">", "right": None}, "right"),
        ({"left": "hard.acc.lower", "op": ">", "right": True}, "right"),
        ({"left": [], "op": ">", "right": 0}, "left"),
        ({"left": "hard.acc.lower", "op": ">", "right": 0, "plus": "1"}, "plus"),
    ],
)
def test_what_is_no_criterion_is_refused(criterion: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        evaluate(criterion, COMPARISON)


@pytest.mark.parametrize(
    ("outcomes", "complete", "passed"),
    [
        ([True, True], True, True),
        ([True, False], True, False),
        ([True, None], True, None),
        ([True, True], False, None),
        ([False, None], False, False),
        ([], True, None),
    ],
)
def test_an_arm_passes_or_fails_only_where_that_is_known(
    outcomes: list[bool | None], complete: bool, passed: bool | None
) -> None:
    assert verdict(outcomes, complete=complete) is passed


def arm(passed: bool | None, delta: float | None, ece: float | None = 0.0) -> dict[str, Any]:
    return {"passed": passed, "panels": {"p": {"acc": {"delta": delta}, "ece": {"candidate": ece}}}}


def test_arms_are_ranked_per_size_and_sizes_without_a_passing_arm_are_shown() -> None:
    arms = {
        "9b-a": arm(True, 0.1), "9b-b": arm(True, 0.3), "9b-c": arm(False, 0.9), "9b-d": arm(True, 0.7),
        "4b-a": arm(None, 0.5),
    }  # fmt: skip
    ranking = rank(arms, [{"by": "p.acc.delta"}], selectable={"9b-d": False})
    assert ranking.order == {"9b": ["9b-b", "9b-a"], "4b": []}
    assert ranking.candidates == {"9b": "9b-b", "4b": None}


def test_ties_keep_the_order_of_the_spec_and_later_keys_break_them() -> None:
    arms = {"9b-a": arm(True, 0.3, 0.05), "9b-b": arm(True, 0.3, 0.04), "9b-c": arm(True, 0.3, 0.05)}
    by_ece = rank(arms, [{"by": "p.acc.delta"}, {"by": "p.ece.candidate", "order": "asc"}], selectable={})
    assert by_ece.order == {"9b": ["9b-b", "9b-a", "9b-c"]}
    assert rank(arms, [], selectable={}).order == {"9b": ["9b-a", "9b-b", "9b-c"]}


@given(
    st.permutations([("9b-a", 0.2), ("9b-b", None), ("9b-c", math.nan), ("9b-d", -0.5)]),
    st.sampled_from(["asc", "desc"]),
)
def test_a_missing_rank_value_sorts_last_in_any_order_and_is_said(
    listed: list[tuple[str, float | None]], order: str
) -> None:
    ranking = rank(
        {name: arm(True, delta) for name, delta in listed}, [{"by": ["p.acc.delta"], "order": order}], selectable={}
    )
    known = ["9b-d", "9b-a"] if order == "asc" else ["9b-a", "9b-d"]
    assert ranking.order["9b"][:2] == known
    assert ranking.unranked == [name for name, _ in listed if name in ("9b-b", "9b-c")]


@pytest.mark.parametrize("module", ["criteria", "guards", "places"])
def test_what_the_dashboard_asks_loads_no_numpy(module: str) -> None:
    code = f"import sys, kev.rounds.{module}; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
