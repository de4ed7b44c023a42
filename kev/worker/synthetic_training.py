"""The training loop of the synthetic objective: conditional logit on plain features, by AdamW under OneCycle.

It is a pure function of configuration, records and step: the order of an epoch is drawn anew from seed and epoch, so
a continuation from a resume point ends in the very same bits as a run that was never interrupted.
"""

import resource
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from kev import files
from kev.data.record import DataRecord
from kev.data.render import render
from kev.errors import Refused
from kev.linear import FEATURES, LinearModel, option_features
from kev.records.plan import TrialConfig, snapshot_steps
from kev.records.resume import ResumePoint
from kev.records.snapshot import TrainingSnapshot
from kev.records.step_metrics import StepMetrics
from kev.train.points import step_name
from kev.worker.synthetic_checkpoint import MODEL, model_bytes, priors_of
from kev.worker.synthetic_optimizer import MAX_GRAD_NORM, Example, State, adamw, mean_loss
from kev.worker.synthetic_schedule import Schedule
from kev.worker.synthetic_scorer import SyntheticScorer
from kev.worker.training_files import ResumePoints, Snapshots, append_step

if TYPE_CHECKING:
    from pathlib import Path

    from kev.worker.training import TrainingRun

LOG_EVERY = 10
RESUME_SECONDS = 3600.0


class SyntheticTrainer:
    """Trains the synthetic objective, spending at least `pace` seconds on each step."""

    def __init__(self, pace: float) -> None:
        self._pace = pace

    def train(self, run: "TrainingRun") -> None:
        _Training(run, self._pace).run_to_end()

    def load(self, checkpoint: "Path") -> SyntheticScorer:
        return SyntheticScorer(checkpoint)


