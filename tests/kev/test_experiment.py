"""The command that runs a study here: what it says before, what it ranks after, whom it waits for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from linear_scorer import EVALS
from linear_trial import CONFIG, ROOT, job, study, tools, write_plan

from kev.errors import UsageError
from kev.experiment import is_running, main
from kev.trial.job import run_trial
from kev.trial.study import describe, plan_jobs, wait_for


def test_a_dry_run_says_what_would_be_done_and_does_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = write_plan(tmp_path, [{**CONFIG, "batch": 4, "accum": 2, "epochs": 2}])
    code = main(["--suite", str(EVALS / "decision-v1"), "--plan", str(plan), "--out", str(tmp_path / "runs" / "mine"),
                 "--root", str(ROOT), "--dry-run"])  # fmt: skip
    assert code == 0
    assert "00-trial-0: train LoRA r=16 on linear, 1,040 records, 260 steps of 8" in capsys.readouterr().out
    assert not (tmp_path / "runs").exists()
    scored_only = plan_jobs(study(tmp_path), plan, [tmp_path])[1]
    assert describe(scored_only) == f"01-existing-0: score {tmp_path}"


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        (1, "1 steps of 8, then score; no warm-up, since a tenth of them is no more than one; a single step runs at"),
        (10, "10 steps of 8, then score; no warm-up, since a tenth of them is no more than one"),
        (11, "11 steps of 8, then score; 1 of warm-up"),
        (130, "130 steps of 8, then score; 12 of warm-up"),
    ],
)
def test_a_plan_that_barely_warms_up_is_told_before_it_trains(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], steps: int, says: str
) -> None:
    plan = write_plan(tmp_path, [{**CONFIG, "max_steps": steps}])
    assert main(["--suite", str(EVALS / "decision-v1"), "--plan", str(plan), "--out", str(tmp_path / "mine"),
                 "--root", str(ROOT), "--dry-run"]) == 0  # fmt: skip
    said = capsys.readouterr().out.strip()
    assert says in said and (steps == 1) == ("trains next to nothing" in said)


def test_what_is_left_of_a_study_is_said_before_it_is_gone_on_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = study(tmp_path)
    run_trial(job(mine.directory / "00-trial-0"), tools())
    plan = write_plan(tmp_path, [CONFIG, {**CONFIG, "seed": 1}])
    arguments = ["--suite", str(EVALS / "decision-v1"), "--out", str(mine.directory), "--root", str(ROOT), "--resume"]
    assert main([*arguments, "--plan", str(plan), "--dry-run"]) == 0
    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith("01-trial-1: train ")
    assert main([*arguments, "--dry-run"]) == 0 and not capsys.readouterr().out


def test_the_command_ranks_what_was_pulled_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = study(tmp_path)
    run_trial(job(mine.directory / "00-trial-0"), tools())
    assert main(["--out", str(mine.directory), "--aggregate"]) == 0
    assert "00-trial-0: objective -" in capsys.readouterr().out
    assert main(["--out", str(mine.directory), "--aggregate"]) == 1
    assert "is there already" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--plan", "p"], ["--suite", "s"], ["--aggregate", "--resume"]])
def test_command_lines_that_cannot_be_meant_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["--out", "o", *arguments])
    assert refused.value.code == 2


def test_a_process_is_waited_for_until_it_is_gone() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    looks: list[bool] = []

    def end_it() -> None:
        looks.append(is_running(process.pid))
        process.communicate(b"\n")

    wait_for(process.pid, is_running, end_it)
    assert looks == [True]
    assert is_running(os.getpid())
    with pytest.raises(UsageError):
        wait_for(0, is_running, lambda: None)
