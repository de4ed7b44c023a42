"""A run from its configuration to its checkpoint, on bases that a core trains in a second."""

import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from kev import files
from kev.errors import Diverged, Refused
from kev.model.loading import load_checkpoint
from kev.records.step_metrics import read_step_metrics
from kev.train import run_training
from kev.train.report import TrainingReport
from kev.train.settings import TrainingOptions

Records = list[dict[str, Any]]


def train(
    config: Mapping[str, Any], records: Records, out_dir: Path, *, resume: bool = False, **options: Any
) -> TrainingReport:
    chosen = TrainingOptions(**{"threads": 1, "echo": False, "save_every_minutes": 0.0, **options})
    return run_training(config, records, out_dir, resume=resume, options=chosen)


def weights_of(checkpoint: Path) -> dict[str, torch.Tensor]:
    return dict(load_checkpoint(checkpoint).state_dict())


def equal(first: Path, second: Path) -> bool:
    one, other = weights_of(first), weights_of(second)
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def steps_of(out_dir: Path) -> list[dict[str, Any]]:
    return [line.value for line in files.parse_json_lines((out_dir / "metrics.jsonl").read_bytes())]


# ---- what a run leaves


def test_a_run_leaves_a_checkpoint_that_loads_and_a_record_of_every_step(
    tmp_path: Path, config: dict[str, Any], records: Records
) -> None:
    report = train(config, records, tmp_path, suite_sha256="ab" * 32, holdout=["dates"])
    assert report.steps == 10
    assert load_checkpoint(report.checkpoint).values.get("suite_sha256") == "ab" * 32
    reading = read_step_metrics((tmp_path / "metrics.jsonl").read_bytes())
    assert reading.damage == [] and [point.step for point in reading.points] == list(range(1, 11))
    last = steps_of(tmp_path)[-1]
    named = {"at", "monotonic", "step", "steps", "epoch", "loss", "kl", "anchor", "lr", "grad_norm", "clipped"}
    assert named | {"step_seconds", "tokens_per_second", "memory_bytes", "attempt", "rank"} <= last.keys()
    assert (last["steps"], last["attempt"], last["rank"], last["records"]) == (10, 1, 0, 4)
    assert all(point.ended is not None and point.ended.utcoffset() is not None for point in reading.points)
    log = (tmp_path / "train.log").read_text()
    assert "device=cpu world=1 trainable params=" in log
    assert "plan: one cycle over 10 steps, no warm-up" in log
    assert any(line.startswith("ep0 step 10/10 loss ") and line.endswith("s/rec") for line in log.splitlines())
    assert log.rstrip().endswith(f"saved {report.checkpoint}")
    recorded = files.read_json(report.checkpoint / "training_config.json")
    assert recorded["holdout"] == ["dates"] and recorded["args"]["weight_decay"] == 0.01
    metrics = files.read_json(report.checkpoint / "training_metrics.json")
    assert metrics["records_seen"] == 40 and metrics["threads"] == 1 and metrics["weights"] == "lora"
    assert len(metrics["step_seconds"]) == 10 and metrics["grad_norm"][0]["steps"] == 10


def test_training_lowers_the_loss(tmp_path: Path, config: dict[str, Any], records: Records) -> None:
    small = [record for record in records if record["_meta"]["source"] in ("policies", "dates")][:8]
    report = train({**config, "epochs": 5, "batch": 2, "lora": 16, "full_ft": 0}, small, tmp_path)
    losses = [step["loss"] for step in steps_of(tmp_path)]
    assert report.loss is not None
    assert report.loss < sum(losses[:4]) / 4


def test_the_same_run_twice_gives_the_same_bits_and_another_seed_does_not(
    tmp_path: Path, config: dict[str, Any], records: Records
) -> None:
    first, second, other = (
        train({**config, "seed": seed}, records, tmp_path / name).checkpoint
        for name, seed in (("first", 1), ("second", 1), ("other", 2))
    )
    assert equal(first, second)
    assert not equal(first, other)


def test_the_loss_of_a_step_is_that_of_its_records_however_they_are_cut(
    tmp_path: Path, full_config: dict[str, Any], records: Records
) -> None:
    shapes = {"whole": (8, 1, {}), "halves": (4, 2, {}), "passes": (8, 1, {"row_budget": 250})}
    found = {}
    for name, (batch, accum, more) in shapes.items():
        shape = {**full_config, "batch": batch, "accum": accum, "p_none_pair": 0, "max_steps": 3, **more}
        train(shape, records, tmp_path / name)
        found[name] = [step["loss"] for step in steps_of(tmp_path / name)]
    assert found["halves"] == pytest.approx(found["whole"], rel=0.01)  # bf16 sums in another order
    assert found["passes"] == pytest.approx(found["whole"], rel=0.01)


