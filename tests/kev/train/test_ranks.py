"""Two ranks train what one would, and write one log, one checkpoint and one line for each rank and step."""

import re
from pathlib import Path
from typing import Any

import pytest
from trainer_process import Training

from kev import files
from kev.model.loading import load_checkpoint


def losses_of(out_dir: Path) -> list[float]:
    lines = [line.value for line in files.parse_json_lines((out_dir / "metrics.jsonl").read_bytes())]
    return [line["loss"] for line in sorted(lines, key=lambda line: line["step"]) if line["rank"] == 0]


def largest_pass(log: str) -> str | None:
    """What the plan's line says of it."""
    match = re.search(r"plan: about .*largest pass (\d+ MiB)", log)
    return None if match is None else match[1]


@pytest.mark.parametrize("kind", ["lora", "full"])
def test_two_ranks_take_the_steps_of_one(
    tmp_path: Path, config: dict[str, Any], full_config: dict[str, Any], records: list[dict[str, Any]], kind: str
) -> None:
    # Dropout draws differ between ranks, so a LoRA run is compared where they weigh little: over its first steps.
    trained = {**(config if kind == "lora" else full_config), "max_steps": 4, "lr": 1e-4}
    one = Training({**trained, "accum": 2}, records, tmp_path / "one")
    two = Training(trained, records, tmp_path / "two", world=2)
    one.finish()
    two.finish()
    assert losses_of(two.out_dir) == pytest.approx(losses_of(one.out_dir), rel=0.02)
    ranks = [line.value["rank"] for line in files.parse_json_lines((two.out_dir / "metrics.jsonl").read_bytes())]
    assert sorted(ranks) == [0] * 4 + [1] * 4
    log = (two.out_dir / "train.log").read_text()
    assert log.count("device=cpu world=2") == 1 and log.count("saved ") == 1
    alone, shared = (largest_pass((run.out_dir / "train.log").read_text()) for run in (one, two))
    assert alone is not None and shared == (alone if kind == "lora" else None), "the passes of a rank are those of one"
    first, second = (load_checkpoint(run.out_dir / "checkpoint").state_dict() for run in (one, two))
    assert first.keys() == second.keys()
    assert all(first[name].dtype == second[name].dtype for name in first)
    assert files.read_json(two.out_dir / "checkpoint" / "training_metrics.json")["world_size"] == 2
