"""A reinforcement from its checkpoint to the one that comes of it."""

import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from kev import files
from kev.checkpoint import HEAD
from kev.clock import Clock
from kev.data.draw import derive_seed
from kev.data.record import DataRecord
from kev.errors import Diverged, KevError, Refused
from kev.model.context import Context
from kev.model.decision_model import DecisionModel
from kev.model.layout import find_layout
from kev.model.loading import load_checkpoint, open_head
from kev.model.places import locate
from kev.model.saving import contents_of
from kev.rl.answers import Measures, first_update, next_update
from kev.rl.config import RlConfig, parse_rl_config
from kev.rl.reference import Reference
from kev.rl.report import Judged, RlReport, judge
from kev.torch_files import MAX_BYTES
from kev.train.augment import Augmentation
from kev.train.batches import Batching, StepPlan, plan_epoch, split_by_length
from kev.train.examples import Example, examples_of
from kev.train.feed import Feed, PaddedCost
from kev.train.log import LINE_EVERY, ProgressLine, RunLog
from kev.train.memory import peak_device_bytes, peak_rss_bytes
from kev.train.optimizer import Optimizer
from kev.train.parallel import Parallel
from kev.train.resume import Counters, Restored, capture, restore, write_point
from kev.train.run import attempts_in
from kev.train.saving import finished_metrics, write_final
from kev.train.schedule import OneCycle
from kev.train.settings import DEFAULT_MAX_STATE, TrainingOptions, digest
from kev.train.setup import PASS_OVERHEAD, pick_device, prepare_torch
from kev.train.writer import BackgroundWriter

EVALS = "evals.json"
SHUFFLED_ONLY = Augmentation(none=0.0, none_distract=0.0, distract=0.0)


def run_reinforcement(
    config: RlConfig | Mapping[str, Any],
    records: Sequence[DataRecord],
    out_dir: Path,
    *,
    held_out: Sequence[DataRecord],
    resume: bool,
    clock: Clock,
    options: TrainingOptions,
) -> RlReport:
    """See `kev.rl.reinforce`."""
    config = parse_rl_config(config)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise Refused("a reinforcement runs on one rank; start it without torchrun")
    device = pick_device(options)
    threads = prepare_torch(options, device)
    checkpoint = out_dir / "checkpoint"
    metrics = finished_metrics(checkpoint)
    if metrics is not None and resume:
        return RlReport(
            checkpoint, int(metrics.get("optimizer_steps") or 0), None, None, metrics, already_finished=True
        )
    if not resume and checkpoint.exists() and any(checkpoint.iterdir()):
        raise Refused(f"{checkpoint}: is not empty; resume the run that is there, or choose another directory")
    try:
        policy = _set_up(config, examples_of(records), Parallel(device=device), threads)
        with BackgroundWriter() as writer:
            return _Loop(policy, held_out, out_dir, clock, options, writer).run(resume=resume)
    except OSError as error:
        reason = (error.strerror or str(error) or type(error).__name__).lower()
        raise KevError(f"{error.filename or out_dir}: {reason}; what was acknowledged before is whole") from error


@dataclass(slots=True)
class _Policy:
    """A checkpoint that is ready to answer and to learn."""

    config: RlConfig
    model: DecisionModel
    reference: Reference | None
    optimizer: Optimizer
    feed: Feed
    batching: Batching
    schedule: OneCycle
    parallel: Parallel
    threads: int
    arguments: dict[str, Any]

    @property
    def batches_per_epoch(self) -> int:
        return self.batching.steps_per_epoch(len(self.feed.examples))


def _set_up(config: RlConfig, examples: list[Example], parallel: Parallel, threads: int) -> _Policy:
    directory = locate(config.init_from)
    layout = find_layout(directory, open_head(directory))
    context = Context.for_states(config.max_state or DEFAULT_MAX_STATE)
    # In evaluation mode: the answers are those that are served, at the temperature they are served with, and without
    # dropout, under which the ratio of two passes would not be 1 for equal weights.
    model = load_checkpoint(config.init_from, merge=False, context=context, device=str(parallel.device)).eval()
    feed = Feed(examples, model.encoder, SHUFFLED_ONLY, config.seed, model.hybrid)
    feed.measure()
    optimizer = Optimizer.over(
        model, lr=config.lr, head_lr=config.head_lr, weight_decay=config.weight_decay, parallel=parallel
    )
    reference = Reference.of(slot.parameter for slot in optimizer.slots()) if config.kl_w else None
    batching = Batching(config.batch, 1)
    steps = config.epochs * batching.steps_per_epoch(len(examples)) * config.updates
    arguments = {
        **config.model_dump(mode="json"),
        "records": len(examples),
        "records_sha256": digest(examples),
        # The reference is read again by a continuation, so it must be the same.
        "init_weights_sha256": layout.sha256,
        "init_head_sha256": hashlib.sha256(files.read_bytes(directory / HEAD, limit=MAX_BYTES)).hexdigest(),
        "temperature": model.temperature,
    }
    return _Policy(config, model, reference, optimizer, feed, batching, OneCycle(steps), parallel, threads, arguments)


