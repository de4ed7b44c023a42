"""A model is trained by the stock command line of Modal against the emulator, pulled home, and read there."""

import hashlib
import json

import pytest

pytest.importorskip("torch", reason="a model is trained here")

from kev.compute.protocol import CallRef, Phase
from kev.model.tiny_base import make_tiny_base
from kev.records.base import read_record
from kev.records.report import Report
from kev.records.result import Result
from kev.records.step_metrics import read_step_metrics

from .conftest import DEADLINE_S, Night


def test_a_study_of_a_model_is_trained_pulled_and_its_checkpoint_read(night: Night) -> None:
    base = make_tiny_base(night.root / "bases" / "tiny", hidden=32, layers=1, vocabulary=400)
    night.modal("volume", "put", "kev-hf-cache", str(base), "bases/tiny")
    entry = {"base": "/hf/bases/tiny", "base_revision": "0" * 40, "lr": 1e-3, "lora": 2, "batch": 2, "accum": 1,
             "max_steps": 4, "epochs": 1, "dtype": "fp32"}  # fmt: skip
    (night.root / "model.json").write_text(json.dumps([entry]))
    suites = ("--suite", "evals/small-v1", "--transfer", "evals/small-transfer-v1")
    night.run("study", *suites, "--plan", "model.json", "--name", "model", "--gpu", "H200", "--timeout", "1800")
    call = CallRef(night.spawn_record("model")["calls"]["trial-0"])
    state = night.ask(lambda compute: compute.poll(call, wait_s=DEADLINE_S))
    assert state.phase is Phase.SUCCEEDED and "objective" in state.result, state

    # Weights stay on the volume unless they are asked for.
    night.run("pull", "--name", "model", "--weights")
    trial = night.root / "runs/model/00-trial-0"
    result = read_record(trial / "result.json", Result)
    assert result.transfer is not None and "synthetic" not in result.to_json()
    assert [point.step for point in read_step_metrics((trial / "metrics.jsonl").read_bytes()).points] == [1, 2, 3, 4]
    sums = json.loads((trial / "manifest.json").read_text())["files"]
    assert "checkpoint/adapter_model.safetensors" in sums
    for name, listed in sums.items():
        assert hashlib.sha256((trial / name).read_bytes()).hexdigest() == listed["sha256"], name
    [ranked] = [json.loads(line) for line in (night.root / "runs/model/results.jsonl").read_text().splitlines()]
    assert ranked["id"] == "00-trial-0" and ranked["objective"] == result.to_json()["objective"]

    job = "/runs/model/00-trial-0/checkpoint@evals/small-transfer-v1@model-held"
    out, _ = night.run("benchmarks", "--jobs", job, "--gpu", "H100")
    report = read_record(night.root / "runs/model-held/report.json", Report)
    assert report.clean == result.transfer.clean
    assert f"model-held: acc {report.clean['acc']:.4f}" in out