def test_checkpointing_the_layers_changes_no_loss(tmp_path: Path, config: dict[str, Any], records: Records) -> None:
    train({**config, "max_steps": 4}, records, tmp_path / "plain")
    train({**config, "max_steps": 4, "checkpointing": 1}, records, tmp_path / "again")
    plain, again = ([step["loss"] for step in steps_of(tmp_path / name)] for name in ("plain", "again"))
    assert again == pytest.approx(plain, rel=1e-5)


def test_a_hybrid_base_and_bf16_are_trained_too(tmp_path: Path, hybrid_base: Path, records: Records) -> None:
    config = {"base": str(hybrid_base), "lora": 4, "head_dim": 128, "batch": 4, "accum": 1, "dtype": "bf16"}
    assert train({**config, "max_steps": 2}, records, tmp_path).steps == 2
    assert all(math.isfinite(step["loss"]) for step in steps_of(tmp_path))


def test_passes_are_held_to_a_ceiling_of_padded_tokens(
    tmp_path: Path, config: dict[str, Any], records: Records
) -> None:
    held = {**config, "batch": 8, "length_sort": 1, "pass_tokens_max": 700, "p_none_pair": 0.5}
    train(held, records, tmp_path)
    text = (tmp_path / "train.log").read_text()
    assert "of --pass_tokens_max 700 padded tokens" in text
    assert max(step["padded_tokens"] for step in steps_of(tmp_path)) > 700  # of all the passes of a step
    largest = int(text.split("largest pass ")[2].split()[0])
    assert largest <= 700


