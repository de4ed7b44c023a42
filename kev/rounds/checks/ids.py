"""The ids a spec drops: each should be that of a record, as it is spelled there."""

import unicodedata
from collections.abc import Iterator

from kev import files
from kev.errors import KevError
from kev.rounds.checks.reads import read_split
from kev.rounds.sides import TRANSFER, candidate_side, parent_side
from kev.rounds.subject import Subject

MAX_BYTES = 64 * 1024 * 1024
"""More than this is read only with --partitions."""


def check_drop_ids(subject: Subject) -> None:
    """Name the entries of `drop_ids` that drop nothing, where the records are here to tell."""
    drop_ids = subject.spec.drop_ids
    for index, entry in enumerate(drop_ids):
        if entry in drop_ids[:index]:
            subject.problems.warn("repeated-id", ("drop_ids", index), f"{entry!r} is there already")
    known = _known_ids(subject) if drop_ids else None
    if known is None:
        return
    spellings = {_even(name): name for name in known}
    for index, entry in enumerate(drop_ids):
        if entry not in known:
            twin = spellings.get(_even(entry))
            other = f"; a record is spelled {twin!a}" if twin is not None else ""
            message = f"{entry!a} is the id of no record that the panels read{other}"
            subject.problems.warn("unmatched-id", ("drop_ids", index), message)


def _known_ids(subject: Subject) -> set[str] | None:
    """The ids of all records that any panel reads; None when some of them are not here."""
    tags = {tag for _, stage in subject.stages() for panel in stage.panels.values() for tag in panel.reads}
    chosen: list[str] = []
    for tag in sorted(tags):
        here = next(
            (paths for paths in _files_of(subject, tag) if paths and all(map(subject.checkout.size, paths))), None
        )
        if here is None:
            return None
        chosen += here
    if not chosen or (sum(map(subject.checkout.size, chosen)) > MAX_BYTES and not subject.partitions):
        return None
    known: set[str] = set()
    for path in chosen:
        try:
            known |= set(_ids(subject, path))
        except KevError:
            return None
    return known


def _files_of(subject: Subject, tag: str) -> Iterator[list[str]]:
    """Where all records of a read may be seen: in its partitions, or in the rows of any side."""
    read = subject.spec.reads.get(tag)
    transfer = subject.transfer_suites()
    if tag == TRANSFER:
        yield [f"{suite}/development.jsonl" for suite in sorted(transfer or ())]
    elif read is None:
        return
    elif read.suite is not None:
        yield [read.suite if read.suite.endswith(".jsonl") else f"{read.suite}/{read_split(read)}.jsonl"]
    elif transfer:
        yield [f"{suite}/test.jsonl" for suite in sorted({*transfer, read.decision or ""})]
    for name, arm in subject.spec.arms.items():
        sides = [candidate_side(subject.spec, name)]
        if arm.parent in subject.spec.parents:
            sides.append(parent_side(subject.spec, name))
        for side in sides:
            directory = side.rule_directory(tag)
            yield [f"{directory}/rows.json"] if directory is not None else []


def _ids(subject: Subject, path: str) -> Iterator[str]:
    if path.endswith(".jsonl"):
        for record in subject.checkout.records(path):
            meta = record.get("_meta")
            if isinstance(meta, dict) and isinstance(meta.get("id"), str):
                yield meta["id"]
        return
    rows = files.read_json(subject.checkout.root / path)
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and isinstance(row.get("id"), str):
            yield row["id"]


def _even(text: str) -> str:
    return unicodedata.normalize("NFKC", text).strip().casefold()
