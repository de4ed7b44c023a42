"""What one GPU does with the decision model, in under five minutes.

    python benchmarks/device.py [--out DIR]         # needs a GPU; says so and does nothing where there is none
    python benchmarks/device.py --tiny              # the same checks in little, on whatever there is

Three things, each on a random model that is made on the spot:

- the rate of optimizer steps, whole model in bf16, from records and logs to AdamW, and the share of the device's peak.
  Operations of a token: 6 for each weight of a matrix (2 forward, 4 backward), and 12 x layers x width x length for
  attention, whose two products per layer are computed over the whole square, mask or not. Tokens are those that are no
  padding; the peak is the maker's dense bf16 figure for the device's name, in `PEAKS`.
- isolation in bf16: the largest change of a probability between the packed form and rows, and when other questions are
  added. It has a tolerance, and is a failure beyond it.
- identity: a run that is cut off and gone on with ends with the bits of one that was left alone.

Prints a table, and writes device.json into --out, or $OUT where that is set. The exit status is 1 if a check failed.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
from torch import nn

from kev import files
from kev.data.draw import Draw
from kev.data.memos import generate_memos
from kev.data.part import Part
from kev.data.record import DataRecord
from kev.model.context import Context
from kev.model.decision_model import DecisionModel
from kev.model.loading import load_checkpoint
from kev.model.tiny_base import make_tiny_base
from kev.reads.mechanism import TOLERANCES
from kev.train import run_training
from kev.train.settings import TrainingOptions

PEAKS = {
    "B200": 2250e12,
    "H200": 989e12,
    "H100 PCIe": 756e12,
    "H100": 989e12,
    "A100": 312e12,
    "L40S": 362e12,
    "RTX 4090": 165e12,
    "L4": 121e12,
}
"""Dense bf16 operations a second by a part of the device's name; of several that fit the first counts."""

WARM_UP = 5
"""Steps that are not timed: kernels are chosen and memory is taken in them."""


class CutOff(Exception):
    """The end of an attempt that is to be gone on with."""


@dataclass(frozen=True)
class Size:
    """How much is made and done. `length` is about how many words a state has."""

    hidden: int
    layers: int
    steps: int
    batch: int
    length: int
    small_hidden: int
    small_layers: int


WHOLE = Size(hidden=1536, layers=24, steps=30, batch=16, length=320, small_hidden=512, small_layers=6)
TINY = Size(hidden=64, layers=2, steps=WARM_UP + 3, batch=2, length=20, small_hidden=32, small_layers=2)


