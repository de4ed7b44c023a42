"""Benchmark jobs, locked reads and re-scores: what they leave, and what they refuse."""

import json
import shutil
from dataclasses import replace
from typing import Any

import pytest

from kev.errors import DamagedFile, Refused, UsageError
from kev.records.base import read_record
from kev.records.locked import LockedSummary
from kev.records.report import Report
from kev.records.result import Result
from kev.worker import duties
from kev.worker.flags import ReadOptions, parse_flags
from kev.worker.locked import run_locked_test
from kev.worker.orders import BenchmarkOrder, LockedOrder, RescoreOrder, parse_order
from kev.worker.reads import run_benchmark
from kev.worker.rescore import run_rescore
from kev.worker.trials import run_trial

from .conftest import Bench

CHECKPOINT = "/runs/night/00-trial-0/checkpoint"


@pytest.fixture
def trained(bench: Bench) -> Bench:
    run_trial(bench.order(), bench.container, bench.claims, bench.lines.append)
    bench.lines.clear()
    return bench


def read(bench: Bench, name: str = "b1", **changes: Any) -> dict[str, Any]:
    values = {"run": CHECKPOINT, "suite": "evals/small-transfer-v1", "name": name} | changes
    order = BenchmarkOrder(run_id=name, sources=bench.order().sources, **values)
    return run_benchmark(order, bench.container, bench.lines.append)


def locked(bench: Bench, name: str = "final-ungated", **changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "trial": "night/00-trial-0", "name": name, "decision": "evals/small-v1", "transfer": "evals/small-transfer-v1",
    }  # fmt: skip
    order = LockedOrder(run_id=name, sources=bench.order().sources, **(values | changes))
    return run_locked_test(order, bench.container, bench.lines.append)


def summary_of(bench: Bench, name: str = "final-ungated") -> LockedSummary:
    return read_record(bench.runs.committed / "locked" / name / "summary.json", LockedSummary)


def test_a_read_of_the_same_partition_gives_the_numbers_of_the_trial_itself(trained: Bench) -> None:
    answer = read(trained)
    report = read_record(trained.runs.committed / "bench/b1/report.json", Report)
    result = read_record(trained.trial / "result.json", Result)
    assert result.transfer is not None and report.clean == result.transfer.clean
    assert answer == {"name": "b1", "acc": report.clean["acc"], "brier": report.clean["brier"]}
    assert (report.run, report.split) == (CHECKPOINT, "development")
    assert report.to_json()["synthetic"] is True


def test_a_read_of_a_file_of_records_belongs_to_no_split(trained: Bench) -> None:
    root = trained.container.root
    shutil.copy(root / "evals/small-v1/development.jsonl", root / "evals/mine.jsonl")
    read(trained, suite="evals/mine.jsonl")
    assert read_record(trained.runs.path / "bench/b1/report.json", Report).split == "custom"


def run_by(bench: Bench, call: str | None) -> Bench:
    """The same machine, working on another call."""
    return replace(bench, container=replace(bench.container, call_id=call))


@pytest.mark.parametrize("kept", [["rows.json"], ["rows.json", "report.json"], ["failure.json"]])
def test_a_read_whose_container_was_lost_is_made_again_by_the_same_call(trained: Bench, kept: list[str]) -> None:
    answer = read(trained)
    out = trained.runs.path / "bench/b1"
    rows = (out / "rows.json").read_bytes()
    (out / "failure.json").write_text('{"error_type": "KeyboardInterrupt", "error": ""}')
    for path in out.iterdir():
        if path.name not in kept:
            path.unlink()
    assert read(trained) == answer
    assert (out / "rows.json").read_bytes() == rows and not (out / "failure.json").exists()


def test_a_call_whose_answer_was_lost_gives_it_again_and_reads_nothing(trained: Bench) -> None:
    answer = read(trained)
    trained.lines.clear()
    assert read(trained) == answer and trained.lines == []


