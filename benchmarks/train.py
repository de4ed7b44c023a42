"""What a training step costs, and whether the estimate of its memory holds.

    OMP_NUM_THREADS=1 python benchmarks/train.py [--only speed | --only memory] [--steps N]

Three loops train the same tiny model (LoRA, fp32, on the CPU) on the same records with the same batch, one after
another in this process, in turns: ours as users run it, logs and augmentation included; a plain loop of transformers,
peft and torch, one padded row a question, with everything encoded beforehand; and the plain loop with one question a
pass. Times are CPU seconds, which other programs on the machine do not lengthen by making it wait (they still share its
caches). Memory is measured in a process for each run, as the growth of its resident size, with an allocator that gives
blocks above 64 KiB back: the usual one keeps what was freed in pieces too small for the next tensor. Prints Markdown.
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
import transformers
from torch import Tensor, nn

from kev import files
from kev.clock import SystemClock
from kev.data.record import DataRecord
from kev.model.batch import collate
from kev.model.context import Context
from kev.model.encoding import Encoding
from kev.model.loading import load_checkpoint, new_model
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
    # torch's own one-cycle schedule fails at exactly ten steps.
    schedule = transformers.get_cosine_schedule_with_warmup(optimizer, steps // 10, steps)
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


def reading_speed(base: Path, scratch: Path) -> str:
    """Evaluation of a checkpoint, encoding included, in CPU seconds."""
    config = {"base": str(base), "lora": 16, "batch": BATCH, "accum": ACCUM, "max_steps": 1}
    options = TrainingOptions(threads=1, echo=False, save_every_minutes=0.0)
    report = run_training(config, workloads(4)[0].records, scratch / "read", options=options)
    model = load_checkpoint(report.checkpoint)
    partition = open_suite(Path("evals/decision-v1")).read_partition("train")
    records = [DataRecord.model_validate(record) for record in partition[:400]]
    found = []
    for _ in range(TURNS):
        began = time.process_time()
        model.score([model.encoder.encode_record(record) for record in records])
        found.append(time.process_time() - began)
    return f"Evaluation: {len(records) / statistics.median(found):.0f} records/s of CPU time, encoding included."


FULL = {"full_ft": 1, "weights_dtype": "bf16", "snapshot_fractions": "none"}
SHAPES: dict[str, dict[str, Any]] = {
    "adapter, 8 records of 450 tokens": {"batch": 8},
    "adapter, the same, checkpointing": {"batch": 8, "checkpointing": 1},
    "adapter, 16 of 450": {"batch": 16},
    "adapter, 2 of 1,700": {"batch": 2, "words": 220, "layers": 3, "hidden": 128},
    "adapter, 32 of 170": {"batch": 32, "words": 20, "layers": 3, "hidden": 128},
    "full weights, 8 of 450": {"batch": 8, **FULL},
    "full weights, the same, checkpointing": {"batch": 8, "checkpointing": 1, **FULL},
    "full weights, 2 x 8 of 450": {"batch": 8, "accum": 2, **FULL},
    "full weights, d 512, 1 of 70": {"batch": 1, "hidden": 512, "words": 5, **FULL},
}
"""Runs whose memory is measured: what a plan sets, and the base and the records it is set for."""

ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_MMAP_MAX_": "1000000"}


def memory_table() -> list[str]:
    """Estimate and measurement of runs of several shapes, each in a process of its own."""
    lines = [
        "| run | loaded, MiB | estimate beyond it, MiB | measured, MiB | estimate / measured |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, shape in SHAPES.items():
        command = [sys.executable, __file__, "--memory-of", json.dumps(shape)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | ALLOCATOR)
        loaded, estimated, measured = (value / 2**20 for value in json.loads(done.stdout.splitlines()[-1]))
        lines.append(f"| {name} | {loaded:.0f} | {estimated:.0f} | {measured:.0f} | {estimated / measured:.2f} |")
    return lines


def measure_memory(shape: dict[str, Any], scratch: Path) -> tuple[int, int, int]:
    """Bytes of a run's weights and masters, and what is estimated and measured beyond them, over four steps.

    The process is measured from its first step on, when libraries, weights and masters are there and the estimate's
    own passes are gone, to the end of the last but one, before anything is saved.
    """
    size = {"hidden": 256, "layers": 6, "words": 60, **shape}
    base = make_tiny_base(scratch / "base", hidden=size.pop("hidden"), layers=size.pop("layers"))
    record = open_suite(Path("evals/decision-v1")).read_partition("train")[0]
    long = {**record, "state": " ".join(f"item {number} of the list" for number in range(size.pop("words")))}
    records = [{**long, "_meta": {"id": f"long/{n}", "source": "long", "group_id": f"long/{n}"}} for n in range(64)]
    moments: list[tuple[int, int]] = []

    def watch() -> None:
        moments.append((_status("VmRSS"), _status("VmHWM")))
        if len(moments) == 1:
            Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here

    options = TrainingOptions(threads=1, echo=False, save_every_minutes=0.0, before_step=watch)
    config = {"base": str(base), "lora": 16, "accum": 1, "lr": 1e-4, "max_state": 2000, "max_steps": 4, **size}
    if config.get("full_ft"):
        del config["lora"]
    report = run_training(config, records, scratch / "run", options=options)
    assert report.estimate is not None
    loaded = report.estimate.loaded
    return loaded, report.estimate.total - loaded, moments[-1][1] - moments[0][0]


def _status(key: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(key))
    return int(line.split()[1]) * 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--steps", type=int, default=30, help="optimizer steps of each run (%(default)s)")
    parser.add_argument("--only", choices=("speed", "memory"), help="one of the two tables")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        if chosen.memory_of is not None:
            print(json.dumps(measure_memory(json.loads(chosen.memory_of), scratch)))
            return 0
        print(f"torch {torch.__version__}, 1 thread, load {os.getloadavg()[0]:.1f} at the start.\n")
        if chosen.only != "memory":
            base = make_tiny_base(scratch / "base", hidden=chosen.hidden, layers=chosen.layers)
            print(f"Tiny base of {chosen.layers} layers, d {chosen.hidden}; adapter of rank 16, batch {BATCH}; "
                  f"median of {TURNS} turns of {chosen.steps} steps.\n")  # fmt: skip
            print("\n".join(speed(base, chosen.steps, scratch)), end="\n\n", flush=True)
            print(reading_speed(base, scratch), end="\n\n", flush=True)
        if chosen.only != "speed":
            print("\n".join(memory_table()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
