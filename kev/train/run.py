"""A training from its configuration to its checkpoint."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from kev.clock import Clock
from kev.data.record import DataRecord
from kev.errors import KevError, Refused
from kev.records.plan import TrialConfig
from kev.train.examples import Example, examples_of
from kev.train.log import RunLog, attempts_in
from kev.train.losses import MODIFIERS
from kev.train.memory import MemoryEstimate, peak_rss_bytes
from kev.train.optimizer import MAX_GRAD_NORM
from kev.train.parallel import Parallel, join, leave
from kev.train.points import list_snapshots
from kev.train.report import TrainingReport
from kev.train.resume import Counters, Restored, notes_of, restore
from kev.train.saving import finished_metrics, write_final
from kev.train.settings import (
    TrainingOptions,
    parse_config,
    read_anchors,
    refuse_conflicts,
    trained_arguments,
)
from kev.train.setup import pick_device, prepare_torch, set_up, training_config
from kev.train.snapshots import refuse_foreign_snapshots
from kev.train.trainer import Trainer
from kev.train.writer import BackgroundWriter

LAST_STEPS = 10
"""Steps whose mean loss a report gives."""


def train_trial(
    config: TrialConfig | Mapping[str, Any],
    records: Sequence[DataRecord | Mapping[str, Any]],
    out_dir: Path,
    *,
    resume: bool,
    clock: Clock,
    options: TrainingOptions,
) -> TrainingReport:
    """See `kev.train.run_training`."""
    config = parse_config(config)
    device = pick_device(options)
    threads = prepare_torch(options, device)
    parallel = join(device)
    try:
        refuse_conflicts(config, world=parallel.world, device=device.type)
        checkpoint = out_dir / "checkpoint"
        metrics = finished_metrics(checkpoint)
        if metrics is not None and resume:
            return _finished(out_dir, metrics, threads)
        if not resume and checkpoint.exists() and any(checkpoint.iterdir()):
            raise Refused(f"{checkpoint}: is not empty; resume the run that is there, or choose another directory")
        parallel.wait()
        return _train(config, _examples(config, records, options), out_dir, resume, clock, options, parallel, threads)
    except OSError as error:
        reason = (error.strerror or str(error) or type(error).__name__).lower()
        raise KevError(f"{error.filename or out_dir}: {reason}; what was acknowledged before is whole") from error
    finally:
        leave(parallel)


def _train(
    config: TrialConfig,
    examples: list[Example],
    out_dir: Path,
    resume: bool,
    clock: Clock,
    options: TrainingOptions,
    parallel: Parallel,
    threads: int,
) -> TrainingReport:
    began = clock.monotonic()
    arguments = trained_arguments(config, examples)
    run = parallel.together(lambda: set_up(config, examples, parallel, threads, arguments), "setting up")
    refuse_foreign_snapshots(out_dir / "snapshots", steps=run.steps, planned=run.snapshots)
    restored = restore(out_dir / "checkpoint" / "resume", run.optimizer, arguments, parallel) if resume else None
    counters = restored.counters if restored is not None else Counters()
    counters.begin_attempt(attempts_in(out_dir), options.attempt)
    log = RunLog(out_dir, clock, rank=parallel.rank, attempt=counters.attempt, echo=options.echo)
    parallel.wait()  # attempts are counted before any rank writes its first line
    with BackgroundWriter() as writer:
        trainer = Trainer(run, options, out_dir, log, clock, counters, writer)
        _say_start(trainer, examples, resume, restored, threads)
        counters.threads = threads
        estimate = trainer.estimate()
        each = " a rank" if parallel.world > 1 else ""
        log.say(f"plan: about {estimate.describe()} of tensors{each} at the peak")
        _refuse_too_large(estimate.total, parallel)
        _reset_peak(parallel)
        trainer.train()
        parallel.together(writer.finish, "writing")
        return _finish(trainer, began, estimate, restored)


def _finish(trainer: Trainer, began: float, estimate: MemoryEstimate, restored: Restored | None) -> TrainingReport:
    run, counters, log = trainer.run, trainer.counters, trainer.log
    checkpoint = trainer.out_dir / "checkpoint"
    if trainer.options.save_every_minutes or run.config.save_every_steps:
        # From here a kill while the checkpoint is written costs nothing.
        trainer.save_point(run.config.epochs - 1)
        run.parallel.together(trainer.writer.finish, "writing")
    for name in run.weights.in_use():
        if not counters.touched.get(name):
            trainer.warn(f"{name} is on and touched no question")
    if run.feed.tally["unaugmented"]:
        trainer.warn(
            f"{run.feed.tally['unaugmented']} records left no room for an added option and were left as they are"
        )
    started = trainer.clock.monotonic()
    contents = trainer.contents({}, detach=False)
    metrics = _metrics(trainer, began)

    def write() -> None:
        if contents is not None:
            metrics["backbone_save_seconds"] = round(trainer.clock.monotonic() - started, 3)
            write_final(checkpoint, contents, training_config(run, trainer.options), metrics)

    run.parallel.together(write, "saving")
    touched = {name: counters.touched.get(name, 0) for name in run.weights.in_use()}
    if touched:
        log.say("loss modifiers touched " + ", ".join(f"{name} {count:,} questions" for name, count in touched.items()))
    log.say(f"saved {checkpoint}")
    last = counters.losses[-LAST_STEPS:]
    return TrainingReport(
        checkpoint=checkpoint,
        steps=counters.step,
        loss=math.fsum(last) / len(last) if last else None,
        resources=metrics,
        loss_modifiers=touched,
        estimate=estimate,
        resumed_from=restored.step if restored is not None and restored.point is not None else None,
        snapshots=_snapshots(trainer.out_dir),
        warnings=tuple(trainer.warnings),
        threads=run.threads,
    )


def _finished(out_dir: Path, metrics: dict[str, Any], threads: int) -> TrainingReport:
    modifiers = metrics.get("loss_modifiers")
    return TrainingReport(
        checkpoint=out_dir / "checkpoint",
        steps=int(metrics.get("optimizer_steps") or 0),
        loss=None,
        resources=metrics,
        loss_modifiers=modifiers if isinstance(modifiers, dict) else {},
        snapshots=_snapshots(out_dir),
        threads=threads,
        already_finished=True,
    )


def _examples(
    config: TrialConfig, records: Sequence[DataRecord | Mapping[str, Any]], options: TrainingOptions
) -> list[Example]:
    if config.anchor is None:
        return examples_of(records)
    plain = [record.to_json() if isinstance(record, DataRecord) else record for record in records]
    anchors = read_anchors(options.anchors or Path(config.anchor), config.anchor_sources, plain)
    return examples_of(records, anchors)


def _say_start(
    trainer: Trainer, examples: list[Example], resume: bool, restored: Restored | None, threads: int
) -> None:
    run, log = trainer.run, trainer.log
    kinds = Counter(ask.type for example in examples for ask in example.asks)
    log.begin(
        run.parallel.device.type,
        world=run.parallel.world,
        trained=run.optimizer.trained_parameters,
        threads=threads,
    )
    if run.init_source is not None:
        log.say(f"delta: warm start from {run.init_source['init_from']}")
    log.say(
        f"{len(examples)} training requests (holdout={list(trainer.options.holdout)}), questions by type {dict(kinds)}"
    )
    log.say(f"plan: {run.schedule.describe()}")
    for remark in run.model.remarks:
        trainer.warn(remark)
    warning = run.schedule.warning()
    if warning:
        trainer.warn(warning)
    if run.config.shared_prefix and run.feed.rows:
        trainer.warn("shared_prefix has no effect: a recurrent backbone reads the state again for every question")
    if run.snapshots:
        log.say(f"snapshots after optimizer steps {run.snapshots} of {run.steps} -> "
                f"{trainer.snapshot_directory}/step-<N>/checkpoint")  # fmt: skip
    if resume:
        _say_continuation(trainer, restored, threads)


def _say_continuation(trainer: Trainer, restored: Restored | None, threads: int) -> None:
    for note in notes_of(restored, trainer.resume_directory, threads=threads):
        trainer.warn(note)
    if restored is None or restored.point is None:
        return
    epoch, step = divmod(restored.step, trainer.run.steps_per_epoch)
    trainer.log.say(
        f"resumed from {restored.point.path}: step {restored.step}, epoch {epoch}, "
        f"micro-batch {step * trainer.run.config.accum}"
    )


def _metrics(trainer: Trainer, began: float) -> dict[str, Any]:
    run, counters = trainer.run, trainer.counters
    per_epoch = run.steps_per_epoch
    return {
        "wall_seconds": round(trainer.clock.monotonic() - began, 3),
        "records_seen": counters.seen,
        "requested_records": len(run.feed.examples),
        "truncated_records": 0,
        "rejected_records": 0,
        "optimizer_steps": counters.step,
        "forward_tokens": counters.tokens_seen,
        "step_seconds": counters.step_seconds,
        "optimizer_seconds": round(counters.optimizer_seconds, 3),
        "resume_seconds": counters.resume_seconds,
        "resume_write_seconds": counters.resume_write_seconds,
        "world_size": run.parallel.world,
        "snapshots": counters.snapshots,
        "grad_norm": [
            _norms(epoch, counters.grad_norms[start : start + per_epoch])
            for epoch, start in enumerate(range(0, counters.step, per_epoch))
        ],
        "weights": "full" if run.config.full_ft else "lora",
        "peak_device_bytes": counters.peak_mem,
        "device": run.parallel.device.type,
        "dtype": run.config.dtype,
        "batch": run.config.batch,
        "peak_rss_bytes": peak_rss_bytes(),
        "threads": run.threads,
        "attempts": counters.attempt,
        "loss_modifiers": {name: counters.touched.get(name, 0) for name in MODIFIERS if name in run.weights.in_use()},
    }


def _norms(epoch: int, norms: list[float]) -> dict[str, Any]:
    return {
        "epoch": epoch,
        "steps": len(norms),
        "mean": math.fsum(norms) / len(norms),
        "max": max(norms),
        "clipped_steps": sum(norm > MAX_GRAD_NORM for norm in norms),
    }


def _snapshots(out_dir: Path) -> tuple[Path, ...]:
    return tuple(found.path / "checkpoint" for found in list_snapshots(out_dir / "snapshots").complete)


def _refuse_too_large(needed: int, parallel: Parallel) -> None:
    if parallel.device.type != "cuda":
        return
    _, there = torch.cuda.mem_get_info(parallel.device)
    if needed > there:
        raise Refused(
            f"this run needs about {needed / 2**30:.1f} GiB and the GPU has {there / 2**30:.1f}; "
            "set checkpointing, lower batch (and raise accum), or give a row_budget"
        )


def _reset_peak(parallel: Parallel) -> None:
    if parallel.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(parallel.device)
