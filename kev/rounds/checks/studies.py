"""Studies: their plan, suites, card, time and money."""

import posixpath
from typing import Any

from kev import budget
from kev.document import JsonPath
from kev.errors import DamagedFile, NotFound, Refused
from kev.procedure.corpora import check_corpus
from kev.records.plan import is_full_weight, plan_problems
from kev.records.spec import STUDY_NAME, Study
from kev.rounds.checks.arms import TRIAL
from kev.rounds.checks.reads import check_suite_path, is_inside
from kev.rounds.subject import Subject
from kev.train.schedule import OneCycle

FIRST_RESUME_POINT = 3600
"""Seconds after which a full-weight run first writes a resume point by the clock."""


def leaves_points_by_step(trial: object) -> bool:
    """Whether a trial of a plan, as JSON, writes a resume point at a step before its last one."""
    if not isinstance(trial, dict):
        return False
    every, most = trial.get("save_every_steps"), trial.get("max_steps")
    return isinstance(every, int) and every > 0 and not (isinstance(most, int) and 0 < most <= every)


def check_studies(subject: Subject) -> None:
    """Every study of the spec, and the round's own card."""
    if subject.spec.gpu is not None:
        _check_gpu(subject, subject.spec.gpu, ("gpu",), "")
    studies = subject.document.value.get("studies") if isinstance(subject.document.value, dict) else None
    for name, study in studies.items() if isinstance(studies, dict) else ():
        # The text, not the record: a card that is null or a number has no record, and still must be named.
        if isinstance(study, dict) and "gpu" in study:
            _check_gpu(subject, study["gpu"], ("studies", name, "gpu"), f"study {name}: ")
        if not STUDY_NAME.fullmatch(name):
            message = "a study is named with 1 to 80 letters, digits, _ or -, and begins with a letter or digit"
            subject.problems.add("bad-name", ("studies", name), message)
    for name, readable in subject.spec.studies.items():
        where: JsonPath = ("studies", name)
        check_suite_path(subject, readable.suite, (*where, "suite"), f"the suite that {name} trains on")
        check_suite_path(subject, readable.transfer, (*where, "transfer"), f"the transfer suite of {name}")
        _check_corpus(subject, readable.suite, (*where, "suite"))
        _check_splits(subject, readable, where)
        plan = _check_plan(subject, readable, where)
        _check_limits(subject, name, readable, plan, where)
        _warn_single_steps(subject, readable, plan or [], where)
        _check_arms_of_trials(subject, name, plan, where)


def _check_gpu(subject: Subject, gpu: object, where: JsonPath, prefix: str) -> None:
    try:
        budget.parse_gpu(gpu)
    except Refused as refusal:
        subject.problems.add("unknown-gpu", where, f"{prefix}{refusal}")


def _check_corpus(subject: Subject, path: str, where: JsonPath) -> None:
    suite = subject.checkout.suite(path)
    if suite is not None:
        try:
            check_corpus(subject.checkout.root, suite.directory, suite.manifest)
        except Refused as refusal:
            subject.problems.add("closed-model-output", where, str(refusal))


def _check_splits(subject: Subject, study: Study, where: JsonPath) -> None:
    """What a trial reads of its suites, as far as their manifests tell."""
    suite = subject.checkout.suite(study.suite)
    if suite is not None and suite.manifest.eval_only:
        message = f"{study.suite} is for evaluation only, and is not trained on"
        subject.problems.add("eval-only", (*where, "suite"), message)
    for key, path, splits in (
        ("suite", study.suite, ("train", "calibration", "development")),
        ("transfer", study.transfer, ("development",)),
    ):
        suite = subject.checkout.suite(path)
        named = suite.manifest.files if suite is not None else {}
        lacking = [split for split in splits if f"{split}.jsonl" not in named]
        if named and lacking:
            message = f"{path} has no {' and no '.join(lacking)} partition, which a trial reads"
            subject.problems.add("missing-split", (*where, key), message)


