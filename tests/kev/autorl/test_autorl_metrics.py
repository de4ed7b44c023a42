"""Figures and the curve of a run: from elapsed seconds, null where they cannot be computed, errors apart."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kev.autorl.__main__ import main
from kev.autorl.metrics import compute_metrics
from kev.autorl.scores import Scores, scores_of
from kev.autorl.trajectory import draw_picture, draw_text
from kev.records.autorl import RunMeta


def entry(number: int, score: float | None, elapsed: float, **more: object) -> dict[str, object]:
    return {"submission_id": number, "score": score, "baseline_score": 40.0, "elapsed_seconds": elapsed, **more}


def scores(*entries: dict[str, object]) -> Scores:
    return scores_of(Path("scores.json"), list(entries))


FAILED = entry(1, 0.0, 10, error="no weights")
RUN = (FAILED, entry(2, 39.0, 20), entry(3, 44.0, 30), entry(4, 42.0, 40), entry(5, 44.0, 50))


def test_the_figures_of_a_run_are_those_that_can_be_counted_by_hand() -> None:
    found = compute_metrics(
        scores(*RUN), RunMeta(start_time=1000, timeout_s=200, last_submit_time=1060, end_time=1100)
    ).to_json()
    assert found == {
        "submissions": 5, "errors": 1, "not_finite": 0, "valid_submission_rate": 0.8, "first_valid_idx": 2,
        "first_valid_delay": 20.0, "score_trajectory": [None, 39.0, 44.0, 42.0, 44.0],
        "time_to_first_improvement": 30.0, "time_to_best": 30.0, "best_score": 44.0, "monotonic_ratio": 2 / 3,
        "copy_model_count": None, "time_used_ratio": 0.5, "last_submit_gap": 40.0,
    }  # fmt: skip


def test_what_cannot_be_computed_is_null_and_never_zero() -> None:
    found = compute_metrics(Scores([]), None).to_json()
    assert {name for name, value in found.items() if value is not None} == {
        "submissions", "errors", "not_finite", "score_trajectory", "copy_model_count",
    }  # fmt: skip
    running = compute_metrics(scores(entry(1, 41.0, 5)), RunMeta(start_time=10, timeout_s=100))
    assert running.time_used_ratio is None and running.last_submit_gap is None and running.monotonic_ratio is None


def test_a_best_that_is_not_a_number_is_no_best_whatever_the_order() -> None:
    entries = [entry(1, float("nan"), 1), entry(2, 50.5, 2), entry(3, float("inf"), 3), entry(4, 50.5, 4)]
    for order in (entries, entries[::-1]):
        found = compute_metrics(scores(*order), None)
        assert (found.best_score, found.time_to_best, found.not_finite) == (50.5, 2.0, 2)
        assert found.score_trajectory == [None, 50.5, None, 50.5]


def test_times_come_from_elapsed_seconds_when_the_local_clock_went_back() -> None:
    night = scores(
        entry(1, 41.0, 600, timestamp="2027-10-31T02:50:00.000000"),
        entry(2, 45.0, 2400, timestamp="2027-10-31T02:20:00.000000"),
    )
    found = compute_metrics(night, RunMeta(start_time=100, timeout_s=50, last_submit_time=60, end_time=40))
    assert (found.time_to_first_improvement, found.time_to_best) == (600.0, 2400.0)
    assert found.time_used_ratio is None and found.last_submit_gap is None


def test_copies_of_the_base_are_counted_by_label_or_path() -> None:
    found = compute_metrics(scores(entry(1, 40.0, 1, label="no change"), entry(2, 41.0, 2, label="tie")), None)
    assert found.copy_model_count == 1
    assert compute_metrics(scores(entry(1, 40.0, 1, model_path="models/base")), None).copy_model_count == 1


@given(st.lists(st.none() | st.floats(allow_nan=True), max_size=200))
def test_any_scores_make_figures_that_json_holds_and_a_curve_that_fits(values: list[float | None]) -> None:
    made = scores(*(entry(at, value, float(at)) for at, value in enumerate(values, start=1)))
    json.dumps(compute_metrics(made, None).to_json(), allow_nan=False)
    for line in draw_text(made, width=30)[:-1]:
        assert len(line) <= 30 + 20 and line.isascii()


def test_the_curve_shows_best_baseline_and_failures() -> None:
    lines = draw_text(scores(*RUN), height=6)
    assert lines[0] == "44 |  @ @" and lines[5].endswith("xo   ")
    assert "1 errors" in lines[-1] and "best 44 by submission 3" in lines[-1]


def test_the_picture_is_a_png() -> None:
    pytest.importorskip("matplotlib")
    assert draw_picture(scores(*RUN)).startswith(b"\x89PNG")


def test_the_command_writes_the_figures_and_refuses_a_linked_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/scores.json").write_text(json.dumps(list(RUN)))
    assert main(["metrics", str(tmp_path / "run")]) == 0
    assert json.loads((tmp_path / "run/reports/metrics.json").read_text())["errors"] == 1
    assert "best 44 by submission 3" in capsys.readouterr().out
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked/scores.json").write_text("[]")
    (tmp_path / "linked/reports").symlink_to(tmp_path)
    assert main(["metrics", str(tmp_path / "linked")]) == 1
    assert "a link" in capsys.readouterr().err and not (tmp_path / "metrics.json").exists()
