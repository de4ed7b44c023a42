"""Show on this machine that training works: from nothing to a calibrated model of half a million weights.

    python scripts/demo_train.py            # about a minute on two idle cores
    python scripts/demo_train.py --quick    # a few seconds of training: everything runs, little is learned

It makes a small random base, freezes two suites (kev/data/memos.py), trains on the memos by `kev.experiment`, reads
both by `kev.benchmark`, and fits the temperature that the checkpoint ships with on bulletins, which it never trained
on. One label in ten is wrong, at a known rate, so the best that any model can do is known too. It computes with one
thread unless OMP_NUM_THREADS says otherwise: so small a model gains nothing by a second, and on a busy machine it waits
for it.
"""

import argparse
import contextlib
import io
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kev import benchmark, experiment, files
from kev.calibrate import FitRows, Request, calibrate
from kev.console import run
from kev.data import memos
from kev.data.freeze import freeze
from kev.data.record import DataRecord
from kev.data.render import render
from kev.data.suites import Ingredient, SuitePlan
from kev.errors import KevError
from kev.metrics import Rows, metric, rows_from_json, scored
from kev.suite import open_suite
from kev.threads import OMP, use_cores

QUESTIONS = {**dict.fromkeys(memos.PLACES, "choice"), "signed": "yes or no", "size": "score"}
READS = {"memos": "what it was trained on", "bulletins": "never trained on"}
STANDARD_ERRORS = 3
"""How far below the ceiling an accuracy may be: the share of right labels among a few hundred varies by itself."""


class NotShown(KevError):
    """The demonstration ran and did not show what it is for."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much is trained on and read."""

    train: int = 1000
    held_out: int = 400
    epochs: int = 3
    batch: int = 4
    repeat: int = 1
    """How often each record comes in an epoch."""
    max_steps: int = 0
    save_every: int = 250


@dataclass(frozen=True, slots=True)
class Demo:
    """One run of the demonstration, in a directory of its own."""

    root: Path
    size: Size
    say: Callable[[str], None]

    @property
    def study(self) -> Path:
        return self.root / "runs" / "demo"

    @property
    def checkpoint(self) -> Path:
        return self.study / "00-trial-0" / "checkpoint"

    def suite(self, name: str) -> Path:
        return self.root / "evals" / f"{name}-v1"

    def prepare(self) -> None:
        """Freeze the suites, make the base, write the plan."""
        from kev.model.tiny_base import make_tiny_base

        held_out = {"calibration": self.size.held_out, "development": self.size.held_out}
        for plan in (
            SuitePlan("memos-v1", "Memos, to train on.", 11,
                      (Ingredient(memos.generate_checked_memos, ("memos",), {"train": self.size.train}),
                       Ingredient(memos.generate_memos, ("memos",), held_out)),
                      trainable=("memos",)),
            SuitePlan("bulletins-v1", "Bulletins, for temperatures.", 12,
                      (Ingredient(memos.generate_bulletins, ("bulletins",), held_out),)),
        ):  # fmt: skip
            freeze(self.root / "evals", plan)
        make_tiny_base(self.root / "base", texts=self._texts(), vocabulary=768)
        files.write_atomic(self.root / "plan.json", files.dump_json([self.config()]))

    def config(self) -> dict[str, Any]:
        """The trial: full weights, since an adapter on a base that knows nothing learns nothing."""
        return {
            "base": str(self.root / "base"),
            "full_ft": 1,
            "weights_dtype": "bf16",
            "epochs": self.size.epochs,
            "lr": 1e-3,
            "batch": self.size.batch,
            "synthetic_repeat": self.size.repeat,
            "accum": 1,
            "head_dim": 128,
            # Labels that are never wrong would drive the logits up without end, past what a temperature may be.
            "label_smoothing": 0.02,
            "p_none": 0,
            "p_none_distract": 0,
            "p_distract": 0,
            "save_every_steps": self.size.save_every,
            "snapshot_fractions": "0.5",
            **({"max_steps": self.size.max_steps} if self.size.max_steps else {}),
        }

    def train(self, *, resume: bool = False) -> None:
        """Train and score, or go on with it."""
        given = ["--suite", str(self.suite("memos")), "--out", str(self.study), "--device", "cpu"]
        given += ["--resume"] if resume else ["--plan", str(self.root / "plan.json")]
        _succeed(experiment.main(given))

    def read(self, name: str, split: str, label: str) -> Rows:
        """Read a partition of the suite `name` with the checkpoint as it is now; the rows that count."""
        out = self.root / "runs" / f"{label}-{name}-{split}"
        given = ["--run", str(self.checkpoint), "--suite", str(self.suite(name)), "--split", split, "--out", str(out)]
        with contextlib.redirect_stdout(io.StringIO()):
            _succeed(benchmark.main([*given, "--device", "cpu"]))
        return scored(rows_from_json(files.read_json(out / "rows.json"), str(out)))

    def calibrate(self) -> float:
        """Fit the shipped temperature on bulletins that nothing else is measured on."""
        self.read("bulletins", "calibration", "pool")
        pool = FitRows(self.root / "runs" / "pool-bulletins-calibration" / "rows.json")
        return calibrate(Request(self.checkpoint, (pool,), root=self.root), lambda _: None).temperature

    def _texts(self) -> list[str]:
        texts = []
        for name, split in (("memos", "train"), ("bulletins", "calibration")):
            for value in open_suite(self.suite(name)).read_partition(split):
                record = DataRecord.model_validate(value)
                texts.append(render(record.state))
                for question in record.questions.values():
                    texts += [render(question.instructions), *question.options]
        return texts


