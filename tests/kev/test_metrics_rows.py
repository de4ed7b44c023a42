"""Which rows are measured, compared and pooled, and how those that cannot be believed are refused."""

import math
from typing import Any

import pytest
from metric_rows import row

from kev.errors import BadRows
from kev.metrics import (
    fit_temperature,
    look_alikes,
    measure,
    metric,
    pair,
    paired_bootstrap,
    pool,
    rows_from_json,
    scored,
)


def broken(**changes: Any) -> list[dict[str, Any]]:
    return [row(0, [0.0, 1.0], 0), {**row(1, [0.0, 1.0], 0), **changes}]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"id": 2**64}, "row 2, question 'q': id is the number 18446744073709551616; it must be text"),
        ({"id": float(2**53)}, "row 2, question 'q': id is the number"),
        ({"id": None}, "has no id"),
        ({"group": 7}, "record 'r001', question 'q': group is the number 7"),
        ({"question": None}, "record 'r001': has no question"),
        ({"p": [0.5, 0.4]}, "record 'r001', question 'q': p adds up to 0.9, not to 1"),
        ({"p": [1.5, -0.5]}, "p holds a value outside 0 to 1"),
        ({"p": [0.5]}, "p is not a list of 2 numbers"),
        ({"p": None}, "p is not a list of 2 numbers"),
        ({"p": [True, False]}, "p holds True, which is not a finite number"),
        ({"logits": [math.nan, 1.0]}, "logits holds nan, which is not a finite number"),
        ({"logits": [None, 1.0]}, "logits holds None, which is not a finite number"),
        ({"logits": [10**400, 1.0]}, "which is not a finite number"),
        ({"label": 2}, "label 2 is outside the 2 options"),
        ({"label": True}, "label True is not the position of an option"),
        ({"label": "k0"}, "label 'k0' is not the position of an option"),
        ({"keys": []}, "keys is not a list"),
        ({"keys": ["a", "a"]}, "keys names an option twice"),
        ({"keys": ["a", 1]}, "keys holds something other than text"),
        ({"keys": [["a"], "b"]}, "keys holds something other than text"),
        ({"type": "open"}, "type 'open' is none of choice, noul, score"),
        ({"logits": [1e308, -1e308]}, "logits holds 1e+308, which is too large to be an answer"),
        ({"inference_temperature": 0}, "inference_temperature 0 is no temperature"),
        ({"inference_temperature": 1e300}, "inference_temperature 1e+300 is no temperature"),
        ({"inference_temperature": "1"}, "inference_temperature '1' is no temperature"),
        ({"state_tokens": -1}, "state_tokens -1 is not a count"),
        ({"control_id": 5}, "control_id is the number 5"),
        ({"question": "q\x1b[2J\n"}, None),
    ],
)
def test_a_row_that_cannot_be_believed_is_named_in_one_line(changes: dict[str, Any], reason: str | None) -> None:
    if reason is None:
        changes, reason = {**changes, "label": 9}, r"question 'q\x1b[2J\n'"
    with pytest.raises(BadRows) as caught:
        rows_from_json(broken(**changes), "runs/x/rows.json")
    message = str(caught.value)
    assert message.startswith("runs/x/rows.json, ")
    assert reason in message
    assert message.isprintable()


@pytest.mark.parametrize("value", [{}, [1], None, "rows"])
def test_what_is_no_list_of_rows_is_refused(value: Any) -> None:
    with pytest.raises(BadRows, match=r"rows\.json"):
        rows_from_json(value, "rows.json")


def test_nothing_to_measure_is_refused_in_one_line() -> None:
    nothing = rows_from_json([])
    for call in (
        lambda: measure(nothing),
        lambda: paired_bootstrap(nothing, nothing, ["acc"]),
        lambda: fit_temperature(nothing),
        lambda: pool([("runs/x", nothing)], sources={}, exclude=()),
    ):
        with pytest.raises(BadRows, match=r"^no "):
            call()


def test_a_metric_without_an_interval_is_refused_by_name() -> None:
    rows = rows_from_json(broken())
    with pytest.raises(BadRows, match="metric 'accuracy' has no interval; these have: acc, nll"):
        paired_bootstrap(rows, rows, ["accuracy"])
    with pytest.raises(BadRows, match="there is no metric 'accuracy'; there are acc, nll"):
        metric(rows, "accuracy")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"label": 1}, "label"), ({"source": "x"}, "source"), ({"group": "x"}, "group"), ({"task": "x"}, "task"),
        ({"type": "noul"}, "type"), ({"keys": ["k0", "other"]}, "options"),
    ],
)  # fmt: skip
def test_sides_that_disagree_about_a_question_are_not_compared(changes: dict[str, Any], field: str) -> None:
    ours, theirs = rows_from_json(broken(), "ours.json"), rows_from_json(broken(**changes), "theirs.json")
    with pytest.raises(BadRows, match=rf"ours\.json, record 'r001', question 'q': {field} .* in theirs\.json"):
        pair(ours, theirs)


def test_a_question_that_occurs_twice_or_on_one_side_only_is_named() -> None:
    twice = rows_from_json(broken(id="r000"), "a.json")
    with pytest.raises(BadRows, match=r"a\.json, record 'r000', question 'q': occurs twice"):
        pair(twice, twice)
    one = rows_from_json(broken()[:1], "b.json")
    with pytest.raises(BadRows, match=r"a\.json, record 'r001', question 'q': the parent has no such row \(one of 1\)"):
        pair(rows_from_json(broken(), "a.json"), one)
    with pytest.raises(BadRows, match=r"a\.json, record 'r001', question 'q': the candidate has no such row"):
        pair(one, rows_from_json(broken(), "a.json"))


def test_ids_that_look_alike_stay_apart_and_are_named() -> None:
    ids = ["na\u00efve", "nai\u0308ve", "x", "x ", "x\u200b", "Ⅳ", "IV", "07", "7", "a b", "a\u00a0b", "a-b"]
    pairs = look_alikes(ids)
    assert pairs == [("na\u00efve", "nai\u0308ve"), ("x", "x "), ("x", "x\u200b"), ("Ⅳ", "IV"), ("a b", "a\u00a0b")]
    rows = rows_from_json([row(i, [0.0, 1.0], 0, id=name) for i, name in enumerate(ids)])
    assert len(pair(rows, rows).candidate) == len(ids)


def test_only_clean_and_knowable_rows_are_scored() -> None:
    rows = rows_from_json(
        [
            row(0, [0.0, 1.0], 0),
            row(1, [0.0, 1.0], 0, variant="permuted"),
            row(2, [0.0, 1.0], 0, source="unknowable"),
            row(3, [0.0, 1.0], 0, source="unknowable_control"),
        ]
    )
    assert scored(rows).ids.tolist() == ["r000", "r003"]


def test_a_pool_keeps_listed_sources_and_leaves_out_excluded_records() -> None:
    one = rows_from_json([row(i, [0.0, 1.0], 0, source="st"[i % 2]) for i in range(6)])
    two = rows_from_json([row(10 + i, [0.0, 1.0], 0) for i in range(3)])
    found = pool([("one", one), ("two", two)], sources={"one": ["t"]}, exclude={"r003", "r011", "elsewhere"})
    assert found.rows.ids.tolist() == ["r001", "r005", "r010", "r012"]
    assert found.excluded == 2
