"""What each metric is: on rows small enough to work out by hand, at the borders of bins and thresholds."""

import math

from metric_rows import answers, exactly, row

from kev.metrics import REPORT_METRICS, measure, metric, rows_from_json


def test_all_right_at_constant_confidence_leaves_only_the_calibration_gap() -> None:
    rows = rows_from_json([row(i, [1.0, 0.0], 0) for i in range(8)])
    values = measure(rows)
    confidence = 1 / (1 + math.exp(-1))
    assert values["acc"] == values["coverage_at_1pct_error"] == 1.0
    assert values["aurc"] == values["confident_error_rate"] == 0.0
    assert values["ece"] == exactly(1 - confidence)
    assert values["accuracy_at_0_9"] is None
    assert values["selective"]["0.5"]["coverage"] == 1.0


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
