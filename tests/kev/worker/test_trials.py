"""A trial in its container: what it leaves, in which order, and when it leaves everything alone."""

import json
from pathlib import Path
from typing import Any

import pytest
from killed import Killed

from kev.errors import KevError, Refused
from kev.records.base import read_record
from kev.records.lease import Lease
from kev.records.provenance import Provenance
from kev.records.report import Report
from kev.records.result import FailedTrial, Result
from kev.records.rows import read_rows
from kev.trial import scoring
from kev.worker import synthetic_training
from kev.worker.lease import HeartbeatThread
from kev.worker.orders import LeaseEvidence, TrialOrder
from kev.worker.trials import run_trial

from .conftest import CONFIG, FULL, Bench


def run(bench: Bench, order: TrialOrder | None = None) -> dict[str, Any]:
    return run_trial(order or bench.order(), bench.container, bench.claims, bench.lines.append)


def lease_of(bench: Bench) -> Lease:
    return read_record(bench.leases.path / "night/00-trial-0/attempt.json", Lease)


def kill_at(monkeypatch: pytest.MonkeyPatch, step: int, error: BaseException | None = None) -> None:
    """Let the next training be killed, or raise `error`, when it is about to take `step`."""
    take = synthetic_training._Training._take_step

    def taking(self: Any) -> None:
        if self._state.step + 1 == step:
            monkeypatch.setattr(synthetic_training._Training, "_take_step", take)
            raise error or Killed
        take(self)

    monkeypatch.setattr(synthetic_training._Training, "_take_step", taking)


def test_a_trial_leaves_everything_a_reader_expects(bench: Bench) -> None:
    answer = run(bench)
    result = read_record(bench.trial / "result.json", Result)
    assert answer == {"label": "trial-0", "objective": result.objective, "gates_passed": False}
    assert result.to_json()["synthetic"] is True
    assert result.transfer is not None and result.provenance is not None and result.training_resources is not None
    assert result.temperature == json.loads((bench.trial / "calibration/temperature.json").read_text())["temperature"]
    assert result.gates is not None and set(result.gates.checks) == {
        "complete_coverage", "isolation_and_packing", "transfer_complete", "heldout_pairs_at_least_70pct",
        "transfer_confident_errors_below_10pct",
    }  # fmt: skip
    for name, records in (("calibration", 16), ("development", None), ("transfer", None)):
        report = read_record(bench.trial / name / "report.json", Report)
        rows = read_rows(bench.trial / name / "rows.json")
        assert len(rows) == report.coverage.evaluated_questions == report.coverage.requested_questions
        assert records in (None, report.coverage.evaluated_records)
        predictions = (bench.trial / name / "predictions.jsonl").read_text().splitlines()
        assert [json.loads(line)["id"] for line in predictions] == list(dict.fromkeys(row.id for row in rows))
    provenance = read_record(bench.trial / "provenance.json", Provenance)
    assert provenance.config == CONFIG and set(provenance.source_hashes) == {"kev/__init__.py", "modal_app.py"}
    assert any(line == "evaluated 16/16" for line in bench.lines)