class _Training:
    """One attempt."""

    def __init__(self, run: "TrainingRun", pace: float) -> None:
        self._run, self._pace = run, pace
        self._config = run.config
        records = _chosen(run.records, run.config)
        if not records:
            raise Refused(f"{run.suite.directory}: no record of train is left to train on")
        self._priors = priors_of(records)
        self._examples = [_examples(record, self._priors) for record in records]
        self._schedule = Schedule(run.config, len(records))
        self._checkpoint = run.directory / "checkpoint"
        self._resume = ResumePoints(self._checkpoint / "resume")
        self._snapshots = Snapshots(run.directory / "snapshots")
        self._snapshot_steps = snapshot_steps(run.config, self._schedule.total)
        self._state = State()
        self._step_seconds: list[float] = []
        self._elapsed = 0.0
        self._blocked: list[float] = []
        self._norms: list[float] = []
        self._types = Counter(question.type for record in records for question in record.questions.values())

    def run_to_end(self) -> None:
        self._say_start()
        self._continue()
        self._point_saved = time.monotonic()
        while self._state.step < self._schedule.total:
            self._run.check()
            self._take_step()
            self._save_points()
        self._finish()

    def _say_start(self) -> None:
        say, total = self._run.say, self._schedule.total
        say(f"device=cpu world=1 trainable params={len(FEATURES) / 1e6:.1f}M")
        held_out = self._run.suite.manifest.holdout_sources or []
        say(f"{len(self._examples)} training requests (holdout={held_out}), questions by type {dict(self._types)}")
        if self._config.full_ft and self._snapshot_steps:
            say(
                f"snapshots after optimizer steps {self._snapshot_steps} of {total} -> "
                f"{self._run.shown}/snapshots/step-<N>/checkpoint"
            )

    def _continue(self) -> None:
        """Take up the last resume point, if there is one made with these very arguments."""
        point = self._resume.latest()
        if point is None:
            return
        if point.args != self._config.to_json() or point.world != 1:
            raise Refused(f"{self._resume.directory}: made with other arguments, so training cannot go on from it")
        self._state = State.from_json(files.read_json(self._resume.shard(point, 0)))
        self._step_seconds = [float(each) for each in point.step_seconds or []]
        self._elapsed = float(point.elapsed or 0.0)
        self._run.say(
            f"resumed from {self._run.shown}/checkpoint/resume/{point.dir}: step {point.step}, epoch {point.epoch}, "
            f"micro-batch {point.microbatch}"
        )

    def _take_step(self) -> None:
        began = time.monotonic()
        state, step = self._state, self._state.step + 1
        loss, gradient = mean_loss([each for at in self._schedule.indices(step) for each in self._examples[at]],
                                    state.weights)  # fmt: skip
        norm = float(np.sqrt((gradient * gradient).sum()))
        rate = self._schedule.rate(step)
        adamw(state, gradient * min(1.0, MAX_GRAD_NORM / norm) if norm else gradient, rate, self._config.weight_decay)
        state.loss_sum += loss
        time.sleep(max(0.0, self._pace - (time.monotonic() - began)))
        seconds = time.monotonic() - began
        self._elapsed += seconds
        self._step_seconds.append(seconds)
        self._norms.append(norm)
        self._record(loss, rate, norm, seconds)

    def _record(self, loss: float, rate: float, norm: float, seconds: float) -> None:
        step, total = self._state.step, self._schedule.total
        append_step(
            self._run.directory / "metrics.jsonl",
            StepMetrics(
                step=step,
                steps=total,
                at=self._run.clock.now().isoformat(timespec="milliseconds"),
                monotonic=round(self._run.clock.monotonic(), 6),
                loss=loss,
                lr=rate,
                grad_norm=norm,
                clipped=norm > MAX_GRAD_NORM,
                step_seconds=round(seconds, 6),
                attempt=self._run.attempt,
                rank=0,
            ),
        )
        if step % LOG_EVERY == 0:
            mean, self._state.loss_sum = self._state.loss_sum / LOG_EVERY, 0.0
            self._run.say(
                f"ep{self._schedule.epoch_of(step)} step {step}/{total} loss {mean:.3f} kl 0.000 anchor 0.000 "
                f"{self._elapsed / self._schedule.seen(step):.3f}s/rec"
            )

    def _save_points(self) -> None:
        step = self._state.step
        if step in self._snapshot_steps and not self._snapshots.is_complete(step):
            self._save_snapshot(step)
        if not self._config.full_ft or step == self._schedule.total:
            return
        every = self._config.save_every_steps
        if (every and step % every == 0) or time.monotonic() - self._point_saved >= RESUME_SECONDS:
            self._save_resume_point(step)

    def _save_snapshot(self, step: int) -> None:
        began = time.monotonic()
        schedule = self._schedule
        contents = {MODEL: self._model_bytes(), "training_config.json": files.dump_json(self._training_config())}
        seconds = round(time.monotonic() - began, 3)
        record = TrainingSnapshot(
            step=step,
            steps=schedule.total,
            epoch=step / schedule.steps_per_epoch,
            records_seen=schedule.seen(step),
            blocking_seconds=seconds,
            write_seconds=seconds,
        )
        self._snapshots.save(record, contents)
        place = f"{self._run.shown}/snapshots/{step_name(step)}/checkpoint"
        self._run.say(f"snapshot step {step}: {place} (training blocked {seconds:.1f} s, written in {seconds:.1f} s)")

    def _save_resume_point(self, step: int) -> None:
        began = time.monotonic()
        point = ResumePoint(
            dir=step_name(step),
            step=step,
            epoch=self._schedule.epoch_of(step),
            seen=self._schedule.seen(step),
            microbatch=(step - self._schedule.epoch_of(step) * self._schedule.steps_per_epoch) * self._config.accum,
            step_seconds=self._step_seconds,
            elapsed=self._elapsed,
            optimizer_seconds=self._elapsed,
            world=1,
            args=self._config.to_json(),
        )
        self._resume.save(point, {0: self._state.to_json()})
        self._point_saved = time.monotonic()
        self._blocked.append(self._point_saved - began)

    def _finish(self) -> None:
        place = self._checkpoint
        files.write_atomic(place / MODEL, self._model_bytes())
        files.write_atomic(place / "training_config.json", files.dump_json(self._training_config()))
        files.write_atomic(place / "training_metrics.json", files.dump_json(self._metrics()))
        self._resume.clear()
        self._run.say(f"saved {self._run.shown}/checkpoint")

    def _model_bytes(self) -> bytes:
        return model_bytes(LinearModel(self._state.weights, self._priors))

    def _training_config(self) -> dict[str, Any]:
        return {
            "args": self._config.to_json(),
            "suite_sha256": self._run.suite.sha256,
            "base_revision": self._config.base_revision,
            "holdout": self._run.suite.manifest.holdout_sources or [],
            "synthetic": True,
        }

    def _metrics(self) -> dict[str, Any]:
        rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        norms = self._norms or [0.0]
        return {
            "wall_seconds": self._elapsed,
            "records_seen": self._schedule.seen(self._schedule.total),
            "requested_records": len(self._run.records),
            "truncated_records": 0,
            "rejected_records": len(self._run.records) - len(self._examples),
            "optimizer_steps": self._schedule.total,
            "step_seconds": self._step_seconds,
            "optimizer_seconds": self._elapsed,
            "resume_seconds": self._blocked,
            "world_size": 1,
            "snapshots": [each.to_json() for each in self._snapshots.complete().values()],
            "grad_norm": [
                {
                    "epoch": self._schedule.epoch_of(self._schedule.total),
                    "steps": len(norms),
                    "mean": float(np.mean(norms)),
                    "max": max(norms),
                    "clipped_steps": sum(norm > MAX_GRAD_NORM for norm in norms),
                }
            ],
            "weights": "full" if self._config.full_ft else "lora",
            "device": "cpu",
            "dtype": self._config.dtype,
            # Linux counts in KiB, macOS in bytes.
            "peak_rss_bytes": rss if sys.platform == "darwin" else rss * 1024,
            "synthetic": True,
        }


def _chosen(records: list[DataRecord], config: TrialConfig) -> list[DataRecord]:
    if config.train_sources is None:
        return records
    wanted = set(config.train_sources.split(","))
    return [record for record in records if record.meta.source in wanted]


def _examples(record: DataRecord, priors: dict[tuple[str, int], Counter[int]]) -> list[Example]:
    state = render(record.state)
    return [(option_features(state, each, priors), each.label_index) for each in record.questions.values()]
