"""Length buckets, unknowable questions, sibling pairs, permuted options, and cross-validated temperatures."""

from typing import Any

import numpy as np
import pytest

from kev.errors import BadRows, UsageError
from kev.metrics import (
    LENGTH_METRICS,
    Rows,
    bucket_names,
    bucket_values,
    cross_validate,
    fit_temperature,
    metric,
    paired_flip,
    permutation,
    rows_from_json,
    tempered,
    tokens_of,
    unknowable_report,
    unknowable_share,
)
from kev.metrics.cross_validation import deal
from kev.rounds.checks import panels as checks


def row(identifier: str, p: list[float], label: int = 0, /, **changes: Any) -> dict[str, Any]:
    return {
        "id": identifier, "group": identifier, "question": "q", "source": "s", "task": "s", "type": "choice",
        "variant": "clean", "keys": ["a", "b", "c"][: len(p)], "label": label, "p": p,
        "logits": np.log(np.maximum(p, 1e-12)).tolist(), **changes,
    }  # fmt: skip


def table(*rows: dict[str, Any]) -> Rows:
    return rows_from_json(list(rows), "rows.json")


# ------------------------------------------------------------------------------------------------ length buckets


def test_buckets_are_disjoint_first_and_then_tails() -> None:
    assert bucket_names() == [
        "under_8k", "8k_16k", "16k_32k", "32k_64k", "64k_plus", "8k_plus", "16k_plus", "32k_plus",
    ]  # fmt: skip
    assert bucket_names([2048]) == ["under_2k", "2k_plus"]


@pytest.mark.parametrize("edges", [[], [0], [1000], [2048, 1024], [1024, 1024], [-1024], [1024.0], [True]])
def test_edges_that_make_no_buckets_are_refused(edges: list[Any]) -> None:
    with pytest.raises(UsageError, match="increasing positive multiples of 1,024"):
        bucket_names(edges)


def test_a_row_on_an_edge_is_in_the_bucket_above_and_an_empty_bucket_has_nulls() -> None:
    ours = table(*(row(f"r{i}", [0.9, 0.1], i % 2, state_tokens=n) for i, n in enumerate((8191, 8192, 16384))))
    theirs = table(*(row(f"r{i}", [0.6, 0.4], i % 2, state_tokens=n) for i, n in enumerate((8191, 8192, 16384))))
    found = bucket_values(ours, theirs, (ours.state_tokens, theirs.state_tokens))
    assert len(found) == len(LENGTH_METRICS) * len(bucket_names())
    assert found["acc_under_8k"] == {"candidate": 1.0, "parent": 1.0, "n": 1}
    assert found["acc_8k_16k"] == {"candidate": 0.0, "parent": 0.0, "n": 1}
    assert found["acc_8k_plus"] == {"candidate": 0.5, "parent": 0.5, "n": 2}
    assert found["brier_32k_64k"] == {"candidate": None, "parent": None, "n": 0}


def test_a_row_without_its_own_count_takes_that_of_its_record() -> None:
    rows = table(row("a", [1.0], state_tokens=5), row("b", [1.0]), row("c", [1.0]))
    assert tokens_of(rows, {"a": 9, "b": 7}).tolist() == [5, 7, -1]


def test_validation_and_metrics_agree_on_names() -> None:
    from kev import metrics

    assert checks.PAIRED_METRICS == metrics.PAIRED_METRICS
    assert set(checks.REPORT_METRICS) == set(metrics.REPORT_METRICS)
    assert checks.LENGTH_METRICS == LENGTH_METRICS
    assert checks.LENGTH_EDGES == metrics.LENGTH_EDGES
    assert checks.bucket_names([1024, 4096]) == bucket_names([1024, 4096])


# ------------------------------------------------------------------------------------------------ unknowable


def test_the_unknowable_share_counts_clean_rows_answered_at_nine_tenths() -> None:
    unknown = {"source": "unknowable"}
    rows = table(
        row("u1", [0.9, 0.1], **unknown),
        row("u2", [0.8, 0.2], **unknown),
        row("u3", [0.99, 0.01], variant="permuted", **unknown),
        row("k1", [0.99, 0.01]),
    )
    assert unknowable_share(rows) == 0.5
    assert unknowable_share(table(row("k1", [0.99, 0.01]))) is None


def test_controls_show_how_much_less_sure_a_model_is_without_the_evidence() -> None:
    rows = table(
        row("u1", [0.7, 0.3], source="unknowable", control_id="c1"),
        row("u2", [0.6, 0.4], source="unknowable", control_id="c2"),
        row("u3", [0.5, 0.5], source="unknowable", control_id="gone"),
        row("c1", [0.95, 0.05], source="unknowable_control"),
        row("c2", [0.55, 0.45], 1, source="unknowable_control"),
    )
    found = unknowable_report(rows)
    assert found is not None
    assert (found.n, found.control_acc, found.control_share_at_0_9) == (3, 0.5, 0.5)
    assert found.mean_max_p == pytest.approx(0.6)
    assert found.paired_confidence_drop == pytest.approx((0.25 - 0.05) / 2)
    assert found.share_less_confident_than_control == 0.5
    assert unknowable_report(table(row("k", [1.0]))) is None


# ------------------------------------------------------------------------------------------------ flips


