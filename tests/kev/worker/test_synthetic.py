"""The synthetic objective leaves the files that training leaves, and a continuation ends in the same bits."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from killed import Killed
from small_suite import write_suites

from kev.baseline import read_records
from kev.clock import SystemClock
from kev.errors import KevError, Refused
from kev.records.plan import TrialConfig
from kev.records.step_metrics import read_step_metrics
from kev.worker.synthetic import is_synthetic, pace_of
from kev.worker.synthetic_schedule import Schedule
from kev.worker.training import TrainingRun, find_trainer
from kev.worker.training_files import ResumePoints, Snapshots, train_log

from .conftest import CONFIG, FULL


def run_in(directory: Path, config: dict[str, Any], *, stop_after: int | None = None, attempt: int = 1) -> list[str]:
    """Train in `directory` until the end, or until `stop_after` steps; what would be printed is returned."""
    suite, _ = write_suites(directory.parent)
    shown: list[str] = []
    steps = itertools.count()

    def check() -> None:
        if next(steps) == stop_after:
            raise Killed

    run = TrainingRun(
        TrialConfig.model_validate(config), suite, read_records(suite, "train"), directory, "/runs/night/00-trial-0",
        attempt, SystemClock(), train_log(directory / "train.log", shown.append), check,
    )  # fmt: skip
    find_trainer(run.config.base).train(run)
    return shown


def steps_in(directory: Path) -> list[int]:
    return [point.step for point in read_step_metrics((directory / "metrics.jsonl").read_bytes()).points]


def test_every_step_is_in_the_metrics_and_every_tenth_in_the_log(tmp_path: Path) -> None:
    shown = run_in(tmp_path / "trial", CONFIG)
    reading = read_step_metrics((tmp_path / "trial" / "metrics.jsonl").read_bytes())
    assert [point.step for point in reading.points] == list(range(1, 41))
    assert reading.damage == []
    assert all(point.ended is not None and point.monotonic and point.attempt == 1 for point in reading.points)
    lines = [line for line in shown if line.startswith("ep")]
    form = re.compile(r"ep[01] step \d+/40 loss \d+\.\d{3} kl 0\.000 anchor 0\.000 \d+\.\d{3}s/rec")
    assert [line.split()[2] for line in lines] == ["10/40", "20/40", "30/40", "40/40"]
    assert all(form.fullmatch(line) for line in lines)
    assert shown[0].startswith("device=cpu world=1 trainable params=")
    assert shown[-1] == "saved /runs/night/00-trial-0/checkpoint"
    log = (tmp_path / "trial" / "train.log").read_text()
    assert "training requests (holdout=['policies_held_out'])" in log and not any("requests" in each for each in shown)


def test_training_lowers_the_loss(tmp_path: Path) -> None:
    run_in(tmp_path / "trial", {**CONFIG, "epochs": 5, "batch": 8})
    losses = [p.loss for p in read_step_metrics((tmp_path / "trial" / "metrics.jsonl").read_bytes()).points]
    assert all(isinstance(loss, float) for loss in losses)
    assert sum(losses[-5:]) < sum(losses[:5])  # type: ignore[arg-type]


@pytest.mark.parametrize("killed_after", [1, 4, 5, 11, 23, 39])
def test_a_continuation_ends_in_the_same_bits_as_a_run_without_one(tmp_path: Path, killed_after: int) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    run_in(whole, FULL)
    with pytest.raises(Killed):
        run_in(cut, FULL, stop_after=killed_after)
    shown = run_in(cut, FULL, attempt=2)
    for name in ("checkpoint/synthetic.json", "snapshots/step-0000010/checkpoint/synthetic.json"):
        assert (cut / name).read_bytes() == (whole / name).read_bytes()
    resumed_at = killed_after // 4 * 4
    resumed = [line for line in shown if line.startswith("resumed from")]
    assert len(resumed) == (1 if resumed_at else 0)
    assert steps_in(cut) == [*range(1, killed_after + 1), *range(resumed_at + 1, 41)]


def test_two_runs_of_a_seed_are_equal_and_two_seeds_are_not(tmp_path: Path) -> None:
    for name, seed in (("one", 3), ("two", 3), ("three", 4)):
        run_in(tmp_path / name, {**CONFIG, "seed": seed})
    models = [(tmp_path / name / "checkpoint/synthetic.json").read_bytes() for name in ("one", "two", "three")]
    assert models[0] == models[1] != models[2]


def test_a_resume_point_counts_once_its_last_file_is_there_and_only_the_newest_stays(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        run_in(tmp_path / "trial", FULL, stop_after=9)
    place = tmp_path / "trial" / "checkpoint" / "resume"
    assert sorted(path.name for path in place.iterdir()) == ["latest.json", "step-0000008"]
    latest = json.loads((place / "latest.json").read_text())
    assert (latest["step"], latest["dir"], latest["world"]) == (8, "step-0000008", 1)
    assert latest["args"]["save_every_steps"] == 4 and len(latest["step_seconds"]) == 8
    (place / "latest.json").unlink()
    assert ResumePoints(place).latest() is None


def test_training_never_goes_on_from_a_point_made_with_other_arguments(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        run_in(tmp_path / "trial", FULL, stop_after=9)
    with pytest.raises(Refused, match="other arguments"):
        run_in(tmp_path / "trial", {**FULL, "lr": 5e-4}, attempt=2)


def test_a_full_weight_run_keeps_snapshots_and_no_resume_point_at_its_end(tmp_path: Path) -> None:
    run_in(tmp_path / "trial", FULL)
    found = Snapshots(tmp_path / "trial" / "snapshots").complete()
    assert list(found) == [10, 20, 30]
    assert found[20].steps == 40 and found[20].epoch == 1.0 and found[20].records_seen == 40
    assert not (tmp_path / "trial/checkpoint/resume").exists()
    metrics = json.loads((tmp_path / "trial/checkpoint/training_metrics.json").read_text())
    assert metrics["synthetic"] is True and metrics["optimizer_steps"] == 40
    assert [each["step"] for each in metrics["snapshots"]] == [10, 20, 30]


def test_a_complete_snapshot_is_never_rewritten(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        run_in(tmp_path / "trial", {**FULL, "save_every_steps": 8}, stop_after=11)
    path = tmp_path / "trial/snapshots/step-0000010/checkpoint/snapshot.json"
    before = path.stat().st_mtime_ns
    run_in(tmp_path / "trial", {**FULL, "save_every_steps": 8}, attempt=2)
    assert path.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("changes", "records", "total"),
    [({}, 40, 40), ({"max_steps": 7}, 40, 7), ({"max_steps": 0}, 40, 40), ({"batch": 4, "accum": 8}, 40, 4),
     ({"epochs": 1}, 41, 21), ({"max_steps": 99}, 40, 40)],
)  # fmt: skip
def test_the_total_counts_all_epochs_and_is_capped_by_max_steps(
    changes: dict[str, Any], records: int, total: int
) -> None:
    assert Schedule(TrialConfig.model_validate({**CONFIG, **changes}), records).total == total


def test_an_epoch_takes_every_record_once_and_the_next_takes_them_in_another_order() -> None:
    schedule = Schedule(TrialConfig.model_validate(CONFIG), 41)
    epochs = [[index for step in steps for index in schedule.indices(step)] for steps in (range(1, 22), range(22, 43))]
    assert [sorted(each) for each in epochs] == [list(range(41))] * 2
    assert epochs[0] != epochs[1]
    assert schedule.seen(21) == 41 and schedule.seen(42) == 82


@pytest.mark.parametrize("total", [1, 2, 9, 10, 11, 1000])
def test_the_rate_rises_to_its_highest_and_falls_however_few_steps_there_are(total: int) -> None:
    schedule = Schedule(TrialConfig.model_validate({**CONFIG, "max_steps": total}), 2000)
    rates = [schedule.rate(step) for step in range(1, schedule.total + 1)]
    assert max(rates) <= CONFIG["lr"] and all(rate > 0 for rate in rates)
    peak = rates.index(max(rates))
    assert rates[: peak + 1] == sorted(rates[: peak + 1]) and rates[peak:] == sorted(rates[peak:], reverse=True)


def test_only_the_sources_of_the_plan_are_trained_on(tmp_path: Path) -> None:
    run_in(tmp_path / "trial", {**CONFIG, "train_sources": "levels", "epochs": 1})
    assert max(steps_in(tmp_path / "trial")) == 7


@pytest.mark.parametrize(
    "base", ["synthetic/", "synthetic/quadratic", "synthetic/linear-0ms", "synthetic/linear-99999999ms"]
)
def test_a_synthetic_base_that_is_not_known_is_named(base: str) -> None:
    assert is_synthetic(base)
    with pytest.raises(KevError, match="synthetic/linear-<N>ms"):
        pace_of(base)


def test_a_base_that_is_no_synthetic_one_fails_in_one_line_and_trains_nothing(tmp_path: Path) -> None:
    with pytest.raises(KevError, match="is none of") as caught:
        run_in(tmp_path / "trial", {**CONFIG, "base": "org/Base-4B"})
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "trial").exists()


def test_a_paced_base_spends_its_time_on_each_step(tmp_path: Path) -> None:
    assert pace_of("synthetic/linear") == 0 and pace_of("synthetic/linear-250ms") == 0.25
    run_in(tmp_path / "trial", {**CONFIG, "base": "synthetic/linear-5ms", "max_steps": 3})
    seconds = json.loads((tmp_path / "trial/checkpoint/training_metrics.json").read_text())["step_seconds"]
    assert len(seconds) == 3 and min(seconds) >= 0.005
