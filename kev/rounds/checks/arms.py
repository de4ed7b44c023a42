"""Arms and parents: what they are checkpoints of, and what they need."""

import re

from kev.document import JsonPath
from kev.records.plan import MAX_TRIALS
from kev.records.spec import Arm
from kev.rounds.checks.directories import check_shared_directories
from kev.rounds.sides import TRANSFER, candidate_side, transfer_read
from kev.rounds.subject import Subject
from kev.spelling import nearest

TRIAL = re.compile(r"runs/(?P<study>[^/]+)/(?P<number>[0-9]{1,6})-trial-(?P<index>[0-9]{1,6})")
CHECKPOINT_ID = re.compile(r"[\w.-]+/[\w.-]+(@[\w./-]+)?")

_NAME = re.compile(r"[A-Za-z0-9]+-[A-Za-z0-9._-]+")


def check_arms(subject: Subject) -> None:
    """Every arm's name, parent, trial or checkpoint, and reads; every parent's trial and checkpoint."""
    for name, arm in subject.spec.arms.items():
        where: JsonPath = ("arms", name)
        if not _NAME.fullmatch(name):
            subject.problems.add("bad-name", where, "an arm is named <size>-<label>, of letters, digits, . _ -")
        _check_parent(subject, arm, where)
        _check_checkpoint(subject, name, arm, where)
        _check_reads(subject, name, arm, where)
    _check_parents(subject)
    check_shared_directories(subject)
    if "arms" in subject.names() and not subject.names("arms") and ("arms",) not in subject.dropped:
        subject.problems.add("missing-key", ("arms",), "is empty: there is nothing to compare")


def _check_parent(subject: Subject, arm: Arm, where: JsonPath) -> None:
    parents = subject.names("parents")
    if arm.parent not in parents:
        message = f"there is no parent {arm.parent!r}{nearest(arm.parent, parents)}"
        subject.problems.add("unknown-parent", (*where, "parent"), message)


def _check_checkpoint(subject: Subject, name: str, arm: Arm, where: JsonPath) -> None:
    problems = subject.problems
    if arm.trial is not None:
        _check_trial(subject, arm.trial, (*where, "trial"))
    elif arm.checkpoint is None:
        problems.add("missing-key", where, "has neither a trial nor a checkpoint")
    else:
        if not arm.checkpoint.startswith("/runs/"):
            message = f"{arm.checkpoint!r} is not under /runs/, where an arm without a trial has its checkpoint"
            problems.add("bad-path", (*where, "checkpoint"), message)
        if "temperature" not in subject.names():
            problems.add("no-pool", where, "has no trial whose rows could fit its temperature; add a temperature pool")
        pool = subject.spec.temperature
        needed = any(TRANSFER in panel.reads for _, stage in subject.stages() for panel in stage.panels.values())
        needed = needed or (pool is not None and TRANSFER in (*pool.reads, *(pool.exclude_reads or ())))
        if needed and transfer_read(subject.spec, arm) is None:
            problems.add("no-transfer-read", where, "has no trial with a transfer read; name a transfer_read")
    if arm.checkpoint is not None and ("," in arm.checkpoint or "@" in arm.checkpoint):
        problems.add("bad-path", (*where, "checkpoint"), "a benchmark job cannot carry a path with @ or a comma in it")
    if arm.transfer_read is not None:
        subject.check_tag(arm.transfer_read, (*where, "transfer_read"))
    for index, suite in enumerate(arm.trained_on or ()):
        subject.check_suite(suite, (*where, "trained_on", index), f"{name} was trained on it")


def _check_trial(subject: Subject, trial: str, where: JsonPath) -> None:
    problems = subject.problems
    match = TRIAL.fullmatch(trial)
    if match is None:
        problems.add("bad-path", where, f"{trial!r} is not runs/<study>/<NN>-trial-<i>")
        return
    study, index = match["study"], int(match["index"])
    if int(match["number"]) != index:
        problems.add("bad-path", where, f"{trial!r} counts its trial twice, and differently")
    studies = subject.names("studies")
    if study not in studies:
        if not subject.checkout.has(f"runs/{study}"):
            close = nearest(study, studies)
            meant = close if "did you mean" in close else ""
            message = f"no study of this round is named {study}, nor is runs/{study} there{meant}"
            problems.archive("unknown-study", where, message)
        return
    trials = trials_of(subject, study)
    if trials is not None and index >= trials:
        problems.add("unknown-trial", where, f"the plan of {study} has {trials} trials, numbered from 0")


def trials_of(subject: Subject, study: str) -> int | None:
    """How many trials a study's plan has; None when it cannot be read."""
    if study not in subject.spec.studies:
        return None
    try:
        plan = subject.checkout.plan(subject.spec.studies[study].plan)
    except Exception:  # the studies' own check names the reason
        return None
    return len(plan) if isinstance(plan, list) and len(plan) <= MAX_TRIALS else None


def _check_reads(subject: Subject, name: str, arm: Arm, where: JsonPath) -> None:
    if not isinstance(arm.reads, dict):
        return
    side = candidate_side(subject.spec, name)
    wanted = [tag for panel in subject.spec.rule.panels.values() for tag in panel.reads]
    wanted += subject.spec.temperature.reads if subject.spec.temperature else []
    wanted += [subject.spec.rule.unknowable] if subject.spec.rule.unknowable else []
    for tag in dict.fromkeys(wanted):
        if tag in subject.spec.reads and side.directory(tag) is None:
            subject.problems.add("missing-key", (*where, "reads", tag), "is missing; the rule reads it")


def _check_parents(subject: Subject) -> None:
    for name, parent in subject.spec.parents.items():
        where: JsonPath = ("parents", name)
        if not parent.trial.startswith("runs/") or ".." in parent.trial.split("/"):
            subject.problems.add("bad-path", (*where, "trial"), f"{parent.trial!r} is not under runs/")
        if parent.checkpoint is not None and not (
            parent.checkpoint.startswith("/runs/") or CHECKPOINT_ID.fullmatch(parent.checkpoint)
        ):
            message = f"{parent.checkpoint!r} is neither a path under /runs/ nor owner/name[@revision]"
            subject.problems.add("bad-path", (*where, "checkpoint"), message)
        if parent.transfer_read is not None:
            subject.check_tag(parent.transfer_read, (*where, "transfer_read"))
        if parent.pooled and "temperature" not in subject.names():
            subject.problems.add("no-pool", (*where, "pooled"), "is set, and the round has no temperature pool")
    unused = set(subject.names("parents")) - {arm.parent for arm in subject.spec.arms.values()}
    for name in sorted(unused if not subject.dropped else ()):
        subject.problems.warn("unused-parent", ("parents", name), "is the parent of no arm")