def pair_of(pair: str, labels: tuple[int, int], answers: tuple[int, int]) -> list[dict[str, Any]]:
    sure = ([0.8, 0.2], [0.2, 0.8])
    return [
        row(f"{pair}{side}", sure[answer], label, pair_id=pair, sibling=side)
        for side, label, answer in zip("ab", labels, answers, strict=True)
    ]


def test_pairs_whose_answers_differ_should_flip_and_the_others_should_not() -> None:
    rows = table(
        *pair_of("p1", (0, 1), (0, 1)),
        *pair_of("p2", (0, 1), (0, 0)),
        *pair_of("p3", (0, 1), (1, 0)),
        *pair_of("p4", (1, 1), (1, 1)),
        *pair_of("p5", (1, 1), (0, 1)),
        row("alone", [0.8, 0.2], 0, pair_id="p6", sibling="a"),
    )
    assert paired_flip(rows) == {
        "pairs": 3, "flip_rate": 2 / 3, "both_correct_rate": 1 / 3,
        "invariant_pairs": 2, "invariance_rate": 0.5, "invariant_both_correct_rate": 0.5,
    }  # fmt: skip
    assert paired_flip(table(row("x", [1.0]))) is None
    assert paired_flip(table(*pair_of("p1", (0, 1), (0, 1)))) == {
        "pairs": 1, "flip_rate": 1.0, "both_correct_rate": 1.0,
    }  # fmt: skip


def test_a_pair_with_two_of_one_sibling_is_refused() -> None:
    first, second = pair_of("p1", (0, 1), (0, 1))
    with pytest.raises(BadRows, match=r"record 'p1b', question 'q': pair 'p1' has two of sibling a"):
        paired_flip(table(first, {**second, "sibling": "a"}))


def test_permuted_options_are_matched_by_key() -> None:
    clean = row("r", [0.5, 0.3, 0.2], parent="r")
    same = row("r+p1", [0.2, 0.5, 0.3], 1, keys=["c", "a", "b"], variant="permuted", parent="r")
    moved = row("r+p2", [0.6, 0.2, 0.2], 1, keys=["c", "a", "b"], variant="permuted", parent="r")
    orphan = row("x+p", [0.5, 0.3, 0.2], variant="permuted", parent="x")
    found = permutation(table(clean, same, moved, orphan))
    assert found == {"n": 2, "mean_max_delta": pytest.approx(0.2), "flip_rate": 0.5}
    assert permutation(table(clean)) == {"n": 0, "mean_max_delta": None, "flip_rate": None}
    with pytest.raises(BadRows, match="permuted options are not those of the clean row"):
        permutation(table(clean, {**same, "keys": ["c", "a", "d"]}))


# ------------------------------------------------------------------------------------------------ cross-validation


def overconfident(n: int) -> Rows:
    rng = np.random.default_rng(2)
    rows = []
    for i in range(n):
        label = int(rng.integers(2))
        z = 3 * (rng.normal(size=2) + 0.8 * (np.arange(2) == label))
        p = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
        rows.append(row(f"r{i}", p.tolist(), label, group=f"g{i // 2}", source="st"[i % 4 // 2], logits=z.tolist()))
    return table(*rows)


def test_folds_hold_whole_records_of_every_source_and_differ_by_one_at_most() -> None:
    units = sorted((source, f"g{number}") for source, k in (("s", 7), ("t", 4)) for number in range(k))
    fold = deal(units, 5, seed=3)
    sizes = [list(fold.values()).count(number) for number in range(5)]
    assert max(sizes) - min(sizes) <= 1
    assert fold == deal(units, 5, seed=3)
    assert fold != deal(units, 5, seed=4)


def test_out_of_fold_temperatures_calibrate_rows_they_never_saw() -> None:
    rows = overconfident(200)
    found = cross_validate(rows, samples=200)
    assert found.groups == 100
    assert len(found.temperatures) == 5
    assert found.raw["ece"] == metric(rows, "ece")
    assert found.out_of_fold["n"] == 200
    assert found.out_of_fold["ece"] < found.raw["ece"]  # type: ignore[operator]
    low, high = found.ece_delta_ci95
    assert found.separated is (low > 0 or high < 0) is True
    assert found.to_json().keys() >= {"raw", "oof", "separated", "temperatures", "folds", "seed", "samples", "unit"}


def test_each_fold_is_served_at_the_temperature_of_the_others() -> None:
    rows = overconfident(40)
    found = cross_validate(rows, folds=2, samples=10)
    units = sorted(set(zip(rows.sources, rows.groups, strict=True)))
    fold = deal(units, 2, 0)
    of_row = np.array([fold[unit] for unit in zip(rows.sources, rows.groups, strict=True)])
    expected = np.empty(len(rows))
    for number in (0, 1):
        others = fit_temperature(rows.take(of_row != number)).temperature
        assert found.temperatures[number] == others
        expected[of_row == number] = tempered(rows.take(of_row == number), others).nll
    assert found.out_of_fold["nll"] == pytest.approx(expected.mean(), rel=1e-12)


def test_more_folds_than_records_are_refused() -> None:
    with pytest.raises(BadRows, match="3 records cannot be dealt into 5 folds"):
        cross_validate(table(*(row(f"r{i}", [0.5, 0.5]) for i in range(3))))
