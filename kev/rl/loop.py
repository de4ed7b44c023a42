"""The loop of a reinforcement: questions answered, weights moved by what came of it, and when something is kept."""

import math
from dataclasses import dataclass, field
from pathlib import Path

import torch

from kev import files
from kev.clock import Clock
from kev.data.draw import derive_seed
from kev.errors import Diverged
from kev.rl.answers import Measures, first_update, next_update
from kev.rl.policy import Policy
from kev.train.batches import StepPlan, plan_epoch, split_by_length
from kev.train.feed import PaddedCost
from kev.train.log import LINE_EVERY, ProgressLine, RunLog
from kev.train.memory import peak_device_bytes, peak_rss_bytes
from kev.train.optimizer import Step
from kev.train.resume import Counters, capture, write_point
from kev.train.settings import TrainingOptions
from kev.train.setup import PASS_OVERHEAD
from kev.train.writer import BackgroundWriter


@dataclass(slots=True)
class Loop:
    """Carries a `Policy` through, in one process. `counters` say where it is."""

    policy: Policy
    options: TrainingOptions
    out_dir: Path
    log: RunLog
    clock: Clock
    counters: Counters
    writer: BackgroundWriter
    _progress: ProgressLine = field(default_factory=ProgressLine)
    _since_line: Measures = field(default_factory=Measures)
    _began: float = 0.0
    _last_point: float = 0.0
    _last_point_step: int = 0

    @property
    def resume_directory(self) -> Path:
        return self.out_dir / "checkpoint" / "resume"

    def learn(self) -> None:
        """Every step that is left. Raises Diverged, or what writing in the background raised."""
        self._began = self.clock.monotonic() - self.counters.elapsed
        self._last_point, self._last_point_step = self.clock.monotonic(), self.counters.step
        for epoch in range(self.policy.config.epochs):
            self._epoch(epoch)
        self.log.flush()

    def _epoch(self, epoch: int) -> None:
        policy, counters = self.policy, self.counters
        cost = PaddedCost(policy.feed.shapes)
        plan = plan_epoch(
            policy.batching, cost, records=len(policy.feed.examples), seed=policy.config.seed, epoch=epoch
        )
        done = counters.step // policy.config.updates - epoch * policy.batches_per_epoch
        for batch in plan[max(done, 0) :]:
            if self.options.before_step is not None:
                self.options.before_step()
            self._batch(epoch, batch, cost)
            self._keep(epoch)

    def _batch(self, epoch: int, plan: StepPlan, cost: PaddedCost) -> None:
        """Answer the questions of some records, and move the weights `updates` times by what came of it."""
        policy, config = self.policy, self.policy.config
        [[places]] = plan.ranks
        overhead = PASS_OVERHEAD[policy.parallel.device.type == "cuda"]
        # By the step, so that a continuation has no random state to restore.
        generator = torch.Generator().manual_seed(derive_seed(config.seed, f"answers:{self.counters.step}") % 2**63)
        answers = []
        started = self.clock.monotonic()
        total = Measures()
        for part in split_by_length(places, cost, overhead):
            fed = policy.feed.feed(part, epoch=epoch, step_records=plan.records, batch=places)
            found, measures = first_update(policy.model, fed, policy.reference, config, generator)
            answers.append(found)
            total.add(measures)
        self._step(epoch, plan, total, started)
        for _ in range(config.updates - 1):
            started, total = self.clock.monotonic(), Measures()
            for found in answers:
                total.add(next_update(policy.model, found, config))
            self._step(epoch, plan, total, started, again=True)

    def _step(self, epoch: int, plan: StepPlan, total: Measures, started: float, *, again: bool = False) -> None:
        policy, counters = self.policy, self.counters
        rate = policy.schedule.at(counters.step)
        optimizer_started = self.clock.monotonic()
        done = policy.optimizer.step(rate)
        ended = self.clock.monotonic()
        counters.optimizer_seconds += ended - optimizer_started
        counters.add_step(
            records=0 if again else plan.records,
            tokens=total.tokens,
            loss=total.loss,
            grad_norm=done.grad_norm,
            seconds=ended - started,
            elapsed=ended - self._began,
            peak=peak_device_bytes(policy.parallel.device),
        )
        self._log_step(epoch, plan, total, done, lr=policy.config.lr * rate.share)
        self._progress.add(total.loss, total.kl, 0.0)
        self._since_line.add(total)
        if not (math.isfinite(total.loss) and math.isfinite(done.grad_norm)):
            self.log.flush()
            raise Diverged(
                f"step {counters.step} of {policy.schedule.steps}: the loss is {total.loss} and the gradient norm "
                f"{done.grad_norm}; lower lr"
            )
        if counters.step % LINE_EVERY == 0:
            self.log.say(self._line(epoch))

    def _log_step(self, epoch: int, plan: StepPlan, total: Measures, done: Step, *, lr: float) -> None:
        counters, seconds = self.counters, self.counters.step_seconds[-1]
        self.log.record(
            {
                "step": counters.step,
                "steps": self.policy.schedule.steps,
                "epoch": epoch,
                "loss": files.as_finite(total.loss),
                "kl": files.as_finite(total.kl),
                "reward": files.as_finite(total.reward),
                "drawn_accuracy": files.as_finite(total.accuracy),
                "entropy": files.as_finite(total.entropy),
                "clip_share": files.as_finite(total.clip_share),
                "lr": lr,
                "grad_norm": files.as_finite(done.grad_norm),
                "clipped": done.clipped,
                "step_seconds": seconds,
                "records": plan.records,
                "tokens": total.tokens,
                "tokens_per_second": round(total.tokens / max(seconds, 1e-9), 1),
                "padded_tokens": total.padded_tokens,
                "memory_bytes": counters.peak_mem or peak_rss_bytes(),
            }
        )

    def _line(self, epoch: int) -> str:
        counters, count = self.counters, max(self._progress.steps, 1)
        text = self._progress.line(
            epoch=epoch, step=counters.step, steps=self.policy.schedule.steps,
            seconds_per_record=counters.elapsed / max(counters.seen, 1),
        )  # fmt: skip
        mean, self._since_line = self._since_line, Measures()
        return f"{text} reward {mean.reward / count:.3f} entropy {mean.entropy / count:.3f}"

    # ---- what is kept

    def _keep(self, epoch: int) -> None:
        self.writer.check()
        step, now = self.counters.step, self.clock.monotonic()
        every, minutes = self.policy.config.save_every_steps, self.options.save_every_minutes
        if every:
            due = step - self._last_point_step >= every
        else:
            due = minutes > 0 and now - self._last_point >= 60 * minutes
        if due and step < self.policy.schedule.steps:
            self._save_point(epoch)

    def _save_point(self, epoch: int) -> None:
        self.writer.finish()
        self.log.flush()
        policy = self.policy
        content = capture(policy.optimizer, self.counters, policy.arguments, policy.parallel)
        directory = self.resume_directory
        self.writer.submit(lambda: write_point(directory, content, epoch=epoch, clock=self.clock))
        self._last_point, self._last_point_step = self.clock.monotonic(), self.counters.step
