"""`python -m kev.rounds validate`: everything that is wrong with a round's spec, and what somebody should know."""

import argparse
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kev.document import Document, read_document
from kev.errors import KevError
from kev.records.spec import RoundSpec
from kev.rounds.checkout import Checkout
from kev.rounds.checks.arms import check_arms
from kev.rounds.checks.construction import check_construction
from kev.rounds.checks.criteria import check_criteria
from kev.rounds.checks.ids import check_drop_ids
from kev.rounds.checks.panels import check_panels
from kev.rounds.checks.partitions import check_partitions
from kev.rounds.checks.pools import check_pools
from kev.rounds.checks.prior import check_prior_use
from kev.rounds.checks.reads import check_reads
from kev.rounds.checks.rows import check_rows
from kev.rounds.checks.shipped import check_shipped_temperatures
from kev.rounds.checks.structure import check_structure
from kev.rounds.checks.studies import check_studies
from kev.rounds.problems import Problem, Problems, Severity
from kev.rounds.registration import Registration, registration
from kev.rounds.specs import find_root
from kev.rounds.subject import Subject

CHECKS = (
    check_studies,
    check_reads,
    check_arms,
    check_construction,
    check_panels,
    check_criteria,
    check_pools,
    check_rows,
    check_drop_ids,
    check_prior_use,
    check_shipped_temperatures,
)


@dataclass(frozen=True, slots=True)
class Validation:
    """What was found in one spec."""

    path: Path
    spec: RoundSpec
    findings: tuple[Problem, ...]
    registration: Registration | None

    def of(self, severity: Severity) -> list[Problem]:
        """The findings of one severity, in the order of the spec."""
        return [finding for finding in self.findings if finding.severity is severity]

    @property
    def ok(self) -> bool:
        return not self.of(Severity.PROBLEM)

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON values."""
        registered = self.registration
        return {
            "spec": str(self.path),
            "round": self.spec.round,
            "ok": self.ok,
            "arms": len(self.spec.arms),
            "studies": len(self.spec.studies),
            "registered_at": registered.at.isoformat() if registered else None,
            "registered_by": registered.commit if registered else None,
            "findings": [finding.to_json() for finding in self.findings],
        }


def validate(path: Path, root: Path | None = None, *, partitions: bool = False) -> Validation:
    """Every finding about the spec in `path`. Raises NotFound or DamagedFile for a file that holds no JSON at all."""
    document = read_document(path)
    root = find_root(path) if root is None else root
    problems = Problems(document, recorded=is_recorded(document))
    spec, dropped = check_structure(document, problems)
    subject = Subject(document, spec, dropped, Checkout(root), problems, partitions)
    if isinstance(document.value, dict):
        _check_file_name(path, spec, problems)
        for check in CHECKS:
            check(subject)
        if partitions:
            check_partitions(subject)
    registered = _check_registration(path, root, problems)
    return Validation(path, spec, tuple(problems.all()), registered)


def is_recorded(document: Document) -> bool:
    """Whether a spec is that of a recorded round."""
    return isinstance(document.value, dict) and isinstance(document.value.get("archive"), str)


def _check_file_name(path: Path, spec: RoundSpec, problems: Problems) -> None:
    named = re.fullmatch(r"r([0-9]{1,9})\.json", path.name)
    if named is not None and spec.round and int(named[1]) != spec.round:
        problems.warn("other-round", ("round",), f"is {spec.round}, and the file is named {path.name}")


def _check_registration(path: Path, root: Path, problems: Problems) -> Registration | None:
    try:
        registered = registration(path, root)
    except KevError as error:
        problems.warn("not-registered", (), str(error))
        return None
    for change in registered.changes:
        when = f"on {change.at:%Y-%m-%d %H:%M} UTC" if change.at is not None else "and the change is not committed"
        message = f"the {change.what} was changed after its registration on {registered.at:%Y-%m-%d %H:%M} UTC: {when}"
        problems.warn("changed-since-registration", (), message)
    return registered


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `validate`."""
    parser.add_argument("spec", type=Path, metavar="SPEC")
    parser.add_argument("--root", type=Path, help="what the spec's paths are relative to (its checkout)")
    parser.add_argument("--partitions", action="store_true", help="read and compare every partition, however large")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")


def validate_command(options: argparse.Namespace) -> int:
    """Print what was found. Returns 1 with any problem, else 0."""
    result = validate(options.spec, options.root, partitions=options.partitions)
    if options.json:
        print(json.dumps(result.to_json(), indent=2, ensure_ascii=True))
    else:
        for line in describe(result):
            print(line)
    return 0 if result.ok else 1


def describe(result: Validation) -> list[str]:
    """The findings as lines: warnings, then what is archived, then the problems, or that there is none."""
    lines = [f"!!! warning: {warning}" for warning in result.of(Severity.WARNING)]
    archived = result.of(Severity.ARCHIVED)
    if archived:
        lines.append(f"archived with round {result.spec.round}, and not needed to read it out:")
        lines += [f"  {finding}" for finding in archived]
    problems = result.of(Severity.PROBLEM)
    lines += [str(problem) for problem in problems]
    if not problems:
        counts = f"{len(result.spec.arms)} arms, {len(result.spec.studies)} studies"
        lines.append(f"round {result.spec.round}: ok ({counts})")
    return lines
