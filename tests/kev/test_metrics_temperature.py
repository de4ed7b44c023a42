"""A temperature is fitted on raw rows, and rows served at one are made raw again."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metric_rows import answers, exactly, row

from kev.errors import BadRows
from kev.metrics import Resamples, fit_temperature, raw, rows_from_json, served, temperature_interval, tempered
from kev.metrics.temperature import grid, negative_log_likelihoods


@pytest.mark.parametrize(
    ("rows", "index", "temperature", "note"),
    [
        ([row(i, [9.0, 0.0], 0) for i in range(4)], 0, 0.25, "edge of the grid"),
        ([row(i, [9.0, 0.0], 1) for i in range(4)], 120, 4.0, "edge of the grid"),
        ([row(i, [1.0, 1.0], 1) for i in range(4)], 0, 0.25, "no information"),
    ],
)
def test_a_fit_that_is_a_limit_of_the_grid_says_so(
    rows: list[dict[str, Any]], index: int, temperature: float, note: str
) -> None:
    fit = fit_temperature(rows_from_json(rows))
    assert (fit.index, fit.temperature) == (index, exactly(temperature))
    assert fit.note is not None
    assert note in fit.note


def test_the_interval_of_rows_without_information_stays_at_the_first_grid_point() -> None:
    interval = temperature_interval(rows_from_json([row(i, [0.3, 0.3], 1) for i in range(9)]), resamples=Resamples(50))
    assert (interval.lower, interval.upper) == (exactly(0.25), exactly(0.25))


def test_the_middle_of_the_grid_is_one() -> None:
    assert grid()[60] == 1.0
    rows = answers(([0.7, 0.3], 0), ([0.2, 0.8], 0))
    assert negative_log_likelihoods(rows, 121)[60].tolist() == [-math.log(0.7), -math.log(0.2)]


def test_a_macro_fit_weighs_tasks_alike() -> None:
    many = [row(i, [3.0, 0.0], 0, task="easy") for i in range(30)]
    few = [row(50 + i, [3.0, 0.0], i % 2, task="hard") for i in range(4)]
    rows = rows_from_json(many + few)
    assert fit_temperature(rows, average="macro").temperature > fit_temperature(rows).temperature


@settings(deadline=None)
@given(st.floats(0.25, 4), st.lists(st.floats(-20, 20), min_size=2, max_size=5))
def test_a_row_served_at_any_temperature_is_made_raw_again(temperature: float, logits: list[float]) -> None:
    at_one = rows_from_json([row(0, logits, 0)])
    warm = tempered(at_one, temperature)
    back = raw(warm)
    assert back.p[0] == pytest.approx(at_one.p[0], rel=1e-9, abs=1e-12)
    assert back.temperature[0] == 1.0
    assert raw(at_one) is at_one


def test_served_at_exactly_one_the_saved_probabilities_stay() -> None:
    rows = rows_from_json([row(0, [1.0, 2.0], 0, p=[0.26894, 0.73106])])
    assert served(rows, 1.0).p.tolist() == [[0.26894, 0.73106]]


def test_rows_without_logits_are_tempered_through_their_probabilities() -> None:
    assert tempered(answers(([0.8, 0.2], 0)), 2.0).p[0] == pytest.approx([2 / 3, 1 / 3])


def test_a_warm_row_without_logits_cannot_be_made_raw() -> None:
    rows = rows_from_json([row(0, [0.0, 1.0], 0, logits=None, inference_temperature=2.5)], "runs/x/rows.json")
    with pytest.raises(BadRows, match=r"runs/x/rows\.json, record 'r000', question 'q': served at T = 2\.5 without"):
        raw(rows)


def test_a_fit_refuses_rows_served_at_another_temperature() -> None:
    with pytest.raises(BadRows, match="a fit needs raw rows"):
        fit_temperature(tempered(rows_from_json([row(0, [0.0, 1.0], 0)]), 2.0))
