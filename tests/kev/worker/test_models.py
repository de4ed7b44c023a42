"""A base that is a model is really trained in a container, continued to the same weights, scored and read."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="models are what is trained here")

from killed import Killed

from kev.errors import NotFound, UsageError
from kev.model.tiny_base import make_tiny_base
from kev.records.base import read_record
from kev.records.locked import LockedSummary
from kev.records.provenance import Provenance
from kev.records.report import Report
from kev.records.result import Result
from kev.records.step_metrics import read_step_metrics
from kev.worker.lease import HeartbeatThread
from kev.worker.locked import run_locked_test
from kev.worker.models import fetch_base
from kev.worker.orders import BenchmarkOrder, LockedOrder, RescoreOrder, TrialOrder
from kev.worker.reads import run_benchmark
from kev.worker.rescore import run_rescore
from kev.worker.trials import run_trial

from .conftest import FULL, Bench

WEIGHTS = "checkpoint/model.safetensors"


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    """Full weights on a tiny base, six steps, a resume point after every second one."""
    base = make_tiny_base(tmp_path / "base", hidden=32, layers=1, vocabulary=400)
    changes = {"base": str(base), "max_steps": 6, "save_every_steps": 2, "dtype": "fp32", "snapshot_fractions": "none"}
    return {**FULL, **changes, "lr": 1e-4}


def run(bench: Bench, order: TrialOrder) -> dict[str, Any]:
    return run_trial(order, bench.container, bench.claims, bench.lines.append)


def kill_before_step(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    calls, check = itertools.count(1), HeartbeatThread.check

    def dying(self: HeartbeatThread) -> None:
        if next(calls) == step:
            raise Killed
        check(self)

    monkeypatch.setattr(HeartbeatThread, "check", dying)


def load(path: Path) -> Any:
    return json.loads(path.read_text())


def test_a_killed_model_trial_is_continued_to_the_weights_of_an_undisturbed_one(
    bench: Bench, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run(bench, bench.order(config, study="whole"))
    assert "objective" in whole
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_before_step(patch, 6)
        run(bench, bench.order(config))
    assert not (bench.trial / "failed.json").exists() and not (bench.trial / "result.json").exists()

    answer = run(bench, bench.order(config, nonce="b" * 32, attempt=2))
    assert {**answer} == {**whole}
    undisturbed = bench.runs.path / "whole" / "00-trial-0"
    assert (bench.trial / WEIGHTS).read_bytes() == (undisturbed / WEIGHTS).read_bytes()
    assert "resumed from" in (bench.trial / "train.log").read_text()
    points = read_step_metrics((bench.trial / "metrics.jsonl").read_bytes()).points
    assert {point.step for point in points} == set(range(1, 7)) and {point.attempt for point in points} == {1, 2}

    provenance = Provenance.model_validate(load(bench.runs.committed / "night/00-trial-0/provenance.json"))
    assert provenance.measured_checkpoint is not None and len(provenance.to_json()["continued"]) == 1
    assert provenance.to_json()["nonces"] == ["a" * 32, "b" * 32]
    listed = load(bench.runs.committed / "night/00-trial-0/manifest.json")["files"]
    assert {"result.json", WEIGHTS, "development/rows.json", "transfer/report.json"} <= listed.keys()
    result = read_record(bench.trial / "result.json", Result)
    assert "synthetic" not in result.to_json() and result.transfer is not None

    order = BenchmarkOrder(
        run_id="b1", sources=bench.order().sources, run="/runs/night/00-trial-0/checkpoint",
        suite="evals/small-transfer-v1", name="b1", flags="--rotations 2",
    )  # fmt: skip
    read = run_benchmark(order, bench.container, bench.lines.append)
    assert "failed" not in read, read
    report = read_record(bench.runs.committed / "bench/b1/report.json", Report)
    assert report.coverage == result.transfer.coverage and report.to_json()["rotations"] == 2
    assert report.run == "/runs/night/00-trial-0/checkpoint", "and not where this container happens to have it"
    assert "report.json" in load(bench.runs.committed / "bench/b1/manifest.json")["files"]

    locked = LockedOrder(
        run_id="l",
        sources=bench.order().sources,
        trial="night/00-trial-0",
        name="last-ungated",
        decision="evals/small-v1",
    )
    run_locked_test(locked, bench.container, bench.lines.append)
    summary = read_record(bench.runs.committed / "locked/last-ungated/summary.json", LockedSummary)
    assert summary.suites.keys() == {"decision"}

    (bench.trial / "result.json").unlink()
    rescore = RescoreOrder(
        run_id="r", sources=bench.order().sources, study="night", directory="00-trial-0", suite="evals/small-v1",
        transfer="evals/small-transfer-v1",
    )  # fmt: skip
    again = run_rescore(rescore, bench.container, bench.lines.append)
    assert again["objective"] == answer["objective"]


def test_a_model_trial_that_lost_its_lease_stops_and_fails_nothing(
    bench: Bench, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from kev.compute.leases import LeaseLost

    calls = itertools.count(1)

    def lose(self: HeartbeatThread) -> None:
        if next(calls) == 4:
            self.lost = LeaseLost("night/00-trial-0: is held by attempt 2")
            raise self.lost

    monkeypatch.setattr(HeartbeatThread, "check", lose)
    assert "held by attempt 2" in run(bench, bench.order(config))["refused"]
    assert not (bench.trial / "failed.json").exists() and not (bench.trial / "checkpoint/head.pt").exists()
    assert {point.step for point in read_step_metrics((bench.trial / "metrics.jsonl").read_bytes()).points} <= {1, 2, 3}


def test_a_model_is_trained_by_a_rank_for_each_card_and_scored_in_the_container(
    bench: Bench, config: dict[str, Any]
) -> None:
    answer = run(bench, bench.order(config, gpu="H200:2"))
    assert "objective" in answer, answer
    metrics = load(bench.trial / "checkpoint/training_metrics.json")
    assert (metrics["world_size"], metrics["optimizer_steps"]) == (2, 6)
    points = read_step_metrics((bench.trial / "metrics.jsonl").read_bytes()).points
    assert {point.rank for point in points} == {0, 1} and {point.step for point in points} == set(range(1, 7))
    suite = load(bench.container.root / "evals/small-v1/manifest.json")
    assert load(bench.trial / "checkpoint/training_config.json")["holdout"] == suite["holdout_sources"] != []


def test_a_base_of_the_hub_is_fetched_once_at_its_revision_and_a_directory_never(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    fetched: list[tuple[str, str | None]] = []

    def download(name: str, *, revision: str | None, local_files_only: bool = False, **_: Any) -> str:
        if local_files_only and (name, revision) not in fetched:
            raise FileNotFoundError(name)
        if name == "org/gone":
            raise OSError("401 Client Error:\n  not found")
        fetched.append((name, revision))
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    said: list[str] = []
    fetch_base(str(tmp_path), None, said.append)
    assert not fetched and not said
    for _ in range(2):
        fetch_base("org/base", "f" * 40, said.append)
    assert said == [f"fetching org/base at {'f' * 40} from the Hub"]
    with pytest.raises(
        UsageError, match="base org/gone: could not be fetched from the Hub: 401 Client Error: not found"
    ):
        fetch_base("org/gone", None, said.append)
    with pytest.raises(NotFound, match="no such directory"):
        fetch_base("/nowhere/base", None, said.append)
