"""One container run of one sample trial: what it logs, step by step, and the points it could be continued from."""

import math
import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from kev import files
from kev.records.base import write_record
from kev.records.resume import ResumePoint
from kev.records.step_metrics import StepMetrics
from kevtui.sample.setting import NOTICE, Trial

LOGGED_EVERY: Final = 10
"""Steps between two lines of train.log, as in the real trainer."""

RECORDS_PER_STEP: Final = 8


class Training:
    """Logs the steps of `trial` that are due, from `first_step` on. Times are story seconds unless they are moments."""

    def __init__(
        self, directory: Path, trial: Trial, *, attempt: int, first_step: int, began: float, at: datetime,
        stretch: float, resumable: bool,
    ) -> None:  # fmt: skip
        self.trial = trial
        self.attempt = attempt
        self.step = first_step
        self.kept_step = first_step
        self._directory = directory
        self._first_step = first_step
        self._began = began
        self._at = at
        self._stretch = stretch
        self._resumable = resumable
        if first_step:
            start = f"resumed from checkpoint/resume: step {first_step}, epoch 0, micro-batch {first_step * 4}\n"
            files.append(directory / "train.log", start.encode())
        else:
            start = f"{NOTICE}\ndevice=sample world=1 trainable params=0.0M\n"
            files.write_atomic(directory / "train.log", start.encode())

    @property
    def finished(self) -> bool:
        return self.step >= self.trial.steps

    def advance(self, story_s: float) -> None:
        """Write every step that is done by `story_s`."""
        due = self._first_step + int(max(0.0, story_s - self._began) * self.trial.steps_per_second)
        steps = range(self.step + 1, min(due, self.trial.steps) + 1)
        if not steps:
            return
        self.step = steps[-1]
        metrics = [files.dump_json_line(self._metrics(step).to_json()) for step in steps]
        files.append(self._directory / "metrics.jsonl", b"".join(metrics))
        for step in steps:
            if step % LOGGED_EVERY == 0:
                self._log_line(step)
        if self.finished:
            files.append(self._directory / "train.log", f"saved {self._directory.name}/checkpoint\n".encode())

    def score(self, done: int, of: int) -> None:
        """Log that `done` records of the trial's own evaluation are scored."""
        files.append(self._directory / "train.log", f"evaluated {done}/{of}\n".encode())

    def _log_line(self, step: int) -> None:
        seconds = self._stretch / self.trial.steps_per_second / RECORDS_PER_STEP
        line = (
            f"ep0 step {step}/{self.trial.steps} loss {self._loss(step):.3f} kl 0.000 anchor 0.000 {seconds:.3f}s/rec"
        )
        if self._resumable:
            name = f"step-{step:07d}"
            point = ResumePoint(dir=name, step=step, epoch=0, seen=step * RECORDS_PER_STEP, world=1)
            write_record(self._directory / "checkpoint" / "resume" / "latest.json", point)
            self.kept_step = step
            line += f"\n[volume] committed resume point {step} ({name}) to the runs volume in 1 s"
        files.append(self._directory / "train.log", f"{line}\n".encode())

    def _metrics(self, step: int) -> StepMetrics:
        ended = self._at + timedelta(seconds=self._since_start(step))
        norm = 8.0 * self._loss(step)
        return StepMetrics(
            step=step,
            steps=self.trial.steps,
            at=ended.isoformat(),
            monotonic=round(self._since_start(step), 3),
            loss=round(self._loss(step), 4),
            lr=2e-4,
            grad_norm=round(norm, 3),
            clipped=norm > 1.0,
            step_seconds=round(self._since_start(step) - self._since_start(step - 1), 3),
            attempt=self.attempt,
            rank=0,
        )

    def _since_start(self, step: int) -> float:
        """Real seconds; no two steps last alike, and none ends before the one ahead of it."""
        wobble = 0.4 * math.sin(step / 5) + 0.1 * self._chance(step)
        return max(0.0, step - self._first_step - 0.5 + wobble) / self.trial.steps_per_second * self._stretch

    def _loss(self, step: int) -> float:
        return 0.3 + 1.9 * math.exp(-4.0 * step / self.trial.steps) + 0.06 * self._chance(step)

    def _chance(self, step: int) -> float:
        # Of the step alone, so that a continuation goes on along the same curve.
        return random.Random(f"{self.trial.arm} {step}").uniform(-1.0, 1.0)
