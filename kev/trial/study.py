"""The trials of a plan, one after another on this machine, under the lock of its one research runner."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kev import files
from kev.document import read_value
from kev.errors import DamagedFile, KevError, NotFound, Refused, UsageError
from kev.records.plan import TrialConfig, plan_problems
from kev.suite import Suite
from kev.train.mix import trial_records
from kev.train.schedule import OneCycle
from kev.trial import provenance
from kev.trial.job import CHECKPOINT, FAILED, RESULT, Tools, TrialJob, run_trial
from kev.trial.ranking import RESULTS, Ranked, aggregate, note_failure

LOCK = ".research.lock"
TRIAL = re.compile(r"(\d+)-(trial|existing)-.+")


@dataclass(frozen=True, slots=True)
class Study:
    """A study on this machine: where it goes, and what its trials are read on."""

    directory: Path
    suite: Suite
    transfer: Suite | None
    root: Path

    def job(self, name: str, config: Mapping[str, Any], checkpoint: Path | None = None) -> TrialJob:
        return TrialJob(self.directory / name, config, self.suite, self.transfer, self.root, checkpoint)


def plan_jobs(study: Study, plan: Path, existing: Sequence[Path]) -> list[TrialJob]:
    """The trials of the plan, then the checkpoints that are only scored. Raises NotFound or DamagedFile.

    A base that is a directory on this machine needs no pinned revision: provenance.json holds its hash.
    """
    value = read_value(plan)
    manifest = study.suite.manifest
    local = isinstance(value, list) and all(
        isinstance(entry, dict) and (study.root / str(entry.get("base"))).is_dir() for entry in value
    )
    pinned = None if local else manifest.base_revisions
    for problem in plan_problems(value, pinned, manifest.trainable_sources):
        raise DamagedFile(plan, str(problem))
    jobs = [study.job(f"{index:02d}-trial-{index}", _placed(entry, study.root)) for index, entry in enumerate(value)]
    for number, path in enumerate(existing):
        checkpoint = path / CHECKPOINT if (path / CHECKPOINT).is_dir() else path
        if not checkpoint.is_dir():
            raise NotFound(f"{path}: no such checkpoint or trial")
        jobs.append(study.job(f"{len(value) + number:02d}-existing-{number}", {"existing": str(path)}, checkpoint))
    return jobs


def run_study(study: Study, jobs: Sequence[TrialJob], tools: Tools, runs: Path) -> Ranked:
    """Run every trial, then rank them. Raises LockHeld while another runner is at work, and Refused for a study that
    is there. A trial that fails is noted in results.jsonl, and what it raised is raised.
    """
    with files.locked(runs / LOCK):
        if study.directory.exists():
            raise Refused(f"{study.directory}: is there already; a study's name is never used again (--resume goes on "
                          "with what is unfinished)")  # fmt: skip
        for job in jobs:
            _run(study, job, tools, resume=False)
        return aggregate(study.directory)


def resume_study(study: Study, tools: Tools, runs: Path, planned: Sequence[TrialJob] = ()) -> Ranked:
    """Go on with every trial that has begun and not ended, begin those of `planned` that have not, then rank anew.

    Raises as `run_study`, and Refused where a trial was begun with another configuration than is planned for it.
    """
    with files.locked(runs / LOCK):
        unfinished, new = unfinished_jobs(study), unbegun_jobs(study, planned)
        files.remove(study.directory / RESULTS)
        for job in unfinished:
            tools.say(f"[{job.id}] going on")
            _run(study, job, tools, resume=True)
        for job in new:
            _run(study, job, tools, resume=True)
        return aggregate(study.directory)


def unfinished_jobs(study: Study) -> list[TrialJob]:
    """The trials with a provenance and neither result nor failure, by name. Raises NotFound without the study."""
    if not study.directory.is_dir():
        raise NotFound(f"{study.directory}: no such study")
    jobs = []
    for directory in sorted(path for path in study.directory.iterdir() if TRIAL.fullmatch(path.name)):
        if (directory / RESULT).exists() or (directory / FAILED).exists():
            continue
        try:
            found = provenance.read(directory)
        except NotFound:
            continue
        config = found["config"]
        legacy = found.get("legacy_checkpoint")
        checkpoint = Path(str(config.get("existing"))) if legacy else None
        if checkpoint is not None and (checkpoint / CHECKPOINT).is_dir():
            checkpoint = checkpoint / CHECKPOINT
        jobs.append(study.job(directory.name, config, checkpoint))
    return jobs


def unbegun_jobs(study: Study, planned: Sequence[TrialJob]) -> list[TrialJob]:
    """Those of a plan's trials that have not begun. Raises Refused for a plan that is not that of the others."""
    ours = {job.id for job in planned}
    there = (path.name for path in study.directory.iterdir() if TRIAL.fullmatch(path.name))
    if planned and (strange := min((name for name in there if name not in ours), default=None)):
        raise Refused(f"{study.directory}: its {strange} is none of this plan's trials")
    jobs = []
    for job in planned:
        try:
            found = provenance.read(job.directory)
        except NotFound:
            jobs.append(job)
            continue
        if found["config"] != dict(job.config):
            raise Refused(f"{job.directory}: was begun with another configuration than the plan has for it")
    return jobs


def describe(job: TrialJob, count: Callable[[TrialJob], int] | None = None) -> str:
    """What a trial would do, on one line."""
    if job.checkpoint is not None:
        return f"{job.id}: score {job.checkpoint}"
    config = TrialConfig.model_validate(dict(job.config))
    records = count(job) if count is not None else len(trial_records(config, job.suite, job.root))
    per_step = config.batch * config.accum
    steps = config.epochs * -(-records // per_step)
    steps = min(steps, config.max_steps or steps)
    kind = "full weights" if config.full_ft else f"LoRA r={config.lora}"
    schedule = OneCycle(steps)
    said = f"{job.id}: train {kind} on {config.base}, {records:,} records, {steps:,} steps of {per_step}, then score"
    return "; ".join([said, schedule.warm_up, *filter(None, [schedule.warning()])])


def _run(study: Study, job: TrialJob, tools: Tools, *, resume: bool) -> None:
    try:
        result = run_trial(job, tools, resume=resume)
    except Exception as error:
        text = str(error) if isinstance(error, KevError) else f"{type(error).__name__}: {error}"
        note_failure(study.directory, job.id, text)
        raise
    gates = result["gates"]
    failed = [name for name, passed in gates["checks"].items() if not passed]
    verdict = "gates passed" if gates["passed"] else f"gates failed: {', '.join(failed)}"
    tools.say(f"[{job.id}] objective {result['objective']:.4f}, acc {result['clean']['acc']:.4f}, {verdict}")


def _placed(config: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """A configuration whose base is a directory of the checkout, with the path that is right from anywhere."""
    base = root / str(config["base"])
    return {**config, "base": str(base)} if base.is_dir() else dict(config)


def wait_for(pid: int, is_running: Callable[[int], bool], pause: Callable[[], None]) -> None:
    """Return once a process is gone. Raises UsageError for a number that can be none."""
    if pid <= 0:
        raise UsageError(f"--wait-pid {pid}: a process has a number above 0")
    while is_running(pid):
        pause()