@dataclass(slots=True)
class _Loop:
    """Carries a reinforcement through, in one process."""

    policy: _Policy
    held_out: Sequence[DataRecord]
    out_dir: Path
    clock: Clock
    options: TrainingOptions
    writer: BackgroundWriter
    counters: Counters = field(default_factory=Counters)
    warnings: list[str] = field(default_factory=list)
    _progress: ProgressLine = field(default_factory=ProgressLine)
    _since_line: Measures = field(default_factory=Measures)
    _began: float = 0.0
    _last_point: float = 0.0
    _last_point_step: int = 0

    @property
    def checkpoint(self) -> Path:
        return self.out_dir / "checkpoint"

    def run(self, *, resume: bool) -> RlReport:
        policy, began = self.policy, self.clock.monotonic()
        # Before a point is put in: what the checkpoint itself answers.
        before = judge(policy.model, self.held_out)
        restored = None
        if resume:
            restored = restore(self.checkpoint / "resume", policy.optimizer, policy.arguments, policy.parallel)
        if restored is not None:
            self.counters = restored.counters
        attempts = max(self.counters.attempt if self.counters.step else 0, attempts_in(self.out_dir / "train.log"))
        self.counters.attempt = self.options.attempt or attempts + 1
        log = RunLog(self.out_dir, self.clock, attempt=self.counters.attempt, echo=self.options.echo)
        self._say_start(log, before, restored if resume else None, resume=resume)
        self.counters.threads = policy.threads
        self._began = self.clock.monotonic() - self.counters.elapsed
        self._last_point, self._last_point_step = self.clock.monotonic(), self.counters.step
        for epoch in range(policy.config.epochs):
            self._epoch(epoch, log)
        log.flush()
        self.writer.finish()
        return self._finish(log, began, before, restored)

    def _epoch(self, epoch: int, log: RunLog) -> None:
        policy, counters = self.policy, self.counters
        cost = PaddedCost(policy.feed.shapes)
        plan = plan_epoch(
            policy.batching, cost, records=len(policy.feed.examples), seed=policy.config.seed, epoch=epoch
        )
        done = counters.step // policy.config.updates - epoch * policy.batches_per_epoch
        for batch in plan[max(done, 0) :]:
            if self.options.before_step is not None:
                self.options.before_step()
            self._batch(epoch, batch, cost, log)
            self._keep(epoch, log)

    def _batch(self, epoch: int, plan: StepPlan, cost: PaddedCost, log: RunLog) -> None:
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
        self._step(epoch, plan, total, started, log)
        for _ in range(config.updates - 1):
            started, total = self.clock.monotonic(), Measures()
            for found in answers:
                total.add(next_update(policy.model, found, config))
            self._step(epoch, plan, total, started, log, again=True)

    def _step(
        self, epoch: int, plan: StepPlan, total: Measures, started: float, log: RunLog, *, again: bool = False
    ) -> None:
        policy, counters = self.policy, self.counters
        rate = policy.schedule.at(counters.step)
        optimizer_started = self.clock.monotonic()
        done = policy.optimizer.step(rate)
        ended = self.clock.monotonic()
        counters.optimizer_seconds += ended - optimizer_started
        counters.step += 1
        counters.seen += 0 if again else plan.records
        counters.tokens_seen += total.tokens
        counters.elapsed = ended - self._began
        counters.step_seconds.append(round(ended - started, 6))
        counters.grad_norms.append(done.grad_norm)
        counters.losses.append(total.loss)
        counters.peak_mem = max(counters.peak_mem, peak_device_bytes(policy.parallel.device))
        log.record(
            {
                "step": counters.step,
                "steps": policy.schedule.steps,
                "epoch": epoch,
                "loss": files.as_finite(total.loss),
                "kl": files.as_finite(total.kl),
                "reward": files.as_finite(total.reward),
                "drawn_accuracy": files.as_finite(total.accuracy),
                "entropy": files.as_finite(total.entropy),
                "clip_share": files.as_finite(total.clip_share),
                "lr": policy.config.lr * rate.share,
                "grad_norm": files.as_finite(done.grad_norm),
                "clipped": done.clipped,
                "step_seconds": counters.step_seconds[-1],
                "records": plan.records,
                "tokens": total.tokens,
                "tokens_per_second": round(total.tokens / max(ended - started, 1e-9), 1),
                "padded_tokens": total.padded_tokens,
                "memory_bytes": counters.peak_mem or peak_rss_bytes(),
            }
        )
        self._progress.add(total.loss, total.kl, 0.0)
        self._since_line.add(total)
        if not (math.isfinite(total.loss) and math.isfinite(done.grad_norm)):
            log.flush()
            raise Diverged(
                f"step {counters.step} of {policy.schedule.steps}: the loss is {total.loss} and the gradient norm "
                f"{done.grad_norm}; lower lr"
            )
        if counters.step % LINE_EVERY == 0:
            log.say(self._line(epoch))

    def _line(self, epoch: int) -> str:
        counters, count = self.counters, max(self._progress.steps, 1)
        text = self._progress.line(
            epoch=epoch, step=counters.step, steps=self.policy.schedule.steps,
            seconds_per_record=counters.elapsed / max(counters.seen, 1),
        )  # fmt: skip
        mean, self._since_line = self._since_line, Measures()
        return f"{text} reward {mean.reward / count:.3f} entropy {mean.entropy / count:.3f}"

    # ---- what is kept

    def _keep(self, epoch: int, log: RunLog) -> None:
        self.writer.check()
        step, now = self.counters.step, self.clock.monotonic()
        every, minutes = self.policy.config.save_every_steps, self.options.save_every_minutes
        if every:
            due = step - self._last_point_step >= every
        else:
            due = minutes > 0 and now - self._last_point >= 60 * minutes
        if due and step < self.policy.schedule.steps:
            self._save_point(epoch, log)

    def _save_point(self, epoch: int, log: RunLog) -> None:
        self.writer.finish()
        log.flush()
        policy = self.policy
        content = capture(policy.optimizer, self.counters, policy.arguments, policy.parallel)
        directory = self.checkpoint / "resume"
        self.writer.submit(lambda: write_point(directory, content, epoch=epoch, clock=self.clock))
        self._last_point, self._last_point_step = self.clock.monotonic(), self.counters.step

    def _finish(self, log: RunLog, began: float, before: Judged | None, restored: Restored | None) -> RlReport:
        policy, counters = self.policy, self.counters
        after = judge(policy.model, self.held_out)
        if after is not None:
            log.say(f"held out, after:  {after.describe()}")
        source = {
            "init_from": policy.config.init_from,
            "weights_sha256": policy.arguments["init_weights_sha256"],
            "head_sha256": policy.arguments["init_head_sha256"],
        }
        config = {
            "args": policy.arguments,
            "suite_sha256": self.options.suite_sha256,
            "init_source": source,
            "holdout": list(self.options.holdout),
            "threads": policy.threads,
            "world": 1,
            "torch": torch.__version__,
        }
        extra = {
            **self.options.extra,
            "args": policy.arguments,
            "init_source": source,
            # It is that of the checkpoint before; what was fitted there need not fit any more.
            "temperature_needs_refit": True,
        }
        metrics = self._metrics(began)
        # Before the checkpoint, whose last file says that the run is finished.
        evals = {"before": before and before.to_json(), "after": after and after.to_json()}
        files.write_atomic(self.out_dir / EVALS, files.dump_json(evals))
        write_final(self.checkpoint, contents_of(policy.model, extra=extra), config, metrics)
        log.say(f"saved {self.checkpoint}")
        return RlReport(
            self.checkpoint,
            counters.step,
            before,
            after,
            metrics,
            restored.step if restored is not None and restored.point is not None else None,
            tuple(self.warnings),
        )

    def _metrics(self, began: float) -> dict[str, Any]:
        counters, policy = self.counters, self.policy
        return {
            "wall_seconds": round(self.clock.monotonic() - began, 3),
            "records_seen": counters.seen,
            "requested_records": len(policy.feed.examples),
            "optimizer_steps": counters.step,
            "forward_tokens": counters.tokens_seen,
            "step_seconds": counters.step_seconds,
            "optimizer_seconds": round(counters.optimizer_seconds, 3),
            "world_size": 1,
            "weights": policy.model.values.get("weights"),
            "peak_device_bytes": counters.peak_mem,
            "device": policy.parallel.device.type,
            "batch": policy.config.batch,
            "peak_rss_bytes": peak_rss_bytes(),
            "threads": policy.threads,
            "attempts": counters.attempt,
        }

    # ---- words

    def _say_start(self, log: RunLog, before: Judged | None, restored: Restored | None, *, resume: bool) -> None:
        policy, config = self.policy, self.policy.config
        log.say(
            f"device={policy.parallel.device.type} world=1 "
            f"trainable params={policy.optimizer.trained_parameters / 1e6:.1f}M threads={policy.threads}"
        )
        log.say(f"delta: warm start from {config.init_from}")
        drawn = f"{config.group} answers a question" if config.group else "every option by its probability"
        log.say(f"plan: {len(policy.feed.examples)} records, {drawn}, {config.updates} updates for each "
                f"{config.batch} records; {policy.schedule.describe()}")  # fmt: skip
        if before is not None:
            log.say(f"held out, before: {before.describe()}")
        notes = list(restored.notes) if restored is not None else []
        if resume and (restored is None or restored.point is None):
            notes.append("no resume point was completed, so this attempt starts at step 0")
        elif restored is not None and restored.point is not None:
            if self.counters.threads != policy.threads:
                notes.append(
                    f"the attempt before had {self.counters.threads} threads and this one has {policy.threads}: "
                    "the weights will not be bit for bit those of an uninterrupted run"
                )
            log.say(f"resumed from {restored.point.path}: step {self.counters.step}")
        for note in notes:
            self.warnings.append(note)
            log.warn(note)
