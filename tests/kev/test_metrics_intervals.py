"""Paired intervals: against a plain loop, under changes that must not matter, on panels of the least size."""

import itertools
import math
import time
import tracemalloc
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from metric_rows import exactly, row

from kev.metrics import (
    PAIRED_METRICS,
    Resamples,
    Rows,
    cluster,
    concatenate,
    measure,
    metric,
    pair,
    paired_bootstrap,
    rows_from_json,
)
from kev.metrics.resampling import Draws, draw_counts

SAMPLES = 60


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