def records(count: int, words: int) -> list[DataRecord]:
    """Memos of five questions, their states filled up to about `words` words."""
    memos = generate_memos(Draw(0, "device"), Part.named("train"))
    found = []
    for number in range(count):
        [memo] = next(memos)
        text = memo.state["note"]
        filler = " ".join(f"Line {line} of page {number}." for line in range(max(0, words - len(text.split())) // 5))
        state = {"note": f"{filler} {text}"}
        found.append(
            memo.model_copy(update={"state": state, "meta": memo.meta.model_copy(update={"text_sha256": None})})
        )
    return found


def full(base: Path, size: Size, **changes: Any) -> dict[str, Any]:
    """The configuration of a run of the whole model in bf16."""
    shape = {"base": str(base), "full_ft": 1, "weights_dtype": "bf16", "dtype": "bf16", "snapshot_fractions": "none"}
    return {**shape, "batch": size.batch, "accum": 1, "lr": 1e-5, "max_state": 2048, **changes}


def options(device: str, **changes: Any) -> TrainingOptions:
    return TrainingOptions(**{"device": device, "echo": False, "save_every_minutes": 0.0, **changes})


# ---- the rate of steps


def matrix_weights(model: nn.Module) -> int:
    """Weights that every token is multiplied by: all matrices but the embeddings, which are looked up."""
    return sum(weight.numel() for name, weight in model.named_parameters() if weight.dim() == 2 and "embed" not in name)


def token_operations(model: DecisionModel, length: float) -> float:
    """Operations of a step for one token of a sequence of `length`, forward and backward."""
    config = model.config
    width = config.num_attention_heads * config.head_dim
    return 6.0 * matrix_weights(model.backbone) + 12.0 * config.num_hidden_layers * width * length


def peak_of(name: str) -> float | None:
    """The peak of the device `name`, where it is known."""
    return next((peak for part, peak in PEAKS.items() if part in name), None)


def step_rate(size: Size, device: str, name: str, scratch: Path) -> tuple[dict[str, Any], Path]:
    """Figures of a run's steps, and its checkpoint."""
    base = make_tiny_base(scratch / "base", hidden=size.hidden, layers=size.layers)
    chosen = records(size.steps * size.batch, size.length)
    report = run_training(full(base, size), chosen, scratch / "rate", options=options(device))
    steps = [line.value for line in files.parse_json_lines((scratch / "rate" / "metrics.jsonl").read_bytes())][WARM_UP:]
    # From end to end, so that what lies between two steps is in the rate.
    seconds = steps[-1]["monotonic"] - steps[0]["monotonic"]
    tokens = sum(step["tokens"] for step in steps[1:])
    model = load_checkpoint(report.checkpoint, device="cpu")
    length = sum(step["padded_tokens"] for step in steps[1:]) / ((len(steps) - 1) * size.batch)
    operations = token_operations(model, length) * tokens / seconds
    peak = peak_of(name)
    return {
        "weights": sum(weight.numel() for weight in model.parameters()),
        "steps_per_second": (len(steps) - 1) / seconds,
        "median_step_seconds": statistics.median(step["step_seconds"] for step in steps),
        "records_per_second": size.batch * (len(steps) - 1) / seconds,
        "tokens_per_second": tokens / seconds,
        "mean_length": length,
        "operations_per_second": operations,
        "peak_operations_per_second": peak,
        "share_of_peak": None if peak is None else operations / peak,
        "estimated_bytes": report.estimate.total if report.estimate else None,
        "peak_device_bytes": report.resources.get("peak_device_bytes"),
    }, report.checkpoint


# ---- isolation


def isolation(checkpoint: Path, size: Size, device: str) -> dict[str, Any]:
    """The largest change of a probability in bf16 between forms, and by other questions being asked."""
    context = Context.for_states(2048)
    model = load_checkpoint(checkpoint, dtype="bf16", context=context, device=device)
    whole = [model.encoder.encode_record(record) for record in records(8, size.length)]
    packed = [answer for encoding in whole for answer in probabilities(model, [encoding], rows=False)]
    rows = [answer for encoding in whole for answer in probabilities(model, [encoding], rows=True)]
    alone = [
        answer
        for encoding in whole
        for number in range(len(encoding.decide_idx))
        for answer in probabilities(model, [encoding.only(number, number + 1)], rows=False)
    ]
    together = list(probabilities(model, whole, rows=False))
    found = {
        "packed_against_rows": largest(packed, rows),
        "siblings_removed": largest(packed, alone),
        "records_together": largest(packed, together),
    }
    tolerance = TOLERANCES["bf16"]
    return {**found, "tolerance": tolerance, "passed": max(found.values()) <= tolerance}


@torch.inference_mode()
def probabilities(model: DecisionModel, encodings: list[Any], *, rows: bool) -> Iterator[torch.Tensor]:
    scores = model(model.collate(encodings, rows=rows))
    yield from (logits.float().softmax(-1).cpu() for logits in scores.ragged())


def largest(first: list[torch.Tensor], second: list[torch.Tensor]) -> float:
    return max(float((one - other).abs().max()) for one, other in zip(first, second, strict=True))


# ---- identity


def identity(size: Size, device: str, scratch: Path) -> dict[str, Any]:
    """Whether a run that was cut off after two thirds and gone on with ends with the same bits."""
    base = make_tiny_base(scratch / "small", hidden=size.small_hidden, layers=size.small_layers)
    chosen = records(9 * size.batch, size.length)
    config = full(base, size, save_every_steps=3)
    left_alone = run_training(config, chosen, scratch / "alone", options=options(device)).checkpoint
    calls = 0

    def cut() -> None:
        nonlocal calls
        calls += 1
        if calls == 8:
            raise CutOff

    with suppress(CutOff):
        run_training(config, chosen, scratch / "cut", options=options(device, before_step=cut))
    report = run_training(config, chosen, scratch / "cut", resume=True, options=options(device))
    one, other = (dict(load_checkpoint(path).state_dict()) for path in (left_alone, report.checkpoint))
    different = [name for name, tensor in one.items() if not torch.equal(tensor, other[name])]
    return {"resumed_from": report.resumed_from, "different_tensors": len(different), "passed": not different}


# ---- the whole


def table(found: dict[str, Any]) -> list[str]:
    rate, apart, same = found["step_rate"], found["isolation"], found["identity"]
    share = rate["share_of_peak"]
    words = "peak of this device not known" if share is None else (
        f"{share:.1%} of {rate['peak_operations_per_second'] / 1e12:.0f} TFLOP/s"
    )  # fmt: skip
    verdict = {True: "passed", False: "FAILED"}
    return [
        "| what | figure |",
        "|---|---|",
        f"| device | {found['device']}, torch {found['torch']} |",
        f"| model | {rate['weights'] / 1e6:.1f} M weights, random, bf16 |",
        f"| optimizer steps | {rate['steps_per_second']:.2f} /s |",
        f"| records; tokens | {rate['records_per_second']:.1f} /s; {rate['tokens_per_second']:,.0f} /s |",
        f"| operations | {rate['operations_per_second'] / 1e12:.2f} TFLOP/s, {words} |",
        f"| packed against rows | {apart['packed_against_rows']:.2e} |",
        f"| siblings removed | {apart['siblings_removed']:.2e} |",
        f"| records together | {apart['records_together']:.2e}, isolation {verdict[apart['passed']]} at "
        f"{apart['tolerance']} |",
        f"| a continuation's bits | {verdict[same['passed']]}, {same['different_tensors']} tensors differ |",
        f"| time in all | {found['seconds']:.0f} s |",
    ]


def measure(size: Size, device: str, scratch: Path) -> dict[str, Any]:
    began = time.monotonic()
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    rate, checkpoint = step_rate(size, device, name, scratch)
    found = {
        "device": name,
        "torch": torch.__version__,
        "step_rate": rate,
        "isolation": isolation(checkpoint, size, device),
        "identity": identity(size, device, scratch),
    }
    return {**found, "seconds": round(time.monotonic() - began, 1)}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="a few thousand weights, on a CPU where there is no GPU")
    parser.add_argument("--out", type=Path, default=os.environ.get("OUT"), help="where device.json goes ($OUT)")
    given = parser.parse_args(arguments)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu" and not given.tiny:
        print("no GPU that torch can use on this machine, so nothing was measured; --tiny runs the checks on the CPU")
        return 0
    with tempfile.TemporaryDirectory() as name:
        found = measure(TINY if given.tiny else WHOLE, device, Path(name))
    print("\n".join(table(found)))
    if given.out is not None:
        path = Path(given.out) / "device.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=2) + "\n")
    return 0 if found["isolation"]["passed"] and found["identity"]["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
