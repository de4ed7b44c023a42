"""A session on the disk for tests and benchmarks, of any number of trials, written through kev.records."""

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from kev import files
from kev.records.base import write_record
from kev.records.session import SessionState, SessionStudy, SpendReading
from kev.records.spawn import Attempt, SpawnRecord
from kev.records.step_metrics import StepMetrics
from kev.records.watch import TrialState, WatchRecord

NAME = "measured"
STEPS = 100_000
STEP_S = 8.0


@dataclass
class SessionFiles:
    """`studies` studies of `trials` trials each under `root`, every one of them in training at step `first_step`."""

    root: Path
    studies: int = 2
    trials: int = 2
    first_step: int = 400
    begun: datetime = field(default_factory=lambda: datetime.now(UTC) - timedelta(hours=1))
    metered_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def write(self) -> "SessionFiles":
        spawned = {}
        for study in map(self.study, range(self.studies)):
            labels = [f"trial-{index}" for index in range(self.trials)]
            attempts = {
                label: [Attempt(nonce="0" * 32, call=f"fc-{study}-{label}", at=self.begun.timestamp())]
                for label in labels
            }
            calls = {label: entries[0].call for label, entries in attempts.items()}
            spawn = SpawnRecord(
                name=study, calls=calls, attempts=attempts, bound_usd=Decimal("12.50"), gpu="H200", timeout=86_400,
                full_ft=False, modal_retries=0,
            )  # fmt: skip
            write_record(self.root / "runs" / f"{study}.spawn.json", spawn)
            states = {
                label: TrialState(status="running", launched=False, transient=0, call=call)
                for label, call in calls.items()
            }
            write_record(self.root / "runs" / f"{study}.watch.json", WatchRecord(calls=states))
            spawned[study] = SessionStudy(bound_usd=Decimal("12.50"), calls=calls, status="running")
        reading = SpendReading(at=self.metered_at.isoformat(), metered_usd=Decimal("350.25"), source="a test")
        state = SessionState(
            session=NAME, authorization_usd=Decimal("5000"), reserve_usd=Decimal("50"), baseline_usd=Decimal("300"),
            readings=[reading], studies=spawned,
        )  # fmt: skip
        write_record(self.root / "runs" / f"{NAME}-state.json", state)
        for study in range(self.studies):
            for trial in range(self.trials):
                self._start(study, trial)
        return self

    def study(self, number: int) -> str:
        return f"study-{number:03d}"

    def directory(self, study: int, trial: int) -> Path:
        return self.root / "runs" / self.study(study) / f"{trial:02d}-trial-{trial}"

    def log(self, study: int, trial: int) -> Path:
        return self.directory(study, trial) / "train.log"

    def step(self, study: int, trial: int, step: int) -> None:
        """One more step in the log and the metrics of a trial."""
        with (self.directory(study, trial) / "metrics.jsonl").open("ab") as stream:
            stream.write(self._metrics(step))
        with self.log(study, trial).open("ab") as stream:
            stream.write(self._line(step))

    def age(self, days: float = 3.0) -> None:
        """Make every file look untouched for days, so that no age on the screen moves while it is looked at."""
        then = datetime.now(UTC).timestamp() - days * 86_400
        for path in self.root.rglob("*"):
            os.utime(path, (then, then))

    def _start(self, study: int, trial: int) -> None:
        steps = range(max(1, self.first_step - 50), self.first_step + 1)
        files.write_atomic(self.log(study, trial), b"".join(map(self._line, steps)))
        metrics = self.directory(study, trial) / "metrics.jsonl"
        files.write_atomic(metrics, b"".join(map(self._metrics, steps)))

    def _line(self, step: int) -> bytes:
        return f"ep0 step {step}/{STEPS} loss {self._loss(step):.3f} kl 0.000 anchor 0.000 1.000s/rec\n".encode()

    def _metrics(self, step: int) -> bytes:
        # Timed so that the last first step was a moment ago.
        at = self.begun + timedelta(hours=1, seconds=(step - self.first_step) * STEP_S)
        metrics = StepMetrics(
            step=step, steps=STEPS, at=at.isoformat(), monotonic=step * STEP_S, loss=self._loss(step), lr=1e-4,
            grad_norm=1.0, clipped=False, step_seconds=STEP_S, attempt=1, rank=0,
        )  # fmt: skip
        return files.dump_json_line(metrics.to_json())

    def _loss(self, step: int) -> float:
        return round(0.3 + 200 / (step + 100), 4)