def _check_plan(subject: Subject, study: Study, where: JsonPath) -> list[Any] | None:
    """The study's plan if it can be counted."""
    place = (*where, "plan")
    if study.plan.startswith("/") or ".." in study.plan.split("/"):
        subject.problems.add("bad-path", place, f"{study.plan!r} leaves the checkout")
        return None
    try:
        plan = subject.checkout.plan(study.plan)
    except NotFound:
        subject.problems.missing(study.plan, place, "the plan of this study")
        return None
    except DamagedFile as error:
        subject.problems.add("damaged-file", place, f"{study.plan}: {error.reason}")
        return None
    suite = subject.checkout.suite(study.suite)
    pinned = suite.manifest.base_revisions if suite else None
    trainable = suite.manifest.training_sources() if suite else None
    for problem in plan_problems(plan, pinned, trainable):
        subject.problems.add("bad-plan", place, f"{study.plan}: {problem}")
    for entry in plan if isinstance(plan, list) else ():
        data = entry.get("data") if isinstance(entry, dict) else None
        if isinstance(data, str) and is_inside(data, "evals") and not subject.checkout.has(data):
            subject.problems.missing(data, place, f"training data named by {study.plan}")
        elif isinstance(data, str) and is_inside(data, "evals"):
            _check_corpus(subject, posixpath.dirname(data), place)
    return plan if isinstance(plan, list) and plan else None


def _check_limits(subject: Subject, name: str, study: Study, plan: list[Any] | None, where: JsonPath) -> None:
    problems = subject.problems
    full_weight = is_full_weight(plan)
    longest = budget.MAX_TIMEOUT_FULL_WEIGHT if full_weight else budget.MAX_TIMEOUT
    largest = budget.MAX_BUDGET_FULL_WEIGHT if full_weight else budget.MAX_BUDGET
    # Without its plan a study may still be a full-weight one, so only the wider limits hold.
    if plan is None:
        longest, largest = budget.MAX_TIMEOUT_FULL_WEIGHT, budget.MAX_BUDGET_FULL_WEIGHT
    if not budget.MIN_TIMEOUT <= study.timeout <= longest:
        message = f"{study.timeout} s; a container may have {budget.MIN_TIMEOUT} to {longest} s"
        problems.add("out-of-range", (*where, "timeout"), message)
    if not 0 < study.budget <= largest:
        problems.add("out-of-range", (*where, "budget"), f"${study.budget}; a study may have up to ${largest}")
    if plan is not None:
        _check_bound(subject, study, len(plan), full_weight, where)
    if full_weight:
        _warn_full_weight(subject, name, study, plan or [], where)


def _check_bound(subject: Subject, study: Study, trials: int, full_weight: bool, where: JsonPath) -> None:
    try:
        bound = budget.compute_bound(study.gpu, study.timeout, trials, full_weight)
    except Refused:
        return  # the card or the timeout has its own finding
    if bound > study.budget:
        attempts = f" x {budget.FULL_WEIGHT_ATTEMPTS} attempts" if full_weight else ""
        message = (
            f"${study.budget} is less than the study may cost: ${budget.recorded(bound)} "
            f"({trials} trials x {study.timeout} s{attempts} on {study.gpu})"
        )
        subject.problems.add("over-budget", (*where, "budget"), message)


def _warn_full_weight(subject: Subject, name: str, study: Study, plan: list[Any], where: JsonPath) -> None:
    message = f"{name} trains whole models: after a timeout it is continued only while a watcher runs"
    subject.problems.warn("needs-watcher", where, message)
    if study.timeout <= FIRST_RESUME_POINT:
        by_steps = all(leaves_points_by_step(entry) for entry in plan)
        none = "each continuation starts from zero; set save_every_steps, to less than the steps of the run"
        only = "only save_every_steps leaves one" if by_steps else none
        message = (
            f"{study.timeout} s end before the first timed resume point, which is written after "
            f"{FIRST_RESUME_POINT} s: {only}"
        )
        subject.problems.warn("short-timeout", (*where, "timeout"), message)
    if any(isinstance(entry, dict) and entry.get("snapshot_fractions") == "none" for entry in plan):
        message = f"{study.plan} keeps no snapshot: if the end is spoilt, nothing of the run is left"
        subject.problems.warn("no-snapshots", (*where, "plan"), message)


def _warn_single_steps(subject: Subject, study: Study, plan: list[Any], where: JsonPath) -> None:
    for index, entry in enumerate(plan):
        if isinstance(entry, dict) and entry.get("max_steps") == 1:
            message = f"{study.plan}: [{index}].max_steps: {OneCycle(1).warning()}"
            subject.problems.warn("single-step", (*where, "plan"), message)


def _check_arms_of_trials(subject: Subject, name: str, plan: list[Any] | None, where: JsonPath) -> None:
    if plan is None or subject.dropped:
        return
    read = set()
    for arm in subject.spec.arms.values():
        match = TRIAL.fullmatch(arm.trial or "")
        if match is not None and match["study"] == name:
            read.add(int(match["index"]))
    for index in sorted(set(range(len(plan))) - read):
        message = f"trial {index} of {name} is trained and no arm reads it"
        subject.problems.warn("unread-trial", where, message)
