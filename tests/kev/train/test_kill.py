"""Kill -9 at any moment, go on, and the weights are bit for bit those of a run that was left alone."""

from pathlib import Path
from typing import Any

import pytest
from trainer_process import Training, kill_often

from kev import files


def full_run(out_dir: Path, config: dict[str, Any], records: list[dict[str, Any]], world: int) -> Training:
    """A full-weight run of two epochs that keeps a point every two steps and three snapshots."""
    trained = {**config, "epochs": 2, "batch": 2, "p_none_pair": 0.25, "save_every_steps": 2}
    return Training(trained, records, out_dir, world)


def check_every_step_is_logged(run: Training) -> None:
    metrics = files.read_json(run.out_dir / "checkpoint" / "training_metrics.json")
    assert set(run.steps_logged()) == set(range(1, metrics["optimizer_steps"] + 1))


@pytest.mark.parametrize(("world", "kills"), [(1, 4), (2, 2)])
def test_killed_runs_end_with_the_weights_of_one_that_was_left_alone(
    tmp_path: Path, full_config: dict[str, Any], records: list[dict[str, Any]], world: int, kills: int
) -> None:
    records = records[:16]
    expected = full_run(tmp_path / "alone", full_config, records, world).finish()
    killed = full_run(tmp_path / "killed", full_config, records, world)
    for run in kill_often(killed, kills=kills, seed=world):
        assert run.hashes() == expected
        check_every_step_is_logged(run)


@pytest.mark.soak
@pytest.mark.parametrize(("world", "kills"), [(1, 30), (2, 20)])
def test_fifty_kills_change_no_bit(
    tmp_path: Path, full_config: dict[str, Any], records: list[dict[str, Any]], world: int, kills: int
) -> None:
    expected = full_run(tmp_path / "alone", full_config, records, world).finish()
    killed = full_run(tmp_path / "killed", full_config, records, world)
    runs = list(kill_often(killed, kills=kills, seed=100 + world))
    assert all(run.hashes() == expected for run in runs)
    for run in runs:
        check_every_step_is_logged(run)