def test_all_of_a_trial_is_committed_before_its_lease_is_ended(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    commit = bench.leases.commit

    def look() -> None:
        path = bench.leases.path / "night/00-trial-0/attempt.json"
        seen.append(
            (json.loads(path.read_text())["ended"], (bench.runs.committed / "night/00-trial-0/result.json").exists())
        )
        commit()

    monkeypatch.setattr(bench.leases, "commit", look)
    run(bench)
    assert [(ended is not None, there) for ended, there in seen] == [(False, False), (True, True)]
    lease = lease_of(bench)
    assert (lease.nonce, lease.attempt, lease.call_id) == ("a" * 32, 1, "fc-1")


def test_the_manifest_names_every_file_of_the_trial_with_its_hash(bench: Bench) -> None:
    run(bench)
    listed = json.loads((bench.trial / "manifest.json").read_text())["files"]
    there = {p.relative_to(bench.trial).as_posix() for p in bench.trial.rglob("*") if p.is_file()}
    assert set(listed) == {
        name for name in there if Path(name).name != "manifest.json" and Path(name).suffix != ".lock"
    }
    assert "result.json" in listed and listed["result.json"]["bytes"] == (bench.trial / "result.json").stat().st_size


def test_a_second_container_leaves_a_trial_alone_while_its_lease_is_held(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_at(monkeypatch, 6)
    monkeypatch.setattr("kev.worker.lease.HeartbeatThread.end", lambda self: self._stop.set())
    with pytest.raises(Killed):
        run(bench, bench.order(FULL))
    steps = (bench.trial / "metrics.jsonl").read_bytes()
    answer = run(bench, bench.order(FULL, nonce="b" * 32, attempt=2))
    assert set(answer) == {"label", "refused"} and "held by attempt 1 (fc-1)" in answer["refused"]
    assert (bench.trial / "metrics.jsonl").read_bytes() == steps
    assert lease_of(bench).nonce == "a" * 32


def test_evidence_of_a_silent_holder_lets_the_next_attempt_go_on_from_the_resume_point(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_at(monkeypatch, 10)
    monkeypatch.setattr("kev.worker.lease.HeartbeatThread.end", lambda self: self._stop.set())
    with pytest.raises(Killed):
        run(bench, bench.order(FULL))
    monkeypatch.undo()
    held = lease_of(bench)
    seen = LeaseEvidence(claims=1, nonce=held.nonce, heartbeat=held.heartbeat)
    answer = run(bench, bench.order(FULL, nonce="b" * 32, attempt=2, evidence=seen))
    assert "objective" in answer
    assert any(
        line.startswith("resumed from /runs/night/00-trial-0/checkpoint/resume/step-0000008") for line in bench.lines
    )
    provenance = read_record(bench.trial / "provenance.json", Provenance)
    assert provenance.continued is not None and len(provenance.continued) == 1
    lease = lease_of(bench)
    assert lease.previous is not None and (lease.nonce, lease.previous.nonce) == ("b" * 32, "a" * 32)


def test_a_trial_that_was_interrupted_ends_its_lease_and_loses_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_at(monkeypatch, 10)
    with pytest.raises(Killed):
        run(bench, bench.order(FULL))
    assert lease_of(bench).ended is not None
    assert (bench.runs.committed / "night/00-trial-0/checkpoint/resume/latest.json").exists()
    answer = run(bench, bench.order(FULL, nonce="b" * 32, attempt=2))
    assert "objective" in answer


@pytest.mark.parametrize("config", [CONFIG, FULL])
def test_an_attempt_that_the_platform_restarts_goes_on_as_the_same_attempt(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, config: dict[str, Any]
) -> None:
    kill_at(monkeypatch, 10)
    with pytest.raises(Killed):
        run(bench, bench.order(config))
    assert "objective" in run(bench, bench.order(config))
    provenance = read_record(bench.trial / "provenance.json", Provenance)
    assert provenance.continued is None


def test_a_trial_that_was_killed_while_it_was_scored_makes_the_reads_it_lacks_and_is_not_trained_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = scoring.read

    def dying(predictor: Any, selection: Any, out: Path, say: Any) -> Any:
        if out.name == "transfer":
            raise Killed
        return read(predictor, selection, out, say)

    monkeypatch.setattr(scoring, "read", dying)
    with pytest.raises(Killed):
        run(bench, bench.order(FULL))
    monkeypatch.undo()
    steps, left = (
        (bench.trial / "metrics.jsonl").read_bytes(),
        (bench.trial / "development/rows.json").stat().st_mtime_ns,
    )
    assert "objective" in run(bench, bench.order(FULL, nonce="b" * 32, attempt=2))
    assert (bench.trial / "metrics.jsonl").read_bytes() == steps
    assert (bench.trial / "development/rows.json").stat().st_mtime_ns == left


def test_an_exception_of_a_full_weight_trial_is_final_and_is_returned(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_at(monkeypatch, 6, ArithmeticError("loss is\nno number"))
    answer = run(bench, bench.order(FULL))
    assert answer == {"label": "trial-0", "failed": "ArithmeticError: loss is\\nno number"}
    assert read_record(bench.runs.committed / "night/00-trial-0/failed.json", FailedTrial).error == answer["failed"]
    again = run(bench, bench.order(FULL, nonce="b" * 32, attempt=2))
    assert again == answer


def test_an_exception_of_a_lora_trial_is_on_record_and_raised(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    kill_at(monkeypatch, 6, ArithmeticError("no number"))
    with pytest.raises(ArithmeticError):
        run(bench)
    assert read_record(bench.trial / "failed.json", FailedTrial).error == "ArithmeticError: no number"
    assert lease_of(bench).ended is not None


def test_a_lora_trial_whose_directory_exists_is_refused(bench: Bench) -> None:
    run(bench)
    result = (bench.trial / "result.json").read_bytes()
    with pytest.raises(Refused, match="never trained twice"):
        run(bench, bench.order(nonce="b" * 32))
    (bench.trial / "result.json").unlink()
    with pytest.raises(Refused, match="begun by another launch"):
        run(bench, bench.order(nonce="b" * 32))
    assert not (bench.trial / "failed.json").exists() and result


@pytest.mark.parametrize("config", [CONFIG, FULL])
def test_a_trial_whose_answer_was_lost_with_its_container_gives_it_again(bench: Bench, config: dict[str, Any]) -> None:
    answer = run(bench, bench.order(config))
    result = (bench.trial / "result.json").read_bytes()
    bench.lines.clear()
    assert run(bench, bench.order(config)) == answer
    assert (bench.trial / "result.json").read_bytes() == result
    assert not any("step" in line for line in bench.lines)


@pytest.mark.parametrize("config", [CONFIG, FULL])
def test_a_call_whose_container_was_lost_without_a_word_goes_on_with_its_own_trial_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, config: dict[str, Any]
) -> None:
    kill_at(monkeypatch, 10)
    monkeypatch.setattr("kev.worker.lease.HeartbeatThread.end", lambda self: self._stop.set())
    with pytest.raises(Killed):
        run(bench, bench.order(config))
    monkeypatch.undo()
    assert "objective" in run(bench, bench.order(config))
    assert lease_of(bench).ended is not None


def test_a_first_attempt_never_goes_on_with_what_another_launch_began(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_at(monkeypatch, 6)
    with pytest.raises(Killed):
        run(bench, bench.order(FULL))
    with pytest.raises(Refused, match="begun by another launch"):
        run(bench, bench.order(FULL, nonce="b" * 32, attempt=1))


def test_other_sources_than_the_launchers_are_refused_before_the_lease(bench: Bench) -> None:
    order = bench.order()
    (bench.container.root / "modal_app.py").write_text("APP = 2\n")
    with pytest.raises(Refused, match="not the launcher's"):
        run(bench, order)
    assert bench.claims.keys == set()


def test_a_continuation_with_changed_sources_is_refused_by_name_and_is_not_the_end_of_the_trial(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_at(monkeypatch, 6)
    with pytest.raises(Killed):
        run(bench, bench.order(FULL))
    (bench.container.root / "kev" / "__init__.py").write_text("VERSION = 2\n")
    answer = run(bench, bench.order(FULL, nonce="b" * 32, attempt=2))
    assert "kev/__init__.py" in answer["refused"] and not (bench.trial / "failed.json").exists()
    (bench.container.root / "kev" / "__init__.py").write_text("VERSION = 1\n")
    assert "objective" in run(bench, bench.order(FULL, nonce="c" * 32, attempt=3))


def test_a_base_that_is_nowhere_fails_in_one_line(bench: Bench) -> None:
    with pytest.raises(KevError, match="no such directory"):
        run(bench, bench.order({**CONFIG, "base": "/nowhere/base"}))
    error = read_record(bench.trial / "failed.json", FailedTrial).error
    assert "/nowhere/base: no such directory" in error and "\n" not in error
    assert not (bench.trial / "checkpoint").exists()


def test_an_attempt_that_lost_its_lease_stops_and_writes_no_result(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = bench.order({**FULL, "base": "synthetic/linear-20ms"})
    monkeypatch.setattr(HeartbeatThread, "interval", 0.01)
    say = bench.lines.append

    def succeed(line: str) -> None:
        say(line)
        if " step 10/" in line:
            bench.claims.put_new("night/00-trial-0/2")

    answer = run_trial(order, bench.container, bench.claims, succeed)
    assert "succeeded by another" in answer["refused"] and bench.runs.commits == 0
    assert not (bench.trial / "result.json").exists() and not (bench.trial / "failed.json").exists()
    assert lease_of(bench).ended is None


def test_a_commit_that_fails_is_tried_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kev.worker.committer.PAUSE_SECONDS", 0.0)
    bench.runs.failures = [OSError("busy"), OSError("busy")]
    run(bench)
    assert (bench.runs.committed / "night/00-trial-0/result.json").exists()
    assert sum("commit failed" in line for line in bench.lines) == 2


def test_a_trial_without_a_transfer_suite_has_none_and_no_gate_of_it(bench: Bench) -> None:
    run(bench, bench.order(transfer=None))
    result = read_record(bench.trial / "result.json", Result)
    assert result.transfer is None
    assert result.gates is not None and set(result.gates.checks) == {"complete_coverage", "isolation_and_packing"}
