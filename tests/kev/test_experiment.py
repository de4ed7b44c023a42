"""A trial is trained, scored and judged once; what a kill left is gone on with; what changed meanwhile is refused."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from linear_scorer import EVALS, EncodedText, LinearScorer

from kev import files
from kev.errors import DamagedFile, KevError, LockHeld, NotFound, Refused, UsageError
from kev.evaluators import EVALUATOR_FILES, evaluator_hashes, is_evaluator_file
from kev.experiment import SNAPSHOT_FRACTIONS, is_running, main
from kev.linear import LinearModel, fit
from kev.predictors.local import LocalPredictor
from kev.reads.mechanism import TOLERANCES, check_mechanism
from kev.reads.records import select_partition
from kev.records.plan import TrialConfig
from kev.records.provenance import Provenance
from kev.records.result import Result
from kev.suite import Suite, open_suite
from kev.train.mix import trial_records
from kev.trial.gates import gates_against, gates_of
from kev.trial.job import Tools, TrialJob, run_trial
from kev.trial.provenance import config_sha256
from kev.trial.ranking import aggregate
from kev.trial.scoring import Scored
from kev.trial.study import Study, describe, plan_jobs, resume_study, run_study, wait_for

ROOT = EVALS.parent


@dataclass
class LinearTrialScorer(LinearScorer):
    """The linear model as a trial's checkpoint."""

    dtype: str = "fp32"

    @property
    def measured(self) -> dict[str, Any]:
        return {"requested": "linear", "head_sha256": "0" * 64, "weights_sha256": str(self.model.weights.tolist())}

    def in_context(self, manifest: Mapping[str, Any]) -> "LinearTrialScorer":
        return self

    def environment(self) -> dict[str, Any]:
        return {"backend": "numpy"}


def train_linear(
    config: TrialConfig, records: Sequence[Any], directory: Path, *, resume: bool, clock: Any, options: Any
) -> None:
    """Really trains, on the records it was given; the seed decides how many of them."""
    model = fit(list(records)[: 200 + 100 * config.seed])
    checkpoint = directory / "checkpoint"
    files.write_atomic(checkpoint / "weights.json", files.dump_json(model.weights.tolist()))
    files.write_atomic(checkpoint / "head.pt", b"linear")
    files.write_atomic(
        checkpoint / "training_metrics.json", files.dump_json({"optimizer_steps": 20, "records_seen": 9})
    )


def open_linear(checkpoint: Path) -> LinearTrialScorer:
    return LinearTrialScorer(LinearModel(np.array(files.read_json(checkpoint / "weights.json")), {}))


def tools(**changes: Any) -> Tools:
    return Tools(**{"train": train_linear, "open_scorer": open_linear, "say": lambda _: None, **changes})


def suite(name: str) -> Suite:
    return open_suite(EVALS / name)


CONFIG = {"base": "linear", "base_revision": "0" * 40, "score_records": 60}


def job(directory: Path, **changes: Any) -> TrialJob:
    config = {**CONFIG, **changes}
    return TrialJob(directory, config, suite("decision-v1"), suite("transfer-v1"), ROOT)


def load(path: Path) -> Any:
    return json.loads(path.read_text())


def test_a_trial_ends_in_a_result_that_every_reader_of_results_accepts(tmp_path: Path) -> None:
    result = run_trial(job(tmp_path / "00-trial-0"), tools())
    written = load(tmp_path / "00-trial-0" / "result.json")
    assert written == json.loads(json.dumps(result))
    record = Result.model_validate(written)
    assert record.gates is not None and record.transfer is not None and record.training_resources is not None
    assert record.gates.checks.keys() == {
        "complete_coverage", "isolation_and_packing", "transfer_complete", "heldout_pairs_at_least_70pct",
        "transfer_confident_errors_below_10pct",
    }  # fmt: skip
    assert (record.promotable, record.test_evaluated) == (False, False)
    for part in ("calibration", "development", "transfer"):
        names = {path.name for path in (tmp_path / "00-trial-0" / part).iterdir()}
        assert {"predictions.jsonl", "rows.json", "report.json"} <= names
    fit_ = written["calibration_fit"]
    assert fit_ == load(tmp_path / "00-trial-0" / "calibration" / "temperature.json")
    assert fit_["temperature"] == written["temperature"] and "neither served nor shipped" in fit_["role"]
    provenance = Provenance.model_validate(load(tmp_path / "00-trial-0" / "provenance.json"))
    assert provenance.config == {**CONFIG} and provenance.measured_checkpoint is not None
    assert set(evaluator_hashes(ROOT)) <= set(provenance.source_hashes)


