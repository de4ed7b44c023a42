"""Metrics and intervals: against a plain loop, under changes that must not matter, and on panels of the least size."""

import itertools
import math
import time
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kev.errors import BadRows
from kev.metrics import (
    PAIRED_METRICS,
    REPORT_METRICS,
    Resamples,
    Rows,
    cluster,
    concatenate,
    fit_temperature,
    look_alikes,
    measure,
    metric,
    pair,
    paired_bootstrap,
    pool,
    raw,
    rows_from_json,
    scored,
    served,
    temperature_interval,
    tempered,
)
from kev.metrics.resampling import Draws, draw_counts
from kev.metrics.temperature import grid, negative_log_likelihoods

SAMPLES = 60


def row(number: int, logits: list[float], label: int, /, **changes: Any) -> dict[str, Any]:
    e = np.exp(np.array(logits) - max(logits))
    return {
        "id": f"r{number:03d}", "group": f"g{number // 2}", "question": "q", "source": "s", "task": "s",
        "type": "choice", "variant": "clean", "keys": [f"k{k}" for k in range(len(logits))], "label": label,
        "p": (e / e.sum()).tolist(), "logits": logits, **changes,
    }  # fmt: skip


@st.composite
def panels(draw: st.DrawFn, least: int = 1) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Both sides of one panel, of several sources and tasks, with ties, records of several questions, odd sizes."""
    n = draw(st.integers(least, 24))
    logit = st.sampled_from([-3.0, -1.0, 0.0, 0.25, 1.0, 2.0, 6.0])
    sides: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
    for number in range(n):
        k = draw(st.integers(2, 4))
        source = draw(st.sampled_from(["s", "t", "u"]))
        shared = {
            "id": f"r{draw(st.integers(0, n)):03d}", "question": f"q{number}", "source": source,
            "group": f"g{draw(st.integers(0, 6))}", "task": source + draw(st.sampled_from(["", "2"])),
            "label": draw(st.integers(0, k - 1)),
        }  # fmt: skip
        for side in sides:
            logits = draw(st.lists(logit, min_size=k, max_size=k))
            side.append(row(number, logits, 0, **shared))
    return sides


def plain_statistic(rows: Rows, index: np.ndarray, name: str) -> float:
    value = metric(rows.take(index), name)
    assert value is not None
    return value


def plain_bootstrap(candidate: Rows, parent: Rows, name: str, average: str) -> tuple[float, float, float]:
    """What the bootstrap is defined as: a loop over resamples, each measured by itself."""
    pairing = pair(candidate, parent)
    clusters = pairing.clusters
    members = [np.flatnonzero(clusters.of_row == number) for number in range(clusters.count)]
    tasks = pairing.candidate.tasks

    def difference(index: np.ndarray) -> float:
        parts = [index] if average == "micro" else [index[tasks[index] == t] for t in sorted(set(tasks[index]))]
        each = [
            plain_statistic(pairing.candidate, part, name) - plain_statistic(pairing.parent, part, name)
            for part in parts
        ]
        return float(np.mean(each))

    rng = np.random.default_rng(0)
    first = np.cumsum([0, *clusters.per_source])
    samples = []
    for _ in range(SAMPLES):
        drawn = [start + rng.integers(0, k, size=k) for start, k in zip(first, clusters.per_source, strict=False)]
        samples.append(difference(np.concatenate([members[number] for number in np.concatenate(drawn)])))
    lower, upper = np.quantile(samples, [0.025, 0.975])
    return difference(np.arange(len(tasks))), float(lower), float(upper)


def exactly(value: float) -> Any:
    # The absolute part is a rounding of numbers near 1, whose difference may itself be 0.
    return pytest.approx(value, rel=1e-12, abs=1e-15)


@settings(max_examples=25, deadline=None)
@given(panels(), st.sampled_from(["micro", "macro"]))
def test_every_interval_is_that_of_the_plain_loop(
    sides: tuple[list[dict[str, Any]], list[dict[str, Any]]], average: str
) -> None:
    candidate, parent = (rows_from_json(side) for side in sides)
    found = paired_bootstrap(candidate, parent, PAIRED_METRICS, resamples=Resamples(SAMPLES), average=average)
    for name in PAIRED_METRICS:
        delta, lower, upper = plain_bootstrap(candidate, parent, name, average)
        assert found[name].delta == exactly(delta), name
        assert found[name].ci95 == [exactly(lower), exactly(upper)], name


def intervals(candidate: Rows, parent: Rows) -> dict[str, Any]:
    found = paired_bootstrap(candidate, parent, PAIRED_METRICS, resamples=Resamples(SAMPLES))
    return {name: [each.delta, *each.ci95] for name, each in found.items()}


@settings(max_examples=25, deadline=None)
@given(panels(), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_no_delta_and_no_interval(
    sides: tuple[list[dict[str, Any]], list[dict[str, Any]]], random: Any
) -> None:
    shuffled = tuple(random.sample(side, len(side)) for side in sides)
    before, after = ([rows_from_json(side) for side in each] for each in (sides, shuffled))
    assert intervals(*after) == intervals(*before)
    for one, other in zip(before, after, strict=True):
        for name in PAIRED_METRICS:
            assert metric(other, name) == exactly(metric(one, name) or 0.0)


@settings(max_examples=25, deadline=None)
@given(panels(least=2), st.data())
def test_a_panel_split_over_two_reads_is_the_same_panel(
    sides: tuple[list[dict[str, Any]], list[dict[str, Any]]], data: st.DataObject
) -> None:
    whole = [rows_from_json(side) for side in sides]
    cut = data.draw(st.integers(0, len(whole[0])))
    split = [concatenate([rows_from_json(side[:cut]), rows_from_json(side[cut:])]) for side in sides]
    assert intervals(*split) == intervals(*whole)
    assert [measure(side) for side in split] == [measure(side) for side in whole]


@settings(max_examples=25, deadline=None)
@given(panels())
def test_swapping_the_sides_negates_every_delta_and_mirrors_the_interval(
    sides: tuple[list[dict[str, Any]], list[dict[str, Any]]],
) -> None:
    candidate, parent = (rows_from_json(side) for side in sides)
    forth, back = intervals(candidate, parent), intervals(parent, candidate)
    for name in PAIRED_METRICS:
        delta, lower, upper = forth[name]
        assert back[name] == [exactly(-delta), exactly(-upper), exactly(-lower)]


@settings(max_examples=25, deadline=None)
@given(panels())
def test_a_side_compared_with_itself_differs_by_exactly_nothing(
    sides: tuple[list[dict[str, Any]], list[dict[str, Any]]],
) -> None:
    rows = rows_from_json(sides[0])
    assert all(value == [0, 0, 0] for value in intervals(rows, rows).values())


def large_panel(seed: int, rename: bool) -> tuple[Rows, Rows]:
    rng = np.random.default_rng(seed)
    names = rng.permutation(400)
    sides: list[list[dict[str, Any]]] = [[], []]
    for number in range(400):
        label = int(rng.integers(3))
        called = {"id": f"x{names[number]:03d}", "group": f"y{names[number - number % 2]:03d}"} if rename else {}
        for side, strength in zip(sides, (1.5, 1.0), strict=True):
            logits = rng.normal(size=3) + strength * (np.arange(3) == label)
            side.append(row(number, logits.tolist(), label, **called))
    return rows_from_json(sides[0]), rows_from_json(sides[1])


def test_renaming_records_keeps_every_value_and_moves_intervals_only_by_resampling_noise() -> None:
    plain, renamed = large_panel(5, rename=False), large_panel(5, rename=True)
    one = paired_bootstrap(*plain, ["acc", "brier", "ece"])
    other = paired_bootstrap(*renamed, ["acc", "brier", "ece"])
    assert [measure(side) for side in renamed] == [measure(side) for side in plain]
    for name, difference in one.items():
        width = difference.upper - difference.lower
        assert other[name].delta == exactly(difference.delta)
        assert abs(other[name].lower - difference.lower) < 0.15 * width
        assert abs(other[name].upper - difference.upper) < 0.15 * width
    assert any(other[name].ci95 != one[name].ci95 for name in one)


def test_a_panel_of_one_row_has_every_metric_and_an_interval_of_no_width() -> None:
    candidate = rows_from_json([row(0, [2.0, 0.0], 0)])
    parent = rows_from_json([row(0, [0.0, 1.0], 0)])
    for name, difference in paired_bootstrap(candidate, parent, PAIRED_METRICS).items():
        assert difference.ci95 == [exactly(difference.delta)] * 2, name
        assert math.isfinite(difference.delta)


def test_a_panel_of_one_record_is_always_drawn_whole() -> None:
    sides = [[row(i, [float(i % 3), s], i % 2, group="only") for i in range(6)] for s in (0.5, 1.5)]
    found = paired_bootstrap(rows_from_json(sides[0]), rows_from_json(sides[1]), PAIRED_METRICS)
    for name, difference in found.items():
        assert difference.ci95 == [exactly(difference.delta)] * 2, name


def test_all_right_at_constant_confidence_leaves_only_the_calibration_gap() -> None:
    rows = rows_from_json([row(i, [1.0, 0.0], 0) for i in range(8)])
    values = measure(rows)
    confidence = 1 / (1 + math.exp(-1))
    assert values["acc"] == values["coverage_at_1pct_error"] == 1.0
    assert values["aurc"] == values["confident_error_rate"] == 0.0
    assert values["ece"] == exactly(1 - confidence)
    assert values["accuracy_at_0_9"] is None
    assert values["selective"]["0.5"]["coverage"] == 1.0


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


def test_a_report_names_every_metric_it_has() -> None:
    rows = rows_from_json([row(i, [0.5, 1.0, 0.0], i % 3, type="score") for i in range(6)])
    scalars = {name for name, value in measure(rows).items() if not isinstance(value, dict)}
    assert scalars == set(REPORT_METRICS)


def test_score_metrics_are_over_score_questions_alone() -> None:
    rows = [
        row(0, [0.0], 0, p=[0.1, 0.2, 0.7], keys=["0", "1", "2"], label=2, logits=None, type="score"),
        row(1, [0.0], 0, p=[0.5, 0.5], keys=["0", "1"], label=0, logits=None, type="score"),
        row(2, [0.0], 0, p=[1.0, 0.0], keys=["a", "b"], label=1, logits=None),
    ]
    found = rows_from_json(rows)
    assert metric(found, "score_mae") == exactly((0.4 + 0.5) / 2)
    assert metric(found, "ranked_probability_score") == exactly(((0.1**2 + 0.3**2) / 2 + 0.25) / 2)
    assert metric(rows_from_json(rows[2:]), "score_mae") is None


# ------------------------------------------------------------------------------------------------ borders


def answers(*entries: tuple[list[float], int]) -> Rows:
    """Rows with saved probabilities and no logits."""
    return rows_from_json([row(i, [0.0] * len(p), label, p=p, logits=None) for i, (p, label) in enumerate(entries)])


def test_the_last_bin_is_closed_and_the_others_are_half_open() -> None:
    sure_and_wrong = answers(([1.0, 0.0], 1), ([0.0, 1.0], 0))
    assert metric(sure_and_wrong, "ece") == 1.0
    # 0.5 opens its own bin: in one bin with 0.45 the two gaps would nearly cancel.
    assert metric(answers(([0.5, 0.5], 0), ([0.45, 0.3, 0.25], 1)), "ece") == exactly((0.5 + 0.45) / 2)


def test_a_tie_is_answered_by_the_first_option() -> None:
    assert metric(answers(([0.5, 0.5], 0), ([0.5, 0.5], 1), ([0.25] * 4, 3)), "acc") == exactly(1 / 3)


def test_a_probability_of_zero_is_floored_only_where_there_are_no_logits() -> None:
    assert metric(answers(([1.0, 0.0], 1)), "nll") == exactly(-math.log(1e-9))
    exact = rows_from_json([row(0, [500.0, -500.0], 1)])
    assert metric(exact, "nll") == 1000.0
    assert metric(exact, "brier") == 2.0


def test_nine_tenths_is_confident_and_just_below_is_not() -> None:
    rows = answers(([0.9, 0.1], 1), ([0.8999999, 0.1000001], 1))
    assert metric(rows, "confident_error_rate") == 0.5
    assert metric(rows, "error_rate_at_0_9") == 1.0


def test_equal_confidences_are_accepted_together() -> None:
    # Two right and one wrong at 0.8: no threshold keeps the right ones alone.
    rows = answers(([0.95, 0.05], 0), ([0.8, 0.2], 0), ([0.8, 0.2], 0), ([0.8, 0.2], 1))
    assert metric(rows, "coverage_at_1pct_error") == 0.25
    assert metric(rows, "aurc") == exactly(0.75 * 0.25)


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


# ------------------------------------------------------------------------------------------------ serving


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


# ------------------------------------------------------------------------------------------------ resampling


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(0, 5))
def test_draws_are_those_of_64_bit_integers_source_by_source(per_source: list[int], seed: int) -> None:
    draws = Draws(tuple(per_source), seed)
    found = np.concatenate([draws.take(3), draws.take(4)])
    rng = np.random.default_rng(seed)
    first = [0, *itertools.accumulate(per_source)]
    for sample in found:
        expected = [start + rng.integers(0, k, size=k) for start, k in zip(first, per_source, strict=False)]
        assert sample.tolist() == np.concatenate(expected).tolist()
    counts = draw_counts(tuple(per_source), 7, seed)
    assert counts.sum(axis=1).tolist() == [sum(per_source)] * 7
    assert counts[3].tolist() == np.bincount(found[3], minlength=sum(per_source)).tolist()


def test_words_that_a_large_source_passes_over_are_passed_over() -> None:
    k = 100_003  # some 35 of three million words are passed over, where the chance of none is 1 in 10**15
    found = Draws((k,), 0).take(30)
    assert (found == np.random.default_rng(0).integers(0, k, size=(30, k))).all()


def test_resampling_costs_a_small_part_of_the_plain_loop_and_little_memory() -> None:
    candidate, parent = large_panel(5, rename=False)
    drawn = Resamples(SAMPLES)
    start = time.process_time()
    for name in ("acc", "ece", "brier"):
        plain_bootstrap(candidate, parent, name, "micro")
    plain = time.process_time() - start
    tracemalloc.start()
    start = time.process_time()
    paired_bootstrap(candidate, parent, ["acc", "ece", "brier"], resamples=drawn)
    engine = time.process_time() - start
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert engine < plain / 5
    assert peak < 4 * 2**20


def test_counts_are_shared_by_panels_of_one_shape_and_dropped_when_too_many() -> None:
    rows = [cluster(rows_from_json([row(i, [0.0, 1.0], 0) for i in range(n)])) for n in (4, 6, 8)]
    resamples = Resamples(10, keep_bytes=10 * (2 + 3))
    first = resamples.counts(rows[0])
    assert resamples.counts(rows[0]) is first
    resamples.counts(rows[1])
    assert resamples.counts(rows[0]) is first
    resamples.counts(rows[2])
    assert resamples.counts(rows[0]) is not first
    assert (resamples.counts(rows[0]) == first).all()


# ------------------------------------------------------------------------------------------------ bad rows


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


def test_a_metric_without_an_interval_is_refused_by_name() -> None:
    rows = rows_from_json(broken())
    with pytest.raises(BadRows, match="metric 'accuracy' has no interval; these have: acc, nll"):
        paired_bootstrap(rows, rows, ["accuracy"])
    with pytest.raises(BadRows, match="there is no metric 'accuracy'; there are acc, nll"):
        metric(rows, "accuracy")


def test_ids_that_look_alike_stay_apart_and_are_named() -> None:
    ids = ["na\u00efve", "nai\u0308ve", "x", "x ", "x\u200b", "Ⅳ", "IV", "07", "7", "a b", "a\u00a0b", "a-b"]
    pairs = look_alikes(ids)
    assert pairs == [("na\u00efve", "nai\u0308ve"), ("x", "x "), ("x", "x\u200b"), ("Ⅳ", "IV"), ("a b", "a\u00a0b")]
    rows = rows_from_json([row(i, [0.0, 1.0], 0, id=name) for i, name in enumerate(ids)])
    assert len(pair(rows, rows).candidate) == len(ids)


def test_a_pool_keeps_listed_sources_and_leaves_out_excluded_records() -> None:
    one = rows_from_json([row(i, [0.0, 1.0], 0, source="st"[i % 2]) for i in range(6)])
    two = rows_from_json([row(10 + i, [0.0, 1.0], 0) for i in range(3)])
    found = pool([("one", one), ("two", two)], sources={"one": ["t"]}, exclude={"r003", "r011", "elsewhere"})
    assert found.rows.ids.tolist() == ["r001", "r005", "r010", "r012"]
    assert found.excluded == 2