@pytest.mark.parametrize("call", ["fc-2", None])
def test_a_used_name_is_refused_and_what_is_there_stays(trained: Bench, call: str | None) -> None:
    read(trained)
    before = (trained.runs.path / "bench/b1/report.json").read_bytes()
    trained = run_by(trained, call)
    with pytest.raises(Refused, match="never replaces another"):
        read(trained)
    assert (trained.runs.path / "bench/b1/report.json").read_bytes() == before


def test_a_read_that_dies_says_so_in_its_failure_and_is_no_report(trained: Bench) -> None:
    answer = read(trained, suite="evals/small-transfer-v1", flags="--split calibration")
    failure = json.loads((trained.runs.committed / "bench/b1/failure.json").read_text())
    assert answer["failed"]["type"] == failure["error_type"] == "NotFound"
    assert failure["coverage"]["evaluated_records"] == 0
    assert not (trained.runs.path / "bench/b1/report.json").exists()


def test_a_checkpoint_that_lost_its_model_is_not_read_as_a_synthetic_one(trained: Bench) -> None:
    path = trained.trial / "checkpoint/training_config.json"
    path.write_text(json.dumps({"args": {"base": "org/Base-4B"}}))
    assert "is none of" in read(trained)["failed"]["message"]


@pytest.mark.parametrize(
    ("flags", "options"),
    [("", ReadOptions()), ("--split calibration", ReadOptions("calibration")), ("--split=train", ReadOptions("train")),
     ("--allow-test", ReadOptions("test", allow_test=True)), ("--rotations 3", ReadOptions(rotations=3)),
     ("--date_facts --split train", ReadOptions("train", date_facts=True))],
)  # fmt: skip
def test_flags_are_read(flags: str, options: ReadOptions) -> None:
    assert parse_flags(flags) == options


@pytest.mark.parametrize(
    "flags", ["--split test", "--split", "--split nothing", "--rotations 0", "--rotations x", "--device cuda", "word"]
)
def test_flags_that_cannot_be_meant_are_refused(flags: str) -> None:
    with pytest.raises(UsageError):
        parse_flags(flags)


def test_the_test_split_is_read_only_where_it_is_asked_for(trained: Bench) -> None:
    read(trained, flags="--allow-test")
    assert read_record(trained.runs.path / "bench/b1/report.json", Report).split == "test"


def test_a_locked_read_covers_both_test_partitions_and_is_summarised(trained: Bench) -> None:
    locked(trained)
    summary = summary_of(trained)
    assert set(summary.suites) == {"decision", "transfer"}
    result = read_record(trained.trial / "result.json", Result)
    assert summary.temperature == result.temperature and summary.trial == "night/00-trial-0"
    report = read_record(trained.runs.committed / "locked/final-ungated/decision/report.json", Report)
    assert report.split == "test" and summary.suites["decision"].clean == report.clean


def test_a_locked_name_is_read_once(trained: Bench) -> None:
    locked(trained)
    with pytest.raises(Refused, match="a locked test is read once"):
        locked(trained)


def test_a_suite_that_was_read_is_left_out_and_the_other_is_read(trained: Bench) -> None:
    locked(trained, transfer=None)
    decision = (trained.runs.path / "locked/final-ungated/decision/report.json").read_bytes()
    locked(trained)
    summary = summary_of(trained)
    assert set(summary.suites) == {"decision", "transfer"} and summary.resumed_for == ["transfer"]
    assert (trained.runs.path / "locked/final-ungated/decision/report.json").read_bytes() == decision


def test_an_interrupted_locked_read_is_redone_only_where_that_is_asked_for(trained: Bench) -> None:
    left = trained.runs.path / "locked/final-ungated/transfer"
    left.mkdir(parents=True)
    with pytest.raises(Refused, match="--redo-interrupted"):
        locked(trained)
    locked(trained, redo_interrupted=True)
    assert summary_of(trained).interrupted_reads_redone == ["transfer"]


@pytest.mark.parametrize("content", ["", "null", "[]", '{"suites": null}', '{"suites": ["decision"]}'])
def test_a_summary_that_does_not_say_what_was_read_lets_nothing_be_read_again(trained: Bench, content: str) -> None:
    summary = trained.runs.path / "locked/final-ungated/summary.json"
    summary.parent.mkdir(parents=True)
    summary.write_text(content)
    with pytest.raises(DamagedFile, match=r"summary\.json"):
        locked(trained, redo_interrupted=True)
    assert summary.read_text() == content
    assert [path.name for path in summary.parent.iterdir()] == ["summary.json"]