def test_the_size_of_in_trial_reads_is_registered_in_the_plan(tmp_path: Path) -> None:
    small = run_trial(job(tmp_path / "a"), tools())["coverage"]
    assert 60 <= small["requested_records"] < 80
    with pytest.raises(Exception, match="score_records"):
        TrialConfig.model_validate({**CONFIG, "score_records": 0})


def test_a_trial_is_run_once(tmp_path: Path) -> None:
    run_trial(job(tmp_path / "a"), tools())
    before = (tmp_path / "a" / "result.json").read_bytes()
    for resume in (False, True):
        with pytest.raises(Refused, match=r"has a result\.json already"):
            run_trial(job(tmp_path / "a"), tools(), resume=resume)
    assert (tmp_path / "a" / "result.json").read_bytes() == before


def test_what_ends_a_trial_is_final_and_written_down(tmp_path: Path) -> None:
    def diverge(*arguments: Any, **settings: Any) -> None:
        raise FloatingPointError("the loss is nan\x1b[31m")

    with pytest.raises(FloatingPointError):
        run_trial(job(tmp_path / "a"), tools(train=diverge))
    assert load(tmp_path / "a" / "failed.json") == {"error": "FloatingPointError: the loss is nan\\x1b[31m"}
    with pytest.raises(Refused, match=r"has a failed\.json already"):
        run_trial(job(tmp_path / "a"), tools(), resume=True)


class Killed(BaseException):
    """What a signal looks like from inside: nothing that handles failures may see it as one."""


@dataclass
class DyingScorer(LinearTrialScorer):
    passes: int = 2

    def score(self, encoded: Sequence[EncodedText]) -> list[list[list[float]]]:
        if not self.passes:
            raise Killed
        self.passes -= 1
        return super().score(encoded)


def test_a_trial_that_was_killed_while_scoring_is_not_trained_again(tmp_path: Path) -> None:
    def dying(checkpoint: Path) -> DyingScorer:
        return DyingScorer(open_linear(checkpoint).model, passes=3)

    with pytest.raises(Killed):
        run_trial(job(tmp_path / "a"), tools(open_scorer=dying))
    assert not (tmp_path / "a" / "failed.json").exists()
    trained: list[Path] = []

    def never(*arguments: Any, **settings: Any) -> None:
        trained.append(tmp_path)

    resumed = run_trial(job(tmp_path / "a"), tools(train=never), resume=True)
    whole = run_trial(job(tmp_path / "b"), tools())
    assert not trained
    assert resumed["clean"] == whole["clean"] and resumed["transfer"]["clean"] == whole["transfer"]["clean"]
    assert len(load(tmp_path / "a" / "provenance.json")["continued"]) == 1
    for part in ("calibration", "development", "transfer"):
        rows = [(tmp_path / name / part / "rows.json").read_bytes() for name in ("a", "b")]
        assert rows[0] == rows[1]


def begun_with(tmp_path: Path, changed: str, *, trained: bool) -> TrialJob:
    """A trial that was begun when one source file had other bytes."""
    begun = job(tmp_path / "a")

    def stop(*arguments: Any, **settings: Any) -> None:
        if trained:
            train_linear(*arguments, **settings)
        raise Killed

    with pytest.raises(Killed):
        run_trial(begun, tools(train=stop))
    path = tmp_path / "a" / "provenance.json"
    provenance = load(path)
    provenance["source_hashes"][changed] = "f" * 64
    path.write_text(json.dumps(provenance))
    return begun


