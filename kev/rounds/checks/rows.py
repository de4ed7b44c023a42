"""Rows that must lie here before a round is launched, and the tags that each side must have."""

from kev.document import JsonPath
from kev.records.spec import Rule, Stage
from kev.rounds.sides import TRANSFER, Side, candidate_side, parent_side
from kev.rounds.subject import Subject

ROWS = "missing-rows"
"""The code of rows that are not here, apart from other files: reading the parents is what makes them."""


def check_rows(subject: Subject) -> None:
    """The parents' rows, and that both sides have every read that the rule and the stages compare."""
    spec = subject.spec
    for name, arm in spec.arms.items():
        if arm.parent not in spec.parents:
            continue
        parent = spec.parents[arm.parent]
        side = parent_side(spec, name)
        where: JsonPath = ("parents", arm.parent)
        if not parent.pooled:
            path = f"{side.development_directory()}/rows.json"
            if not subject.checkout.has(path):
                subject.problems.missing(path, (*where, "trial"), "its temperature is fitted on it", ROWS)
        elif spec.temperature is not None:
            _warn_of_pool_rows(subject, side, where)
        _check_parent_rows(subject, side, where)
        for tag in gating_tags(spec.rule):
            directory = candidate_side(spec, name).directory(tag)
            if directory is not None and tag in spec.reads:
                _check_launchable(subject, tag, directory, ("arms", name, "reads"))
        for stage_name, stage in spec.confirm.items():
            _check_stage_tags(subject, name, stage_name, stage)


def _warn_of_pool_rows(subject: Subject, side: Side, where: JsonPath) -> None:
    for tag in subject.spec.temperature.reads if subject.spec.temperature else ():
        directory = side.rule_directory(tag)
        if directory is None:
            message = f"has no read {tag}, on which the pool fits its temperature"
            subject.problems.add("missing-parent-read", (*where, "reads"), message)
        elif not subject.checkout.has(f"{directory}/rows.json"):
            message = f"{directory}/rows.json is not there yet; this parent's temperature is fitted on it"
            subject.problems.warn("missing-pool-rows", (*where, "reads", tag), message)


def _check_parent_rows(subject: Subject, side: Side, where: JsonPath) -> None:
    for tag in gating_tags(subject.spec.rule):
        directory = side.directory(tag)
        if directory is None:
            if tag == TRANSFER or tag in subject.spec.reads:
                message = f"has no read {tag}, which the rule compares"
                subject.problems.add("missing-parent-read", (*where, "reads"), message)
        elif not subject.checkout.has(f"{directory}/rows.json"):
            key = "transfer_read" if side.transfer_read is not None else "trial"
            place = (*where, "reads", tag) if tag != TRANSFER else (*where, key)
            need = f"the read {tag} of parent {where[1]}"
            subject.problems.missing(f"{directory}/rows.json", place, need, ROWS)


def _check_stage_tags(subject: Subject, arm: str, name: str, stage: Stage) -> None:
    candidate, parent = candidate_side(subject.spec, arm, stage), parent_side(subject.spec, arm, stage)
    for tag in gating_tags(stage):
        if tag != TRANSFER and tag not in subject.spec.reads:
            continue
        directory = candidate.directory(tag)
        if directory is not None and tag != TRANSFER:
            _check_launchable(subject, tag, directory, ("confirm", name, "candidate_reads"))
        if directory is None:
            message = f"names no directory for the read {tag}, which this stage compares"
            subject.problems.add("missing-stage-read", ("confirm", name, "candidate_reads"), message)
        if parent.directory(tag) is None:
            # Only arms of this parent are held up, and only if one of them becomes the candidate.
            message = f"{parent.name} has no read {tag}: no arm of it can be confirmed here"
            subject.problems.warn("missing-stage-read", ("confirm", name), message)


def _check_launchable(subject: Subject, tag: str, directory: str, where: JsonPath) -> None:
    """A benchmark writes runs/<name>, a locked test runs/locked/<name>/<suite>; no other place can be read into."""
    parts = directory.split("/")
    if subject.spec.reads[tag].entrypoint == "locked_test":
        if len(parts) != 4 or parts[:2] != ["runs", "locked"]:
            message = f"{directory} is not runs/locked/<name>/transfer, where a locked test writes"
            subject.problems.add("bad-path", where, message)
    elif len(parts) != 2:
        subject.problems.add("bad-path", where, f"{directory} is not runs/<name>, where a benchmark writes")


def gating_tags(stage: Rule | Stage) -> list[str]:
    """The reads of a stage's panels that may not be absent."""
    tags = [tag for panel in stage.panels.values() if not panel.optional for tag in panel.reads]
    return list(dict.fromkeys(tags))
