"""A model is trained by the stock command line of Modal against the emulator, pulled home, and read there."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="a model is trained here")

from kev.compute.protocol import CallRef, CallState, Phase
from kev.emulator.plan import ContainerEvent
from kev.model.loading import new_model
from kev.model.saving import save_checkpoint
from kev.model.settings import Settings
from kev.model.tiny_base import make_tiny_base
from kev.records.base import read_record
from kev.records.report import Report
from kev.records.result import Result
from kev.records.step_metrics import read_step_metrics
from kev.train.launch import train_on_ranks

from .conftest import DEADLINE_S, Night

SUITES = ("--suite", "evals/small-v1", "--transfer", "evals/small-transfer-v1")


def end_of_trial(night: Night, study: str) -> CallState:
    call = CallRef(night.spawn_record(study)["calls"]["trial-0"])
    return night.ask(lambda compute: compute.poll(call, wait_s=DEADLINE_S))


def train_undisturbed(night: Night, config: dict[str, Any], ranks: int, threads: int, out: Path) -> bytes:
    """The weights of the same training, never interrupted and in no container."""
    plan = out.with_suffix(".json")
    plan.write_text(json.dumps([config]))
    train_on_ranks(
        ["--plan", str(plan), "--suite", str(night.root / "evals/small-v1"), "--root", str(night.root),
         "--out", str(out), "--device", "cpu", "--threads", str(threads)],
        ranks, night.root, lambda: None,
    )  # fmt: skip
    return (out / "checkpoint/model.safetensors").read_bytes()


@pytest.mark.parametrize("gpu", ["H200", pytest.param("H200:2", marks=pytest.mark.soak)])
def test_a_model_whose_time_ran_out_is_continued_to_the_bits_of_an_undisturbed_one(
    night: Night, gpu: str, tmp_path: Path
) -> None:
    study, cards = f"cut-{gpu[-1]}", int(gpu.partition(":")[2] or 1)
    base = make_tiny_base(tmp_path / "base", hidden=32, layers=1, vocabulary=400)
    night.modal("volume", "put", "kev-hf-cache", str(base), f"bases/{study}")
    config = {
        "base": f"/hf/bases/{study}", "base_revision": "0" * 40, "full_ft": 1, "weights_dtype": "bf16", "lr": 1e-4,
        "batch": 1, "accum": 2, "epochs": 3, "save_every_steps": 5, "snapshot_fractions": "none",
    }  # fmt: skip
    (night.root / f"{study}.json").write_text(json.dumps([config]))
    night.emulator.arm(ContainerEvent(function="run_*_trial", event="timeout", at_log="step 20/"))
    launched, _ = night.run("study", *SUITES, "--plan", f"{study}.json", "--name", study, "--gpu", gpu,
                            "--budget", "100", "--timeout", "3000")  # fmt: skip
    assert f"(1 trials on {gpu})" in launched
    assert end_of_trial(night, study).phase is Phase.TIMED_OUT
    assert night.volume_file(f"{study}/00-trial-0/result.json") is None

    night.run("resume", "--study", study, *SUITES, "--trial", "trial-0")
    state = end_of_trial(night, study)
    assert state.phase is Phase.SUCCEEDED and "objective" in state.result, state

    night.run("pull", "--name", study, "--weights")
    trial = night.root / "runs" / study / "00-trial-0"
    assert "resumed from" in (trial / "train.log").read_text()
    points = read_step_metrics((trial / "metrics.jsonl").read_bytes()).points
    assert {point.attempt for point in points} == {1, 2} and {point.rank for point in points} == set(range(cards))
    assert min(point.step for point in points if point.attempt == 2) > 5
    metrics = json.loads((trial / "checkpoint/training_metrics.json").read_text())
    assert metrics["world_size"] == cards
    undisturbed = train_undisturbed(night, {**config, "base": str(base)}, cards, metrics["threads"], tmp_path / "whole")
    assert (trial / "checkpoint/model.safetensors").read_bytes() == undisturbed


def test_a_study_of_a_model_is_trained_pulled_and_its_checkpoint_read(night: Night) -> None:
    base = make_tiny_base(night.root / "bases" / "tiny", hidden=32, layers=1, vocabulary=400)
    night.modal("volume", "put", "kev-hf-cache", str(base), "bases/tiny")
    entry = {"base": "/hf/bases/tiny", "base_revision": "0" * 40, "lr": 1e-3, "lora": 2, "batch": 2, "accum": 1,
             "max_steps": 4, "epochs": 1, "dtype": "fp32"}  # fmt: skip
    (night.root / "model.json").write_text(json.dumps([entry]))
    night.run("study", *SUITES, "--plan", "model.json", "--name", "model", "--gpu", "H200", "--timeout", "1800")
    state = end_of_trial(night, "model")
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


def test_a_checkpoint_is_mixed_with_its_base_read_and_mirrored(night: Night, tmp_path: Path) -> None:
    base = make_tiny_base(tmp_path / "base", hidden=32, layers=1, vocabulary=400)
    night.modal("volume", "put", "kev-hf-cache", str(base), "bases/mixed")
    sft = tmp_path / "sft"
    save_checkpoint(sft, new_model(str(base), Settings(lora=0), seed=3))
    (sft / "training_metrics.json").write_text("{}")
    night.modal("volume", "put", "kev-runs", str(sft), "sft/00-trial-0/checkpoint")
    asked = ("--sft", "/runs/sft/00-trial-0/checkpoint", "--base", "/hf/bases/mixed", "--revision", "0" * 40,
             "--alphas", "0.70", "--study", "wise", "--prefix", "tiny", "--timeout", "600")  # fmt: skip
    out, _ = night.run("interpolate", *asked)
    assert "wise/tiny-w70: /runs/wise/tiny-w70/checkpoint" in out
    record = json.loads((night.root / "runs/wise/tiny-w70/interpolation.json").read_text())
    assert (record["alpha"], record["toward"]) == (0.7, "/hf/bases/mixed")
    _, err = night.run("interpolate", *asked, "--blend-head", code=1)
    assert err == "--blend-head needs a checkpoint `toward` which it is drawn: a base has no head\n"

    job = "/runs/wise/tiny-w70/checkpoint@evals/small-transfer-v1@tiny-w70-held"
    out, _ = night.run("benchmarks", "--jobs", job, "--gpu", "H100")
    assert "tiny-w70-held: acc " in out

    mirror = ("--study", "wise", "--repo", "/hf/mirrors/wise")
    out, _ = night.run("mirror_snapshots", *mirror, "--dry-run")
    assert "/runs/wise/tiny-w70/checkpoint" in out and "nothing was copied" in out
    assert night.volume_file("mirrors/wise/wise/tiny-w70/head.pt", "kev-hf-cache") is None
    out, _ = night.run("mirror_snapshots", *mirror)
    assert "/hf/mirrors/wise: mirrored" in out
    assert night.volume_file("mirrors/wise/wise/tiny-w70/head.pt", "kev-hf-cache") is not None
