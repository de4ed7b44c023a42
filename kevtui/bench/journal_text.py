"""The journal of a run, read for showing: `summary.md` section by section, `summary.jsonl` line by line.

Reading is tolerant, for agents write it. What cannot be read is missing, never guessed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from kev import files
from kev.autorl.journal.section import PROGRESS, SETTINGS, WHAT, WHY, Section, read_journal
from kev.text import shorten
from kevtui.bench.snapshot import JournalEntry

LONGEST = 600
"""Characters kept of a field."""


def read_sections(text: str) -> list[JournalEntry]:
    """The sections of `summary.md`, in the order of the file."""
    return [_entry(section) for section in read_journal(text).sections]


def _entry(section: Section) -> JournalEntry:
    facts = section.score_facts
    return JournalEntry(
        section.iteration,
        section.line,
        at=shorten(section.time, 40),
        duration_s=None if section.duration is None else float(section.duration),
        succeeded={"success": True, "failure": False}.get(section.status or ""),
        score=None if facts is None else files.as_finite(facts.score),
        improvement=None if facts is None else files.as_finite(facts.improvement),
        train_type=_word(section.train_type),
        configuration=shorten(section.text(SETTINGS), LONGEST),
        what=shorten(section.text(WHAT), LONGEST),
        why=shorten(section.text(WHY), LONGEST),
        problem=shorten(section.text(PROGRESS), LONGEST),
    )


def merge(entries: Sequence[JournalEntry], lines: Iterable[dict[str, Any]]) -> tuple[JournalEntry, ...]:
    """The sections, with what only their lines say, and the lines that have no section."""
    places = {entry.number: place for place, entry in enumerate(entries)}
    merged = list(entries)
    for line in lines:
        number = line["iteration"]
        place = places.get(number)
        if place is None:
            places[number] = place = len(merged)
            merged.append(JournalEntry(number, None))
        entry = merged[place]
        succeeded = {"success": True, "failure": False}.get(str(line.get("status")))
        merged[place] = replace(
            entry,
            at=entry.at or _word(line.get("timestamp")),
            duration_s=files.as_finite(line.get("duration_s")) if entry.duration_s is None else entry.duration_s,
            succeeded=succeeded if entry.succeeded is None else entry.succeeded,
            score=files.as_finite(line.get("score")) if entry.score is None else entry.score,
            improvement=files.as_finite(line.get("improvement")) if entry.improvement is None else entry.improvement,
            train_type=entry.train_type or _word(line.get("train_type")),
            failure_type=_word(line.get("failure_type")),
        )
    return tuple(merged)


def _word(value: object) -> str:
    return shorten(value, 60) if isinstance(value, str) else ""
