"""The training loop: optimizer steps, what is logged of each, and when something is kept."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from kev import files
from kev.clock import Clock
from kev.errors import Diverged
from kev.model.saving import Contents, contents_of
from kev.records.snapshot import TrainingSnapshot
from kev.train.batches import StepPlan, largest_pass
from kev.train.feed import PaddedCost
from kev.train.log import LINE_EVERY, ProgressLine, RunLog
from kev.train.memory import MemoryEstimate, peak_device_bytes, peak_rss_bytes
from kev.train.passes import PassResult, run_pass
from kev.train.resume import Counters, Pace, capture, write_point
from kev.train.saving import gathered_weights
from kev.train.settings import TrainingOptions
from kev.train.setup import Run, training_config
from kev.train.snapshots import snapshot_is_complete, write_snapshot
from kev.train.writer import BackgroundWriter


@dataclass(slots=True)
class Trainer:
    """Carries a `Run` through. `counters` say where it is; they begin where a resume point left off."""

    run: Run
    options: TrainingOptions
    out_dir: Path
    log: RunLog
    clock: Clock
    counters: Counters
    writer: BackgroundWriter
    warnings: list[str] = field(default_factory=list)
    _progress: ProgressLine = field(default_factory=ProgressLine)
    _began: float = 0.0
    _last_point: float = 0.0
    _blocked: float = 0.0

    @property
    def resume_directory(self) -> Path:
        return self.out_dir / "checkpoint" / "resume"

    @property
    def snapshot_directory(self) -> Path:
        return self.out_dir / "snapshots"

    def train(self) -> None:
        """Every step that is left. Raises Diverged, or what writing in the background raised."""
        run = self.run
        self._began = self.clock.monotonic() - self.counters.elapsed
        self._last_point = self.clock.monotonic()
        first = self.counters.step // run.steps_per_epoch
        for epoch in range(first, run.config.epochs):
            if self.counters.step >= run.steps:
                break
            plan, cost = run.plan(epoch)
            self._say_plan(epoch, plan, cost)
            done = self.counters.step - epoch * run.steps_per_epoch
            for step_plan in plan[done : run.steps - epoch * run.steps_per_epoch]:
                if self.options.before_step is not None:
                    self.options.before_step()
                self._step(epoch, step_plan, cost)
                self._keep(epoch)
        self.log.flush()

    def warn(self, words: str) -> None:
        """Say something that should not be overlooked, and remember it for the report."""
        self.warnings.append(words)
        self.log.warn(words)

    def estimate(self) -> MemoryEstimate:
        """What the rest of the run will need at its peak, by the largest pass of the epoch it is in."""
        run = self.run
        plan, cost = run.plan(min(self.counters.step // run.steps_per_epoch, run.config.epochs - 1))
        passes = [
            part for step in plan for batches in step.ranks for batch in batches for part in run.passes(batch, cost)
        ]
        sequences, length = cost.grid(max(passes, key=cost))
        return run.estimate(sequences, length)

    # ---- one step

    def _step(self, epoch: int, plan: StepPlan, cost: PaddedCost) -> None:
        run, counters, started = self.run, self.counters, self.clock.monotonic()
        run.reseed(counters.step)
        parts = self._passes(epoch, plan, cost)
        loss, kl, anchor, tokens = self._summed(parts)
        rate = run.schedule.at(counters.step)
        optimizer_started = self.clock.monotonic()
        done = run.optimizer.step(rate)
        ended = self.clock.monotonic()
        counters.optimizer_seconds += ended - optimizer_started
        counters.add_step(
            records=plan.records,
            tokens=int(tokens),
            loss=loss,
            grad_norm=done.grad_norm,
            seconds=ended - started,
            elapsed=ended - self._began,
            peak=peak_device_bytes(run.parallel.device),
        )
        self._count_touched(parts)
        self._progress.add(loss, kl, anchor)
        self.log.record(
            {
                "step": counters.step,
                "steps": run.steps,
                "epoch": epoch,
                "loss": files.as_finite(loss),
                "kl": files.as_finite(kl),
                "anchor": files.as_finite(anchor),
                "lr": run.config.lr * rate.share,
                "grad_norm": files.as_finite(done.grad_norm),
                "clipped": done.clipped,
                "step_seconds": counters.step_seconds[-1],
                "records": plan.records,
                "tokens": int(tokens),
                "tokens_per_second": round(tokens / max(ended - started, 1e-9), 1),
                "padded_tokens": sum(part.padded_tokens for part in parts),
                "memory_bytes": counters.peak_mem or peak_rss_bytes(),
            }
        )
        self._stop_if_diverged(loss, done.grad_norm)
        if counters.step % LINE_EVERY == 0:
            pace = counters.elapsed / counters.seen
            self.log.say(self._progress.line(epoch=epoch, step=counters.step, steps=run.steps, seconds_per_record=pace))

    def _count_touched(self, parts: list[PassResult]) -> None:
        touched = self.counters.touched
        for part in parts:
            for name, count in part.touched.items():
                touched[name] = touched.get(name, 0) + count

    def _stop_if_diverged(self, loss: float, norm: float) -> None:
        if math.isfinite(loss) and math.isfinite(norm):
            return
        self.log.flush()
        what = f"the loss is {loss}" if not math.isfinite(loss) else f"the gradient norm is {norm}"
        raise Diverged(
            f"step {self.counters.step} of {self.run.steps}: {what}; lower lr, or look at the records of this step"
        )

    def _passes(self, epoch: int, plan: StepPlan, cost: PaddedCost) -> list[PassResult]:
        run = self.run
        results = []
        for batch in plan.ranks[run.parallel.rank]:
            for part in run.passes(batch, cost):
                fed = run.feed.feed(
                    part, epoch=epoch, step_records=plan.records, batch=None if len(part) == len(batch) else batch
                )
                results.append(
                    run_pass(run.model, fed, run.weights, step_records=plan.records, bf16=run.config.dtype == "bf16")
                )
        return results

    def _summed(self, parts: list[PassResult]) -> list[float]:
        """Loss, kl, anchor and tokens of the step, over all its passes and all ranks."""
        losses = torch.stack([torch.stack([part.loss, part.kl, part.anchor]) for part in parts]).double().sum(0)
        tokens = float(sum(part.tokens for part in parts))
        return self.run.parallel.sum_each([*losses.tolist(), tokens])

    # ---- what is kept

    def _keep(self, epoch: int) -> None:
        self.writer.check()
        step = self.counters.step
        if step in self.run.snapshots:
            self._snapshot(step)
        now = self.clock.monotonic()
        pace = Pace(self.run.config.save_every_steps or 0, self.options.save_every_minutes)
        due = step < self.run.steps and pace.is_due(step=step, since_last=now - self._last_point, blocked=self._blocked)
        if self.run.parallel.world > 1 and not pace.steps and pace.minutes:
            # Clocks differ between ranks; all keep the point that rank 0 finds due, or none.
            due = self.run.parallel.sum(float(due and self.run.parallel.leads)) > 0
        if due:
            self.save_point(epoch)

    def save_point(self, epoch: int) -> None:
        """Keep a resume point of the present step; training stands still only while it is copied."""
        started = self.clock.monotonic()
        # One point at a time: a disk that is slower than the pace must not fill the memory with copies.
        self.writer.finish()
        run, counters = self.run, self.counters
        self.log.flush()
        content = capture(run.optimizer, counters, run.arguments, run.parallel)
        directory = self.resume_directory

        def write() -> None:
            begun = self.clock.monotonic()
            write_point(directory, content, epoch=epoch, clock=self.clock)
            counters.resume_write_seconds.append(round(self.clock.monotonic() - begun, 3))

        self.writer.submit(write)
        self._last_point = self.clock.monotonic()
        self._blocked = self._last_point - started
        counters.resume_seconds.append(round(self._blocked, 3))

    def _snapshot(self, step: int) -> None:
        run = self.run
        if snapshot_is_complete(self.snapshot_directory, step):
            return
        started = self.clock.monotonic()
        epoch = step / run.steps_per_epoch
        snapshot = {"step": step, "steps": run.steps, "epoch": epoch, "records_seen": self.counters.seen}
        contents = self.contents({"snapshot": snapshot}, detach=True)
        if contents is None:
            return
        blocking = round(self.clock.monotonic() - started, 3)
        record = TrainingSnapshot.model_validate(snapshot | {"blocking_seconds": blocking})
        self.writer.submit(self._snapshot_job(contents, record))

    def _snapshot_job(self, contents: Contents, record: TrainingSnapshot) -> Callable[[], None]:
        config = training_config(self.run, self.options)

        def write() -> None:
            written = write_snapshot(self.snapshot_directory, contents, config, record)
            blocked, wrote = float(record.blocking_seconds or 0), float(written.write_seconds or 0)
            self.counters.snapshots.append({"step": record.step, "blocking_seconds": blocked, "write_seconds": wrote})
            self.log.say(
                f"snapshot step {record.step}: {self.snapshot_directory} "
                f"(training blocked {blocked:.1f} s, written in {wrote:.1f} s)"
            )

        return write

    def contents(self, more: Mapping[str, Any], *, detach: bool) -> Contents | None:
        """What a checkpoint of the model holds now; every rank must ask, and only rank 0 is given it."""
        run = self.run
        weights = gathered_weights(run)
        if not run.parallel.leads:
            return None
        extra = {
            **self.options.extra,
            **more,
            "args": run.arguments,
            "suite_sha256": self.options.suite_sha256,
            "init_source": run.init_source,
            "holdout": list(self.options.holdout),
        }
        contents = contents_of(run.model, weights=weights, extra=extra, detach=detach)
        return contents if weights is None else _as_one_rank(contents)

    # ---- words

    def _say_plan(self, epoch: int, plan: list[StepPlan], cost: PaddedCost) -> None:
        run = self.run
        if run.config.p_none_pair:
            self.log.say(f"none pairs: {run.feed.pairs_of_epoch(epoch)} of {len(run.feed.examples)} records")
        batches = sum(len(step.ranks[0]) for step in plan)
        ceiling = run.config.pass_tokens_max
        limit = f" of --pass_tokens_max {ceiling}" if ceiling else ""
        self.log.say(
            f"plan: {batches} micro-batches per rank for {len(plan)} steps (--accum {run.config.accum}); "
            f"the plan's largest pass {largest_pass(plan, cost)}{limit} padded tokens"
        )


def _as_one_rank(contents: Contents) -> Contents:
    """`contents` of a sharded model, whose configuration shows the fp32 shards and the class that splits them."""
    names = [name.removeprefix("FSDP") for name in contents.config["architectures"]]
    return replace(contents, config={**contents.config, "architectures": names, "dtype": "bfloat16"})