def test_an_ungated_trial_is_read_only_under_a_name_that_says_so(trained: Bench) -> None:
    with pytest.raises(Refused, match="must end in -ungated"):
        locked(trained, name="final")
    result = json.loads((trained.trial / "result.json").read_text())
    (trained.trial / "result.json").write_text(json.dumps(result | {"gates": {"passed": True, "checks": {}}}))
    locked(trained, name="final")
    (trained.trial / "result.json").unlink()
    with pytest.raises(Refused, match="has no result"):
        locked(trained, name="other")


def test_what_was_read_is_summarised_and_committed_even_where_the_next_suite_fails(trained: Bench) -> None:
    root = trained.container.root
    (root / "evals/small-transfer-v1/test.jsonl").write_text("{}\n")
    with pytest.raises(DamagedFile):
        locked(trained)
    assert set(summary_of(trained).suites) == {"decision"}


def rescore(bench: Bench) -> dict[str, Any]:
    order = RescoreOrder(
        run_id="night/00-trial-0/rescore", sources=bench.order().sources, study="night", directory="00-trial-0",
        suite="evals/small-v1", transfer="evals/small-transfer-v1",
    )  # fmt: skip
    return run_rescore(order, bench.container, bench.lines.append)


def test_a_trained_trial_without_a_result_is_scored_again_to_the_same_numbers(trained: Bench) -> None:
    before = read_record(trained.trial / "result.json", Result)
    (trained.trial / "result.json").unlink()
    shutil.rmtree(trained.trial / "development")
    rescore(trained)
    after = read_record(trained.runs.committed / "night/00-trial-0/result.json", Result)
    assert (after.clean, after.temperature, after.gates) == (before.clean, before.temperature, before.gates)
    assert after.provenance is not None and after.provenance.to_json()["resumed_evaluation"] is True


def test_a_trial_with_a_result_is_never_scored_again(trained: Bench) -> None:
    with pytest.raises(Refused, match="final"):
        rescore(trained)


def test_a_trial_whose_training_did_not_end_has_nothing_to_score(trained: Bench) -> None:
    (trained.trial / "result.json").unlink()
    (trained.trial / "checkpoint/training_metrics.json").unlink()
    with pytest.raises(Refused, match="did not end"):
        rescore(trained)


def test_changed_evaluation_refuses_a_re_score_and_other_changes_are_noted(trained: Bench) -> None:
    (trained.trial / "result.json").unlink()
    (trained.container.root / "kev/report.py").write_text("CHANGED = 1\n")
    with pytest.raises(Refused, match=r"kev/report\.py"):
        rescore(trained)
    (trained.container.root / "kev/report.py").unlink()
    (trained.container.root / "modal_app.py").write_text("APP = 2\n")
    rescore(trained)
    provenance = json.loads((trained.trial / "provenance.json").read_text())
    assert provenance["resumed_with_changed_non_evaluator_files"] == ["modal_app.py"]


def test_an_expected_failure_of_a_read_travels_as_words(trained: Bench) -> None:
    order = LockedOrder(run_id="x", sources=trained.order().sources, trial="night/00-trial-0", name="final")
    answer = duties.Duties(trained.container).locked_test(order.to_json())
    assert set(answer) == {"refused"} and "must end in -ungated" in answer["refused"]


@pytest.mark.parametrize(
    "payload", [{}, {"run_id": 3}, [], None, {"run_id": "x", "sources": "y", "trial": 7, "name": "n"}]
)
def test_an_order_that_cannot_be_meant_names_its_key(payload: object) -> None:
    with pytest.raises(UsageError, match="LockedOrder"):
        parse_order(payload, LockedOrder)


def test_no_order_reaches_outside_the_volume(trained: Bench) -> None:
    assert "no path on the runs volume" in read(trained, run="/runs/../../etc/checkpoint")["failed"]["message"]
