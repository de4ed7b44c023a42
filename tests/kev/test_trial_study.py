"""A study runs the trials of its plan, one runner at a time, and ranks what they came to."""

import json
from pathlib import Path
from typing import Any

import pytest
from killed import Killed
from linear_trial import CONFIG, job, load, study, tools, train_linear, write_plan

from kev import files
from kev.errors import DamagedFile, LockHeld, NotFound, Refused
from kev.records.plan import TrialConfig
from kev.trial.job import run_trial
from kev.trial.ranking import aggregate
from kev.trial.study import plan_jobs, resume_study, run_study, unbegun_jobs


def test_a_study_runs_its_plan_and_ranks_it_beside_its_baseline(tmp_path: Path) -> None:
    mine = study(tmp_path)
    plan = write_plan(tmp_path, [{**CONFIG, "lr": 1e-4}, {**CONFIG, "lr": 2e-4}, {**CONFIG, "seed": 1}])
    run_trial(job(tmp_path / "older"), tools())
    jobs = plan_jobs(mine, plan, [tmp_path / "older"])
    ranked = run_study(mine, jobs, tools(), tmp_path / "runs")
    lines = [json.loads(line) for line in (mine.directory / "results.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == [line["id"] for line in ranked.lines]
    assert {line["id"] for line in lines} == {"00-trial-0", "01-trial-1", "02-trial-2", "03-existing-0"}
    assert [line["objective"] for line in lines] == sorted((line["objective"] for line in lines), reverse=True)
    by_id = {line["id"]: line for line in lines}
    assert by_id["03-existing-0"]["legacy"] and by_id["00-trial-0"]["paired_ci95"] is None
    assert by_id["01-trial-1"]["paired_ci95"] == [0.0, 0.0], "the same records give the same linear model"
    comparison = load(mine.directory / "01-trial-1" / "comparison.json")
    assert comparison["baseline"] == "00-trial-0" and not comparison["candidate_for_locked_test"]
    assert "transfer_brier_not_worse" in by_id["01-trial-1"]["gates"]["checks"]
    with pytest.raises(Refused, match="never used again"):
        run_study(mine, jobs, tools(), tmp_path / "runs")
    with pytest.raises(Refused, match="is there already"):
        aggregate(mine.directory)


def test_a_failed_trial_is_noted_and_the_rest_is_gone_on_with_by_name(tmp_path: Path) -> None:
    mine = study(tmp_path)

    def second_fails(config: TrialConfig, *arguments: Any, **settings: Any) -> None:
        if config.seed == 1:
            raise Refused("no such base")
        train_linear(config, *arguments, **settings)

    jobs = plan_jobs(mine, write_plan(tmp_path, [CONFIG, {**CONFIG, "seed": 1}]), [])
    with pytest.raises(Refused, match="no such base"):
        run_study(mine, jobs, tools(train=second_fails), tmp_path / "runs")
    [line] = (mine.directory / "results.jsonl").read_text().splitlines()
    assert json.loads(line) == {"id": "01-trial-1", "status": "failed", "error": "no such base"}
    ranked = resume_study(mine, tools(), tmp_path / "runs")
    assert [(line["id"], line["status"]) for line in ranked.lines] == [
        ("00-trial-0", "complete"), ("01-trial-1", "failed"),
    ]  # fmt: skip


def test_a_killed_study_is_gone_on_with_and_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    plan = write_plan(tmp_path, [CONFIG])

    def killed(*arguments: Any, **settings: Any) -> None:
        raise Killed

    with pytest.raises(Killed):
        run_study(study(tmp_path), plan_jobs(study(tmp_path), plan, []), tools(train=killed), tmp_path / "runs")
    ranked = resume_study(study(tmp_path), tools(), tmp_path / "runs")
    whole = run_study(
        study(tmp_path, "other"), plan_jobs(study(tmp_path, "other"), plan, []), tools(), tmp_path / "runs"
    )
    assert ranked.lines[0]["objective"] == whole.lines[0]["objective"]


def test_trials_that_had_not_begun_begin_when_the_plan_is_given_again(tmp_path: Path) -> None:
    mine = study(tmp_path)
    plan = write_plan(tmp_path, [CONFIG, {**CONFIG, "seed": 1}, {**CONFIG, "seed": 2}])
    jobs = plan_jobs(mine, plan, [])

    def killed(config: TrialConfig, *arguments: Any, **settings: Any) -> None:
        if config.seed == 1:
            raise Killed
        train_linear(config, *arguments, **settings)

    with pytest.raises(Killed):
        run_study(mine, jobs, tools(train=killed), tmp_path / "runs")
    (mine.directory / "02-trial-2").mkdir()  # killed before it wrote anything
    assert [each.id for each in unbegun_jobs(mine, jobs)] == ["02-trial-2"]
    for planned, ended in (([], {"00-trial-0", "01-trial-1"}), (jobs, {each.id for each in jobs})):
        assert {line["id"] for line in resume_study(mine, tools(), tmp_path / "runs", planned).lines} == ended


def test_a_study_is_not_gone_on_with_by_another_plan(tmp_path: Path) -> None:
    mine = study(tmp_path)
    run_study(mine, plan_jobs(mine, write_plan(tmp_path, [CONFIG, CONFIG]), []), tools(), tmp_path / "runs")
    before = (mine.directory / "results.jsonl").read_bytes()
    for entries, words in (
        ([CONFIG], "its 01-trial-1 is none of this plan's trials"),
        ([CONFIG, {**CONFIG, "seed": 1}, CONFIG], "01-trial-1: was begun with another configuration"),
    ):
        with pytest.raises(Refused, match=words):
            resume_study(mine, tools(), tmp_path / "runs", plan_jobs(mine, write_plan(tmp_path, entries), []))
    assert (mine.directory / "results.jsonl").read_bytes() == before
    with pytest.raises(NotFound):
        resume_study(study(tmp_path, "nowhere"), tools(), tmp_path / "runs")


def test_one_runner_works_at_a_time(tmp_path: Path) -> None:
    mine = study(tmp_path)
    with files.locked(tmp_path / "runs" / ".research.lock"), pytest.raises(LockHeld):
        run_study(mine, [], tools(), tmp_path / "runs")
    assert not mine.directory.exists()


def test_a_damaged_result_hides_no_other_trial(tmp_path: Path) -> None:
    mine = study(tmp_path)
    run_study(mine, plan_jobs(mine, write_plan(tmp_path, [CONFIG]), []), tools(), tmp_path / "runs")
    (mine.directory / "01-trial-1").mkdir()
    (mine.directory / "01-trial-1" / "result.json").write_text("{")
    (mine.directory / "results.jsonl").unlink()
    ranked = aggregate(mine.directory)
    assert [line["id"] for line in ranked.lines] == ["00-trial-0"]
    assert [isinstance(fault, DamagedFile) for fault in ranked.faults] == [True]


def test_a_plan_is_read_as_everywhere(tmp_path: Path) -> None:
    with pytest.raises(DamagedFile, match="is no key of a trial; did you mean epochs"):
        plan_jobs(study(tmp_path), write_plan(tmp_path, [{**CONFIG, "epoch": 2}]), [])
    with pytest.raises(NotFound):
        plan_jobs(study(tmp_path), write_plan(tmp_path, [CONFIG]), [tmp_path / "nowhere"])
    (tmp_path / "bom.json").write_bytes(b"\xef\xbb\xbf" + json.dumps([CONFIG], indent=1).replace("\n", "\r\n").encode())
    assert len(plan_jobs(study(tmp_path), tmp_path / "bom.json", [])) == 1
    (tmp_path / "utf16.json").write_bytes(json.dumps([CONFIG]).encode("utf-16"))
    with pytest.raises(DamagedFile, match="UTF-16"):
        plan_jobs(study(tmp_path), tmp_path / "utf16.json", [])
