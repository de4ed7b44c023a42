"""A reinforcement from a checkpoint to a better one, on a base that a core trains in seconds."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
pytest.importorskip("transformers", reason="the train extra is not installed")
pytest.importorskip("peft", reason="the train extra is not installed")

import torch
from safetensors.torch import load_file, save_file

from kev import files
from kev.data.record import DataRecord
from kev.errors import Diverged, Refused, UsageError
from kev.model.loading import load_checkpoint
from kev.model.tiny_base import make_tiny_base
from kev.records.step_metrics import read_step_metrics
from kev.rl import reinforce
from kev.rl.__main__ import main
from kev.rl.environment import ENVIRONMENTS, draw_records
from kev.rl.reference import Reference
from kev.rl.report import judge
from kev.threads import use_cores
from kev.train import run_training
from kev.train.settings import TrainingOptions

use_cores(1)

QUIET = TrainingOptions(threads=1, echo=False, save_every_minutes=0.0)


class Killed(Exception):
    pass


@pytest.fixture(scope="session")
def records() -> list[DataRecord]:
    """Memos with two of their questions, which a model of 50,000 weights can learn in seconds."""
    return [
        record.model_copy(update={"questions": {name: record.questions[name] for name in ("signed", "size")}})
        for record in draw_records(["memos"], 480, seed=5)
    ]


def trained(root: Path, config: dict[str, Any], records: list[DataRecord]) -> Path:
    base = make_tiny_base(root / "base", hidden=64, layers=2, vocabulary=512)
    shape = {"base": str(base), "head_dim": 128, "batch": 8, "accum": 1, "lr": 1e-3}
    return run_training({**shape, **config}, records, root / "trial", options=QUIET).checkpoint


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory, records: list[DataRecord]) -> Path:
    """Full weights, trained so little that they answer a little better than by chance."""
    settings = {"full_ft": 1, "weights_dtype": "bf16", "snapshot_fractions": "none", "max_steps": 12}
    return trained(tmp_path_factory.mktemp("full"), settings, records[:160])


@pytest.fixture(scope="session")
def adapter(tmp_path_factory: pytest.TempPathFactory, records: list[DataRecord]) -> Path:
    return trained(tmp_path_factory.mktemp("lora"), {"lora": 4, "max_steps": 4}, records[:40])


def weights_of(checkpoint: Path) -> dict[str, torch.Tensor]:
    return dict(load_checkpoint(checkpoint).state_dict())


def same(first: Path, second: Path) -> bool:
    one, other = weights_of(first), weights_of(second)
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_a_reinforced_model_answers_held_out_questions_better(
    tmp_path: Path, checkpoint: Path, records: list[DataRecord]
) -> None:
    config = {"init_from": str(checkpoint), "batch": 16, "lr": 2e-3, "kl_w": 0.01}
    report = reinforce(config, records[:400], tmp_path, held_out=records[400:], options=QUIET)
    assert report.before is not None and report.after is not None
    assert report.after.drawn_accuracy > report.before.drawn_accuracy + 0.06
    assert report.after.brier < report.before.brier - 0.05
    assert files.read_json(tmp_path / "evals.json")["after"] == report.after.to_json()
    # What was measured is what was saved.
    assert judge(load_checkpoint(report.checkpoint), records[400:]) == report.after


def test_it_logs_what_training_logs_and_what_came_of_the_answers(
    tmp_path: Path, adapter: Path, records: list[DataRecord]
) -> None:
    config = {"init_from": str(adapter), "batch": 8, "lr": 1e-3}
    report = reinforce(config, records[:40], tmp_path, options=QUIET)
    assert report.steps == 10 and report.before is None
    reading = read_step_metrics((tmp_path / "metrics.jsonl").read_bytes())
    assert reading.damage == [] and [point.step for point in reading.points] == list(range(1, 11))
    lines = [line.value for line in files.parse_json_lines((tmp_path / "metrics.jsonl").read_bytes())]
    assert {"reward", "drawn_accuracy", "entropy", "clip_share", "kl", "lr", "grad_norm"} <= lines[-1].keys()
    assert [line["clip_share"] for line in lines[::2]] == [0.0] * 5, "the first update is at the answers' own weights"
    assert lines[0]["kl"] == pytest.approx(0, abs=1e-6) and lines[-1]["kl"] > 0
    log = (tmp_path / "train.log").read_text().splitlines()
    assert any(line.startswith("ep0 step 10/10 loss ") and "s/rec reward " in line for line in log)
    assert f"delta: warm start from {adapter}" in log and log[-1] == f"saved {report.checkpoint}"
    values = load_checkpoint(report.checkpoint).values
    assert values.get("temperature_needs_refit") is True and values.get("weights") == "lora"


@pytest.mark.parametrize("start", ["checkpoint", "adapter"])
def test_a_continuation_ends_with_the_same_bits(
    tmp_path: Path, start: str, records: list[DataRecord], request: pytest.FixtureRequest
) -> None:
    config = {"init_from": str(request.getfixturevalue(start)), "batch": 8, "lr": 1e-3, "save_every_steps": 4}
    whole = reinforce(config, records[:60], tmp_path / "whole", options=QUIET)
    calls = 0

    def kill() -> None:
        nonlocal calls
        calls += 1
        if calls == 7:
            raise Killed

    cut = TrainingOptions(threads=1, echo=False, save_every_minutes=0.0, before_step=kill)
    with pytest.raises(Killed):
        reinforce(config, records[:60], tmp_path / "cut", options=cut)
    report = reinforce(config, records[:60], tmp_path / "cut", resume=True, options=QUIET)
    assert report.resumed_from == 12
    assert same(whole.checkpoint, report.checkpoint)
    assert reinforce(config, records[:60], tmp_path / "cut", resume=True, options=QUIET).already_finished


def test_a_continuation_with_other_records_is_refused(tmp_path: Path, adapter: Path, records: list[DataRecord]) -> None:
    config = {"init_from": str(adapter), "batch": 8, "save_every_steps": 2}

    def kill() -> None:
        if (tmp_path / "checkpoint" / "resume" / "latest.json").exists():
            raise Killed

    cut = TrainingOptions(threads=1, echo=False, save_every_minutes=0.0, before_step=kill)
    with pytest.raises(Killed):
        reinforce(config, records[:60], tmp_path, options=cut)
    with pytest.raises(Refused, match="records_sha256"):
        reinforce(config, records[1:61], tmp_path, resume=True, options=QUIET)


def test_what_cannot_be_meant_is_refused_by_name(tmp_path: Path, adapter: Path, records: list[DataRecord]) -> None:
    with pytest.raises(Refused, match="groups is no key of a reinforcement; did you mean group"):
        reinforce({"init_from": str(adapter), "groups": 4}, records[:8], tmp_path, options=QUIET)
    with pytest.raises(Refused, match="clip"):
        reinforce({"init_from": str(adapter), "clip": 1.5}, records[:8], tmp_path, options=QUIET)
    with pytest.raises(Refused, match="group: input should be 0, or 2 and more"):
        reinforce({"init_from": str(adapter), "group": 1}, records[:8], tmp_path, options=QUIET)
    assert not (tmp_path / "train.log").exists()


def test_a_checkpoint_whose_answers_are_no_numbers_is_not_drawn_from(
    tmp_path: Path, adapter: Path, records: list[DataRecord]
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(adapter, broken)
    weights = load_file(broken / "adapter_model.safetensors")
    save_file({name: value * float("nan") for name, value in weights.items()}, broken / "adapter_model.safetensors")
    with pytest.raises(Diverged, match="the model's answers are no numbers any more"):
        reinforce({"init_from": str(broken)}, records[:8], tmp_path / "run", options=QUIET)


def test_the_reference_answers_as_the_model_did_and_leaves_it_as_it_is() -> None:
    layer = torch.nn.Linear(3, 2)
    reference = Reference.of(layer.parameters())
    at = torch.ones(3)
    before = layer(at).detach()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(1.0)
    moved = layer(at).detach()
    with torch.no_grad(), reference.in_place():
        assert torch.equal(layer(at), before)
    assert torch.equal(layer(at).detach(), moved) and not torch.equal(moved, before)


# ---- where the questions come from


@pytest.mark.parametrize("name", list(ENVIRONMENTS))
def test_an_environment_gives_the_same_records_again_and_others_for_another_seed(name: str) -> None:
    first = draw_records([name], 12, seed=1)
    assert [record.to_json() for record in draw_records([name], 20, seed=1)[:12]] == [r.to_json() for r in first]
    states = {str(record.state) for record in first}
    assert states != {str(record.state) for record in draw_records([name], 12, seed=2)}
    assert states.isdisjoint(str(record.state) for record in draw_records([name], 12, seed=1, part="development"))


def test_several_environments_take_turns_and_every_record_has_an_id_of_its_own() -> None:
    found = draw_records(["tickets", "levels"], 10, seed=0)
    assert {record.meta.source for record in found} == {"tickets", "levels"}
    assert len({record.meta.id for record in found}) == 10


def test_a_misspelt_environment_is_named() -> None:
    with pytest.raises(UsageError, match="no environment ticket"):
        draw_records(["ticket"], 1, seed=0)


def test_the_command_reinforces_a_checkpoint_on_generated_questions(
    tmp_path: Path, adapter: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--init", str(adapter), "--environments", "memos", "--records", "16", "--held-out", "8"]
    assert main([*given, "--out", str(tmp_path), "--batch", "8", "--group", "4", "--threads", "1"]) == 0
    assert "held out, after:" in capsys.readouterr().out
    assert load_checkpoint(tmp_path / "checkpoint").values.get("temperature_needs_refit") is True
