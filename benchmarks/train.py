"""What a training step costs, and whether the estimate of its memory holds.

    OMP_NUM_THREADS=1 python benchmarks/train.py [--hidden N] [--layers N] [--steps N]

Three loops train the same tiny model (LoRA, fp32, on the CPU) on the same records with the same batch, one after
another in this process, in turns: ours as users run it, logs and augmentation included; a plain loop of transformers,
peft and torch, one padded row a question, with everything encoded beforehand; and the plain loop with one question a
pass. Times are CPU seconds, which other programs on the machine do not lengthen. Memory is measured in a process of its
own, as the growth of its resident size, with an allocator that gives large blocks back: the usual one keeps what was
freed in pieces too small for the next tensor, and holds a third to a half more. Prints Markdown.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
from torch import Tensor, nn

from kev import files
from kev.clock import SystemClock
from kev.data.record import DataRecord
from kev.model.batch import collate
from kev.model.context import Context
from kev.model.encoding import Encoding
from kev.model.loading import new_model
from kev.model.settings import Settings
from kev.model.tiny_base import make_tiny_base
from kev.suite import open_suite
from kev.train import run_training
from kev.train.settings import TrainingOptions

BATCH, ACCUM = 8, 1
TURNS = 3


class CpuClock:
    """Seconds of this process's own work."""

    def now(self) -> datetime:
        return SystemClock().now()

    def monotonic(self) -> float:
        return time.process_time()


@dataclass
class Workload:
    """Records to train on, and how many questions each asks."""

    name: str
    records: list[dict[str, Any]]

    @property
    def questions(self) -> int:
        return len(self.records[0]["questions"])


def workloads(steps: int) -> list[Workload]:
    """The records of decision-v1, and the same states with four questions each."""
    partition = open_suite(Path("evals/decision-v1")).read_partition("train")
    chosen = random.Random(0).sample(partition, min(steps * BATCH * ACCUM, len(partition)))
    several = []
    for record in chosen:
        asked = record["questions"]["answer"]
        questions = {f"q{n}": {**asked, "instructions": f"{n}. {asked['instructions']}"} for n in range(4)}
        several.append({**record, "questions": questions})
    return [Workload("1 question a record", chosen), Workload("4 questions a record", several)]


def ours(base: Path, work: Workload, out: Path) -> float:
    """CPU seconds a step, from the end of the first step to that of the last, logs and plans included."""
    config = {"base": str(base), "lora": 16, "batch": BATCH, "accum": ACCUM, "lr": 1e-3}
    options = TrainingOptions(threads=1, echo=False, save_every_minutes=60)
    run_training(config, work.records, out, clock=CpuClock(), options=options)
    moments = [line["monotonic"] for line in files.read_json_lines(out / "metrics.jsonl")]
    return (moments[-1] - moments[0]) / (len(moments) - 1)


class PlainModel(nn.Module):
    """What one would write: a backbone, and a head that scores the options of one row each."""

    def __init__(self, base: Path) -> None:
        super().__init__()
        made = new_model(str(base), Settings(lora=16))
        self.backbone, self.head, self.encoder = made.backbone, made.head, made.encoder

    def forward(self, rows: Sequence[Encoding]) -> Tensor:
        batch = collate(rows, rows=True)
        mask = (batch.ids != 0).long()  # the padding token of the tiny base
        states = self.backbone(input_ids=batch.ids, attention_mask=mask, use_cache=False).last_hidden_state
        return nn.functional.cross_entropy(self.head(states, batch).logits, batch.labels)


def plain(base: Path, work: Workload, *, one_by_one: bool) -> float:
    """CPU seconds a step of the loop in the manual."""
    torch.manual_seed(0)
    model = PlainModel(base)
    encoder = model.encoder.within(Context())
    encoded = [encoder.encode_record(DataRecord.model_validate(record)) for record in work.records]
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.01)
    steps = len(encoded) // (BATCH * ACCUM)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-3, total_steps=steps, pct_start=0.1)
    loader = torch.utils.data.DataLoader(encoded, batch_size=BATCH, shuffle=True, collate_fn=list)
    ended = []
    for batch in loader:
        parts = [[question] for record in batch for question in split(record)] if one_by_one else [batch]
        total = 0.0
        for part in parts:
            loss = model(part) / (len(parts) * ACCUM)
            loss.backward()
            total += loss.item()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        ended.append(time.process_time())
    return (ended[-1] - ended[0]) / (len(ended) - 1)