@pytest.mark.parametrize(
    ("changed", "trained", "refused"),
    [
        ("kev/session.py", False, "go on training with other sources"),
        ("kev/session.py", True, None),
        ("kev/metrics/point.py", True, "scored by other evaluator files"),
        ("kev/model/head.py", True, "scored by other evaluator files"),
        ("kev/gone.py", True, None),
    ],
)
def test_a_trial_goes_on_only_with_the_sources_that_decide_its_figures(
    tmp_path: Path, changed: str, trained: bool, refused: str | None
) -> None:
    begun = begun_with(tmp_path, changed, trained=trained)
    if refused is None:
        run_trial(begun, tools(), resume=True)
        provenance = load(tmp_path / "a" / "provenance.json")
        assert provenance["resumed_with_changed_non_evaluator_files"] == [changed]
    else:
        with pytest.raises(Refused, match=refused):
            run_trial(begun, tools(), resume=True)


def test_evaluator_files_are_those_that_decide_a_score() -> None:
    for name in ("kev/metrics/bootstrap.py", "kev/predictors/remote.py", "kev/reads/rows.py", "kev/suite.py",
                 "kev/model/mask.py", "kev/data/render.py", "kev/rounds/comparison.py", "kev/experiment.py",
                 "kev/trial/gates.py", "kev/checkpoint.py"):  # fmt: skip
        assert is_evaluator_file(name)
        assert name in evaluator_hashes(ROOT)
    for name in ("kev/session.py", "kev/budget.py", "kev/serve.py", "kev/records/lease.py", "kev/train/log.py"):
        assert not is_evaluator_file(name)
    assert all((ROOT / name).exists() for name in EVALUATOR_FILES)
    assert SNAPSHOT_FRACTIONS == "0.25,0.5,0.75"


@dataclass
class LeakyScorer(LinearScorer):
    """A model whose answers move a little with the number of questions it is asked."""

    leak: float = 0.0

    def score(self, encoded: Sequence[EncodedText]) -> list[list[list[float]]]:
        shift = [self.leak * len(each.request.questions) for each in encoded]
        scored = super().score(encoded)
        return [[[logits[0] + by, *logits[1:]] for logits in each] for each, by in zip(scored, shift, strict=True)]


@pytest.mark.parametrize(
    ("leak", "dtype", "passes"),
    [(0.0, "fp32", True), (0.02, "fp32", False), (0.02, "bf16", True), (0.5, "bf16", False), (0.02, "fp64", False)],
)
def test_isolation_is_held_to_the_tolerance_of_the_type_it_was_computed_in(
    leak: float, dtype: str, passes: bool
) -> None:
    records = select_partition(suite("decision-v1"), "development").records
    model = fit(trial_records(TrialConfig.model_validate(CONFIG), suite("decision-v1"), ROOT))
    check = check_mechanism(LocalPredictor(LeakyScorer(model, leak=leak), batch=1), records, dtype)
    assert check.n == 8 and check.passed == passes
    assert check.tolerance == TOLERANCES.get(dtype, TOLERANCES["fp32"])


def test_a_check_that_could_look_at_nothing_is_not_passed() -> None:
    check = check_mechanism(LocalPredictor(LinearScorer(fit([]))), [], "fp32")
    assert not check.passed


def report(**changes: Any) -> dict[str, Any]:
    return {
        "clean": {"acc": 0.8, "brier": 0.3, "confident_error_rate": 0.05},
        "tasks": {"a": {"acc": 0.8}, "b": {"acc": 0.6}},
        "variants": {"none_present": {"acc": 0.7}, "none_absent": {"acc": 0.5}},
        "permutation": {"flip_rate": 0.1},
        "paired_flip": {"both_correct_rate": 0.7},
        "coverage": {"requested_records": 9, "evaluated_records": 9, "rejected_records": 0},
        **changes,
    }