def figures(before: Rows, after: Rows, say: Callable[[str], None], name: str) -> list[str]:
    """Print one read before and after calibration; what it does not show, a line each."""
    missing = []
    for question, kind in QUESTIONS.items():
        rows = before.take(before.questions == question)
        accuracy, ceiling = float(rows.correct.mean()), memos.ceiling(question)
        margin = STANDARD_ERRORS * math.sqrt(ceiling * (1 - ceiling) / len(rows))
        say(f"{name:<10} {question:<7} {kind:<10} accuracy {accuracy:.3f}, ceiling {ceiling:.2f}, n {len(rows)}")
        if accuracy < ceiling - margin:
            missing.append(f"{name} {question}: accuracy {accuracy:.3f}, under {ceiling:.2f} - {margin:.3f}")
    eces = [metric(rows, "ece") or 0.0 for rows in (before, after)]
    losses = [metric(rows, "nll") or 0.0 for rows in (before, after)]
    say(f"{name:<10} ECE {eces[0]:.4f} -> {eces[1]:.4f}, NLL {losses[0]:.4f} -> {losses[1]:.4f}")
    if eces[1] >= eces[0]:
        missing.append(f"{name}: ECE {eces[0]:.4f} -> {eces[1]:.4f} does not fall")
    return missing


def show(demo: Demo) -> list[str]:
    """Run it all and print what came of it; what was not shown, a line each."""
    began = time.monotonic()
    demo.prepare()
    demo.train()
    demo.say(f"trained and scored after {time.monotonic() - began:.0f} s")
    before = {name: demo.read(name, "development", "raw") for name in READS}
    temperature = demo.calibrate()
    after = {name: demo.read(name, "development", "served") for name in READS}
    demo.say(f"\ntemperature {temperature:.4f}, fitted on {demo.size.held_out} bulletins")
    missing = []
    for name, words in READS.items():
        demo.say(f"\n{name}, held-out records, {words}:")
        missing += figures(before[name], after[name], demo.say, name)
    demo.say(f"\n{time.monotonic() - began:.0f} s in all; files in {demo.root}")
    return missing


def _succeed(code: int) -> None:
    if code:
        raise NotShown("a command failed; its message is above")


def _run(root: Path, size: Size, *, quick: bool) -> int:
    use_cores(None if os.environ.get(OMP) else 1)
    missing = show(Demo(root, size, print))
    if missing and not quick:
        raise NotShown("not shown: " + "; ".join(missing))
    return 0


def main(arguments: list[str] | None = None) -> int:
    """The command line. Returns 0 if everything was shown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, metavar="DIR", help="where it all goes (a new temporary directory)")
    parser.add_argument("--quick", action="store_true", help="train a few steps only, and expect nothing of them")
    given = parser.parse_args(arguments)
    root = (given.out or Path(tempfile.mkdtemp(prefix="kev-demo-"))).resolve()
    size = Size(200, 60, 1, repeat=1, max_steps=12) if given.quick else Size()
    return run(lambda: _run(root, size, quick=given.quick))


if __name__ == "__main__":
    sys.exit(main())
