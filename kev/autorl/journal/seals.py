"""`reports/.journal.jsonl`: what `append` wrote of each round, put down before it was written.

A round that a kill cut short is finished from here, and rule 1 is held against it: earlier bytes stay as they were.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import Field

from kev import files
from kev.autorl.journal.findings import LINES, SUMMARY, Finding
from kev.autorl.journal.lines import told_of
from kev.autorl.journal.section import Journal
from kev.errors import DamagedFile, NotFound
from kev.records.base import Record, parse_record

NAME = ".journal.jsonl"
MOST_BYTES = 16 * 1024 * 1024
"""A file of a journal that is larger is none: a round has a few KiB."""


class Seal(Record):
    """One round as it was composed."""

    iteration: int
    section: str
    line: str
    summary_size: int = 0
    """Bytes of the file before the section was written: what a kill left is told by it from what others changed."""
    lines_size: int = 0
    submissions: list[int] = Field(default_factory=list)
    """Those that the round tells of."""
    log_line: int = 0
    """The last line that agent.log had."""
    request: str = ""
    """A hash of what the caller asked for: the same request again is the same round."""


def read_seals(reports: Path) -> list[Seal]:
    """What was recorded, in order; lines that cannot be believed are passed over, as one that a kill cut short is."""
    path = reports / NAME
    try:
        data = files.read_bytes(path, limit=MOST_BYTES)
    except (NotFound, DamagedFile):
        return []
    found = []
    for line in files.parse_json_lines(data):
        try:
            found.append(parse_record(path, line.value, Seal))
        except DamagedFile:
            continue
    return list({seal.iteration: seal for seal in found}.values())


def check_seals(seals: Sequence[Seal], text: str, journal: Journal, lines: bytes | None) -> Iterator[Finding]:
    """Rule 1: what `append` wrote stands there unchanged."""
    places = {section.iteration: section.line for section in reversed(journal.sections)}
    for seal in seals:
        if seal.section.strip("\n") not in text:
            yield _first_change(seal.section.strip("\n").split("\n"), text.split("\n"), places.get(seal.iteration))
        if seal.line.encode() not in (lines or b""):
            yield Finding(1, "changed", LINES, _line_of(seal.iteration, lines or b""), "", seal.line.strip())


def _first_change(sealed: Sequence[str], found: Sequence[str], start: int | None) -> Finding:
    if start is None:
        return Finding(1, "changed", SUMMARY, None, "", sealed[0])
    for place, line in enumerate(sealed):
        there = found[start - 1 + place] if start - 1 + place < len(found) else ""
        if there != line:
            return Finding(1, "changed", SUMMARY, start + place, *_around(there, line))
    return Finding(1, "changed", SUMMARY, start, "", sealed[0])


def _around(stated: str, machine: str) -> tuple[str, str]:
    """The two from shortly before where they part, so that what differs is in view."""
    same = next((at for at, pair in enumerate(zip(stated, machine, strict=False)) if pair[0] != pair[1]), 0)
    start = max(0, same - 24)
    return stated[start:] or "nothing", machine[start:]


def _line_of(iteration: int, lines: bytes) -> int | None:
    return next((number for number, value in told_of(lines) if value["iteration"] == iteration), None)
