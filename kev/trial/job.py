"""One trial: from its configuration to result.json, and what is left when it fails."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kev import files
from kev.checkpoint import HEAD
from kev.clock import Clock, SystemClock
from kev.data.record import DataRecord
from kev.errors import KevError, NotFound, Refused
from kev.records.plan import TrialConfig
from kev.records.result import Result
from kev.suite import Suite
from kev.text import shorten, visible
from kev.train.mix import trial_records
from kev.trial import provenance
from kev.trial.gates import gates_of
from kev.trial.scoring import OpenScorer, Scored, score_trial

RESULT = "result.json"
FAILED = "failed.json"
CHECKPOINT = "checkpoint"
TRAINING_METRICS = "training_metrics.json"
MAX_ERROR = 2000
"""Characters of an exception that failed.json keeps."""

Train = Callable[..., object]
"""`kev.train.run_training`, or what stands for it: config, records, directory, then resume, clock and options."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What a trial works with: how to train, how to open a checkpoint, and the time."""

    train: Train
    open_scorer: OpenScorer
    device: str = "cpu"
    clock: Clock = field(default_factory=SystemClock)
    say: Callable[[str], None] = print
    before_step: Callable[[], None] | None = None
    """Called before every training step; raises where the trial may not go on."""
    complete: Callable[[Path, bytes], None] = files.write_atomic
    """Writes the file that makes a trial final, result.json."""


@dataclass(frozen=True, slots=True)
class TrialJob:
    """A trial of a study. `checkpoint` is one that exists and is only scored; None means to train one."""

    directory: Path
    config: Mapping[str, Any]
    suite: Suite
    transfer: Suite | None
    root: Path
    checkpoint: Path | None = None

    @property
    def id(self) -> str:
        return self.directory.name


def run_trial(job: TrialJob, tools: Tools, *, resume: bool = False) -> dict[str, Any]:
    """Train, score and judge a trial, and return its result, which is then in result.json.

    Raises Refused for a trial that is there already (with `resume`: that has ended, or whose sources changed), and
    whatever else ends it, after failed.json is written: such a trial is never continued.
    """
    ended = next((name for name in (RESULT, FAILED) if (job.directory / name).exists()), None)
    if ended is not None:
        raise Refused(f"{job.directory}: has a {ended} already; a trial is run once")
    if job.directory.exists() and not resume:
        raise Refused(
            f"{job.directory}: is there already; a trial's name is never used again, but --resume goes on with it"
        )
    records = records_to_train(job)
    found = _provenance(job, tools, resume=resume)
    try:
        return carry_out(job, records, found, tools, resume=resume)
    except Exception as error:
        _fail(job, error)
        raise


def records_to_train(job: TrialJob) -> list[DataRecord]:
    """The records that `job` is still to be trained on, [] where it is only scored. Raises Refused if none are left."""
    if not _is_to_train(job):
        return []
    records = trial_records(TrialConfig.model_validate(dict(job.config)), job.suite, job.root)
    if not records:
        raise Refused(f"{job.directory}: the plan leaves no record to train on")
    return records


def carry_out(
    job: TrialJob, records: Sequence[DataRecord], found: dict[str, Any], tools: Tools, *, resume: bool
) -> dict[str, Any]:
    """Train unless that is done, score and judge; `found` is the provenance, which is written already.

    Nothing is refused here, and no failure is written down: both are for whoever calls.
    """
    began = tools.clock.monotonic()
    config = TrialConfig.model_validate(dict(job.config)) if job.checkpoint is None else None
    if config is not None and _is_to_train(job):
        _train(job, config, records, tools, resume=resume)
    return _score(job, found, tools, began, size=config.score_records if config is not None else None)


def _is_to_train(job: TrialJob) -> bool:
    checkpoint = job.directory / CHECKPOINT
    trained = (checkpoint / HEAD).exists() and (checkpoint / TRAINING_METRICS).exists()
    return job.checkpoint is None and not trained


def _provenance(job: TrialJob, tools: Tools, *, resume: bool) -> dict[str, Any]:
    if resume:
        with suppress(NotFound):
            before = provenance.read(job.directory)
            return provenance.continued(job.directory, before, job.suite, job.root,
                                        training=_is_to_train(job))  # fmt: skip
    return provenance.begin(
        job.directory, job.config, job.suite, job.root, device=tools.device, legacy=job.checkpoint is not None
    )


def _train(job: TrialJob, config: TrialConfig, records: Sequence[DataRecord], tools: Tools, *, resume: bool) -> None:
    from kev.train.settings import trial_options

    options = trial_options(config, job.suite, job.root, device=tools.device, before_step=tools.before_step)
    tools.train(config, records, job.directory, resume=resume, clock=tools.clock, options=options)


def _score(job: TrialJob, found: dict[str, Any], tools: Tools, began: float, *, size: int | None) -> dict[str, Any]:
    scorer = tools.open_scorer(job.checkpoint or job.directory / CHECKPOINT)
    found = {**found, "measured_checkpoint": scorer.measured, "environment": scorer.environment()}
    files.write_atomic(job.directory / provenance.PROVENANCE, files.dump_json(found))
    scored = score_trial(job.directory, scorer, job.suite, job.transfer, tools.say, size=size)
    result = _result(job, scored, found, tools.clock.monotonic() - began)
    Result.model_validate(result)
    tools.complete(job.directory / RESULT, files.dump_json(result))
    return result


def _result(job: TrialJob, scored: Scored, found: dict[str, Any], seconds: float) -> dict[str, Any]:
    fit = scored.calibration_fit
    return {
        **scored.development,
        **({"temperature": fit["temperature"]} if fit is not None else {}),
        "transfer": scored.transfer,
        "provenance": found,
        "mechanism_checks": scored.mechanism.to_json(),
        "gates": gates_of(scored),
        "calibration_fit": fit,
        "wall_seconds": round(seconds, 3),
        "promotable": False,
        "test_evaluated": False,
        "training_resources": _training_resources(job),
    }


def _training_resources(job: TrialJob) -> Any:
    with suppress(NotFound):
        return files.read_json((job.checkpoint or job.directory / CHECKPOINT) / TRAINING_METRICS)
    return None


def _fail(job: TrialJob, error: Exception) -> None:
    text = str(error) if isinstance(error, KevError) else f"{type(error).__name__}: {error}"
    files.write_atomic(job.directory / FAILED, files.dump_json({"error": shorten(visible(text), MAX_ERROR)}))
