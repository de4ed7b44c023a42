"""The command trains a trial of a plan, and says in one line why it will not."""

import json
from pathlib import Path
from typing import Any

import pytest
from trainer_process import REPOSITORY

from kev.train.__main__ import main


def run(tmp_path: Path, plan: list[dict[str, Any]], *more: str) -> int:
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    suite = str(REPOSITORY / "evals" / "decision-v1")
    places = ["--plan", str(tmp_path / "plan.json"), "--suite", suite, "--out", str(tmp_path / "trial")]
    return main([*places, "--threads", "1", "--save-every-minutes", "0", *more])


def test_a_trial_of_a_plan_is_trained(
    tmp_path: Path, config: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, [config, {**config, "max_steps": 2}], "--index", "1") == 0
    assert (tmp_path / "trial" / "checkpoint" / "training_metrics.json").exists()
    assert capsys.readouterr().out.rstrip().endswith(f"saved {tmp_path}/trial/checkpoint")


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--index", "3"], "has 1 trials, and --index 3 is none of them"),
        (["--device", "cuda"], "no GPU that torch can use"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    tmp_path: Path, config: dict[str, Any], capsys: pytest.CaptureFixture[str], more: list[str], reason: str
) -> None:
    assert run(tmp_path, [config], *more) == 1
    told = capsys.readouterr().err
    assert reason in told and told.count("\n") == 1


def test_a_place_that_cannot_be_written_is_one_line(
    tmp_path: Path, config: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "trial").write_text("in the way")
    assert run(tmp_path, [{**config, "max_steps": 1}]) == 1
    told = capsys.readouterr().err
    assert "trial: file exists; what was acknowledged before is whole" in told and told.count("\n") == 1