@pytest.mark.parametrize(
    ("change", "gate"),
    [
        ({"tasks": {"a": {"acc": 0.749}, "b": {"acc": 0.9}}}, "no_task_accuracy_regression_over_5pp"),
        ({"variants": {"none_present": {"acc": 0.649}, "none_absent": {"acc": 0.5}}}, "none_present_not_worse"),
        ({"variants": {"none_present": {"acc": 0.7}, "none_absent": {"acc": 0.44}}}, "none_absent_not_worse"),
        ({"permutation": {"flip_rate": 0.151}}, "permutation_not_worse"),
        ({"transfer": report(clean={"acc": 0.779, "brier": 0.3})}, "transfer_accuracy_not_worse"),
        ({"transfer": report(clean={"acc": 0.8, "brier": 0.321})}, "transfer_brier_not_worse"),
    ],
)
def test_each_gate_against_the_baseline_fails_alone_and_at_its_margin(change: dict[str, Any], gate: str) -> None:
    baseline = report(transfer=report())
    at_margin = report(
        tasks={"a": {"acc": 0.75}, "b": {"acc": 0.55}},
        variants={"none_present": {"acc": 0.65}, "none_absent": {"acc": 0.45}},
        permutation={"flip_rate": 0.15},
        transfer=report(clean={"acc": 0.78, "brier": 0.32}),
    )
    assert all(gates_against(at_margin, baseline).values())
    checks = gates_against({**at_margin, **change}, baseline)
    assert [name for name, passed in checks.items() if not passed] == [gate]


def test_a_gate_whose_figure_is_missing_is_not_passed() -> None:
    mechanism = check_mechanism(LocalPredictor(LinearScorer(fit([]))), [], "fp32")
    transfer = report(paired_flip=None, clean={"confident_error_rate": None})
    checks = gates_of(Scored(report(), transfer, None, mechanism))["checks"]
    assert [name for name, passed in checks.items() if passed] == ["complete_coverage", "transfer_complete"]


def study(tmp_path: Path, name: str = "mine") -> Study:
    return Study(tmp_path / "runs" / name, suite("decision-v1"), suite("transfer-v1"), ROOT)


def write_plan(tmp_path: Path, entries: Sequence[Mapping[str, Any]]) -> Path:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(entries))
    return path


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


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"train_sources": "elsewhere"}, "no record to train on"),
        ({"replay": 5000, "data": "evals/skills-v1/train.jsonl"}, "replay asks for 5,000"),
        ({"data": "evals/transfer-v1/development.jsonl"}, "be trained on"),
        ({"data": "evals/none.jsonl"}, "no such file"),
    ],
)
def test_records_that_may_not_be_trained_on_are_refused_before_anything_is_written(
    tmp_path: Path, config: dict[str, Any], says: str
) -> None:
    with pytest.raises(KevError, match=says):
        run_trial(job(tmp_path / "a", **config), tools())
    assert not (tmp_path / "a").exists()


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


def test_a_dry_run_says_what_would_be_done_and_does_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = write_plan(tmp_path, [{**CONFIG, "batch": 4, "accum": 2, "epochs": 2}])
    code = main(["--suite", str(EVALS / "decision-v1"), "--plan", str(plan), "--out", str(tmp_path / "runs" / "mine"),
                 "--root", str(ROOT), "--dry-run"])  # fmt: skip
    assert code == 0
    assert "00-trial-0: train LoRA r=16 on linear, 1,040 records, 260 steps of 8" in capsys.readouterr().out
    assert not (tmp_path / "runs").exists()
    scored_only = plan_jobs(study(tmp_path), plan, [tmp_path])[1]
    assert describe(scored_only) == f"01-existing-0: score {tmp_path}"


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


def test_the_digest_of_a_configuration_is_of_its_compact_json_in_its_own_order() -> None:
    assert config_sha256({"b": 1, "a": [1, 2]}) == config_sha256(json.loads('{"b": 1, "a": [1, 2]}'))
    assert config_sha256({"a": 1, "b": 2}) != config_sha256({"b": 2, "a": 1})
    assert config_sha256({"a": [1]}) == "ff5464c34287e9ec505b9f76573a4cb0bd408c96c6537b458fdd993fc7c615ce"
