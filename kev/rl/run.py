"""A reinforcement from its checkpoint to the one that comes of it."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from kev import files
from kev.clock import Clock
from kev.data.record import DataRecord
from kev.errors import KevError, Refused
from kev.model.saving import contents_of
from kev.rl.config import RlConfig, parse_rl_config
from kev.rl.loop import Loop
from kev.rl.policy import Policy, set_up
from kev.rl.report import Judged, RlReport, judge
from kev.train.examples import examples_of
from kev.train.log import RunLog, attempts_in
from kev.train.memory import peak_rss_bytes
from kev.train.parallel import Parallel
from kev.train.resume import Counters, notes_of, restore
from kev.train.saving import finished_metrics, write_final
from kev.train.settings import TrainingOptions
from kev.train.setup import pick_device, prepare_torch
from kev.train.writer import BackgroundWriter

EVALS = "evals.json"


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
        policy = set_up(config, examples_of(records), Parallel(device=device), threads)
        return _reinforce(policy, held_out, out_dir, resume=resume, clock=clock, options=options)
    except OSError as error:
        reason = (error.strerror or str(error) or type(error).__name__).lower()
        raise KevError(f"{error.filename or out_dir}: {reason}; what was acknowledged before is whole") from error


def _reinforce(
    policy: Policy,
    held_out: Sequence[DataRecord],
    out_dir: Path,
    *,
    resume: bool,
    clock: Clock,
    options: TrainingOptions,
) -> RlReport:
    began = clock.monotonic()
    # Before a point is put in: what the checkpoint itself answers.
    before = judge(policy.model, held_out)
    points = out_dir / "checkpoint" / "resume"
    restored = restore(points, policy.optimizer, policy.arguments, policy.parallel) if resume else None
    counters = restored.counters if restored is not None else Counters()
    counters.begin_attempt(attempts_in(out_dir), options.attempt)
    log = RunLog(out_dir, clock, attempt=counters.attempt, echo=options.echo)
    _say_start(log, policy, before)
    warnings = [*policy.model.remarks, *filter(None, [policy.schedule.warning()])]
    warnings += notes_of(restored, points, threads=policy.threads) if resume else []
    for words in warnings:
        log.warn(words)
    point = None if restored is None else restored.point
    resumed_from = None if restored is None or point is None else restored.step
    if point is not None:
        log.say(f"resumed from {point.path}: step {counters.step}")
    counters.threads = policy.threads
    with BackgroundWriter() as writer:
        loop = Loop(policy, options, out_dir, log, clock, counters, writer)
        loop.learn()
        writer.finish()
        after = judge(policy.model, held_out)
        if after is not None:
            log.say(f"held out, after:  {after.describe()}")
        metrics = _metrics(loop, began)
        _save(loop, before, after, metrics)
    return RlReport(
        checkpoint=out_dir / "checkpoint",
        steps=counters.step,
        before=before,
        after=after,
        resources=metrics,
        resumed_from=resumed_from,
        warnings=tuple(warnings),
    )


def _save(loop: Loop, before: Judged | None, after: Judged | None, metrics: Mapping[str, Any]) -> None:
    policy, options = loop.policy, loop.options
    source = {
        "init_from": policy.config.init_from,
        "weights_sha256": policy.arguments["init_weights_sha256"],
        "head_sha256": policy.arguments["init_head_sha256"],
    }
    config = {
        "args": policy.arguments,
        "suite_sha256": options.suite_sha256,
        "init_source": source,
        "holdout": list(options.holdout),
        "threads": policy.threads,
        "world": 1,
        "torch": torch.__version__,
    }
    extra = {
        **options.extra,
        "args": policy.arguments,
        "init_source": source,
        # It is that of the checkpoint before; what was fitted there need not fit any more.
        "temperature_needs_refit": True,
    }
    # Before the checkpoint, whose last file says that the run is finished.
    evals = {"before": before and before.to_json(), "after": after and after.to_json()}
    files.write_atomic(loop.out_dir / EVALS, files.dump_json(evals))
    checkpoint = loop.out_dir / "checkpoint"
    write_final(checkpoint, contents_of(policy.model, extra=extra), config, metrics)
    loop.log.say(f"saved {checkpoint}")


def _metrics(loop: Loop, began: float) -> dict[str, Any]:
    counters, policy = loop.counters, loop.policy
    return {
        "wall_seconds": round(loop.clock.monotonic() - began, 3),
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


def _say_start(log: RunLog, policy: Policy, before: Judged | None) -> None:
    config = policy.config
    log.begin(policy.parallel.device.type, world=1, trained=policy.optimizer.trained_parameters, threads=policy.threads)
    log.say(f"delta: warm start from {config.init_from}")
    drawn = f"{config.group} answers a question" if config.group else "every option by its probability"
    log.say(f"plan: {len(policy.feed.examples)} records, {drawn}, {config.updates} updates for each "
            f"{config.batch} records; {policy.schedule.describe()}")  # fmt: skip
    if before is not None:
        log.say(f"held out, before: {before.describe()}")