def split(encoding: Encoding) -> Iterator[Encoding]:
    """Every question of a record as a record of its own."""
    import numpy as np

    for number, branch in enumerate(encoding.branches):
        keep = np.r_[0 : encoding.state_length, branch]
        shift = branch.start - encoding.state_length
        yield Encoding(
            encoding.name, encoding.ids[keep], (encoding.seg[keep] > 0).astype(np.int64), encoding.pos[keep],
            encoding.opt[keep], np.array([len(keep) - 1]), np.array(encoding.opt_idx[number]) - shift,
            encoding.option_counts[number : number + 1], (encoding.labels or ())[number : number + 1],
            encoding.state_length, encoding.state_tokens,
        )  # fmt: skip


def speed(base: Path, steps: int, scratch: Path) -> list[str]:
    """The table of the three loops."""
    lines = [
        "| records | loop | CPU ms/step | optimizer steps/s | records/s | questions/s |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for work in workloads(steps):
        loops: dict[str, Callable[[int], float]] = {
            "ours": lambda turn, work=work: ours(base, work, scratch / f"{work.questions}-{turn}"),
            "plain": lambda _, work=work: plain(base, work, one_by_one=False),
            "a question a pass": lambda _, work=work: plain(base, work, one_by_one=True),
        }
        found: dict[str, list[float]] = {name: [] for name in loops}
        for turn in range(TURNS):
            for name, loop in loops.items():
                found[name].append(loop(turn))
        for name, seconds in found.items():
            step = statistics.median(seconds)
            per_second = BATCH * ACCUM / step
            lines.append(
                f"| {work.name} | {name} | {step * 1000:.1f} | {1 / step:.2f} | {per_second:.1f} "
                f"| {per_second * work.questions:.1f} |"
            )
    return lines


def memory_table() -> list[str]:
    """Estimate and measurement of a few runs, each in a process of its own."""
    lines = ["| run | estimate, MiB | measured, MiB | estimate / measured |", "|---|---:|---:|---:|"]
    for name, change in (
        ("batch 8, 512 tokens", {"batch": 8}),
        ("the same, checkpointing", {"batch": 8, "checkpointing": 1}),
        ("batch 16, 512 tokens", {"batch": 16}),
    ):
        command = [sys.executable, __file__, "--memory", json.dumps(change)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, env=os.environ | {"MALLOC_MMAP_THRESHOLD_": "1048576"}
        )
        estimated, measured = json.loads(done.stdout.splitlines()[-1])
        lines.append(f"| {name} | {estimated / 2**20:.0f} | {measured / 2**20:.0f} | {estimated / measured:.2f} |")
    return lines


def measure_memory(change: dict[str, Any], scratch: Path) -> tuple[int, int]:
    """Estimated and measured bytes of a run on long states; everything that loads once has been loaded before."""
    base = make_tiny_base(scratch / "base", hidden=256, layers=6)
    record = open_suite(Path("evals/decision-v1")).read_partition("train")[0]
    long = {**record, "state": " ".join(f"item {number} of the list" for number in range(60))}
    records = [{**long, "_meta": {"id": f"long/{n}", "source": "long", "group_id": f"long/{n}"}} for n in range(64)]
    config = {"base": str(base), "lora": 16, "accum": 2, "lr": 1e-4, "max_state": 1000, "max_steps": 2}
    options = TrainingOptions(threads=1, echo=False, save_every_minutes=0.0)
    run_training({**config, "batch": 1, "max_steps": 1}, records[:2], scratch / "warm", options=options)
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    before = _status("VmRSS")
    report = run_training({**config, **change}, records, scratch / "run", options=options)
    return report.estimated_bytes or 0, _status("VmHWM") - before


def _status(key: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(key))
    return int(line.split()[1]) * 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--memory", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        if chosen.memory is not None:
            print(json.dumps(measure_memory(json.loads(chosen.memory), scratch)))
            return 0
        base = make_tiny_base(scratch / "base", hidden=chosen.hidden, layers=chosen.layers)
        print(f"Tiny base of {chosen.layers} layers, d {chosen.hidden}; batch {BATCH}, 1 thread, torch "
              f"{torch.__version__}; median of {TURNS} turns.\n")  # fmt: skip
        print("\n".join(speed(base, chosen.steps, scratch)), end="\n\n")
        print("\n".join(memory_table()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