def test_a_warm_start_begins_where_the_other_run_ended(
    tmp_path: Path, config: dict[str, Any], records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    import kev.train.settings

    parent = train(config, records, tmp_path / "parent")
    # A plan names checkpoints under /runs or on the Hub; here one lies in a temporary directory.
    monkeypatch.setattr(kev.train.settings, "plan_problems", lambda _: [])
    started = {**config, "init_from": str(parent.checkpoint), "max_steps": 1, "lr": 1e-6}
    child = train(started, records, tmp_path / "child")
    one, other = weights_of(parent.checkpoint), weights_of(child.checkpoint)
    assert all(torch.allclose(one[name], other[name], atol=1e-4) for name in one)
    assert files.read_json(child.checkpoint / "training_config.json")["init_source"]["init_from"] == str(
        parent.checkpoint
    )


# ---- loss modifiers


def questions_of(records: Records) -> Counter[str]:
    return Counter(question["type"] for record in records for question in record["questions"].values())


@pytest.mark.parametrize("modifier", ["label_smoothing", "brier_w", "focal_gamma", "ord_w"])
def test_a_run_says_how_many_questions_each_modifier_touched(
    tmp_path: Path, config: dict[str, Any], records: Records, modifier: str
) -> None:
    records = records[:12]
    report = train({**config, modifier: 0.1, "epochs": 2}, records, tmp_path)
    questions = questions_of(records)
    expected = 2 * (questions["score"] if modifier == "ord_w" else questions.total())
    assert report.loss_modifiers == {modifier: expected}
    assert f"loss modifiers touched {modifier} {expected} questions" in (tmp_path / "train.log").read_text()


def test_permuted_choices_are_counted_and_compared(tmp_path: Path, config: dict[str, Any], records: Records) -> None:
    shape = {**config, "perm_kl": 1.0, "perm_frac": 1.0, "p_none": 0, "p_none_distract": 0, "p_distract": 0}
    report = train(shape, records, tmp_path)
    assert report.loss_modifiers == {"perm_kl": questions_of(records)["choice"]}
    assert any(step["kl"] > 0 for step in steps_of(tmp_path))


def test_a_modifier_that_touches_nothing_is_warned_of(tmp_path: Path, config: dict[str, Any], records: Records) -> None:
    yes_no = [record for record in records if questions_of([record])["noul"]]
    report = train({**config, "ord_w": 0.5, "max_steps": 1}, yes_no, tmp_path)
    assert report.loss_modifiers == {"ord_w": 0}
    assert "ord_w is on and touched no question" in report.warnings
    assert "!!! ord_w is on and touched no question" in (tmp_path / "train.log").read_text()


def test_an_anchor_is_counted_where_its_options_are_unchanged(
    tmp_path: Path, config: dict[str, Any], records: Records
) -> None:
    yes_no = [record for record in records if questions_of([record])["noul"]]
    targets = {record["_meta"]["id"]: {"answer": {"false": 0.4, "true": 0.6}} for record in yes_no[:7]}
    (tmp_path / "anchor.json").write_text(json.dumps({"targets": targets}))
    shape = {**config, "anchor": "anchor.json", "anchor_w": 0.5}
    report = train(shape, records, tmp_path / "run", anchors=tmp_path / "anchor.json")
    assert report.loss_modifiers == {"anchor_w": 7}
    assert sum(step["anchor"] > 0 for step in steps_of(tmp_path / "run")) >= 2


# ---- refusals


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"lr": 5.0}, "lr"),
        ({"learning_rate": 1e-4}, "learning_rate: is no key of a trial"),
        ({"label_smoothing": 0.1, "brier_w": 1.0}, "at most one of them"),
        ({"full_ft": 1}, "weights_dtype: should be bf16"),
        ({"row_budget": 100, "perm_kl": 1.0}, "row_budget splits a micro-batch"),
        ({"pass_tokens_max": 100}, "needs length_sort"),
        ({"max_state": 20}, "records do not fit the context"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_is_written(
    tmp_path: Path, config: dict[str, Any], records: Records, change: dict[str, Any], reason: str
) -> None:
    with pytest.raises(Refused, match=reason):
        train({**config, **change}, records, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_records_that_cannot_be_meant_are_refused_by_number(
    tmp_path: Path, config: dict[str, Any], records: Records
) -> None:
    bad = json.loads(json.dumps(records[3]))
    bad["questions"]["answer"]["label"] = "no such option"
    with pytest.raises(Refused, match=r"training record 2: record .*label"):
        train(config, [records[0], bad], tmp_path)
    with pytest.raises(Refused, match=r"training record 2: the id .* is used twice"):
        train(config, [records[0], records[0]], tmp_path)
    with pytest.raises(Refused, match="no records to train on"):
        train(config, [], tmp_path)


def test_a_directory_with_a_run_in_it_is_not_overwritten(
    tmp_path: Path, config: dict[str, Any], records: Records
) -> None:
    report = train({**config, "max_steps": 1}, records, tmp_path)
    before = (report.checkpoint / "head.pt").read_bytes()
    with pytest.raises(Refused, match="is not empty; resume the run that is there"):
        train({**config, "max_steps": 1}, records, tmp_path)
    assert (report.checkpoint / "head.pt").read_bytes() == before


def test_a_loss_that_is_no_number_stops_the_run_at_its_step(
    tmp_path: Path, config: dict[str, Any], records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kev.train import trainer

    plain = trainer.run_pass

    def sick(*args: Any, **kwargs: Any) -> Any:
        result = plain(*args, **kwargs)
        result.loss = result.loss * math.nan
        return result

    monkeypatch.setattr(trainer, "run_pass", sick)
    with pytest.raises(Diverged, match="step 1 of 10: the loss is nan"):
        train(config, records, tmp_path)
    assert steps_of(tmp_path)[0]["loss"] is None
    assert not (tmp_path / "checkpoint" / "head.pt").exists()


def test_a_single_step_is_trained_and_warned_of(tmp_path: Path, config: dict[str, Any], records: Records) -> None:
    report = train({**config, "max_steps": 1}, records, tmp_path)
    assert report.steps == 1
    assert any("plan at least 2 steps" in warning for warning in report.warnings)


# ---- going on


def test_a_finished_run_is_not_trained_again(tmp_path: Path, config: dict[str, Any], records: Records) -> None:
    first = train({**config, "max_steps": 2}, records, tmp_path)
    before = (tmp_path / "metrics.jsonl").read_bytes()
    again = train({**config, "max_steps": 2}, records, tmp_path, resume=True)
    assert again.already_finished and again.steps == first.steps
    assert (tmp_path / "metrics.jsonl").read_bytes() == before


def test_a_shared_prefix_that_a_recurrent_backbone_cannot_have_is_said(
    tmp_path: Path, config: dict[str, Any], hybrid_base: Path, records: Records
) -> None:
    asked = {**config, "base": str(hybrid_base), "shared_prefix": 1, "max_steps": 1, "batch": 2}
    assert any("shared_prefix has no effect" in line for line in train(asked, records[:4], tmp_path).warnings)
