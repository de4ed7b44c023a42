"""The journal of a run, read for showing: `summary.md` section by section, `summary.jsonl` line by line.

Reading is tolerant, for agents write it: half-width and full-width signs, either line end, fields in any order. What
cannot be read is missing, never guessed.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from kev import files
from kev.text import shorten
from kevtui.bench.snapshot import JournalEntry

MOST_ENTRIES = 1000
LONGEST = 600
"""Characters kept of a field."""

_HEADING = re.compile(
    r"#{1,6}\s*Iteration\s+(\d{1,9})\s*(?:[(（]\s*([^,，()（）]*?)\s*(?:[,，]\s*耗时\s*([^()（）]*?))?\s*[)）])?\s*$"
)
_FIELD = re.compile(r"\s*[-*]\s*\*\*\s*([^*]+?)\s*\*\*\s*[:：]?\s*(.*)")
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)\s*(?:s|秒)?", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def read_markdown(text: str) -> list[JournalEntry]:
    """The sections of `summary.md`, in the order of the file."""
    entries: list[JournalEntry] = []
    fenced = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        if fenced:
            continue
        if (heading := _HEADING.match(line)) is not None:
            if len(entries) >= MOST_ENTRIES:
                break
            entries.append(
                JournalEntry(
                    int(heading[1]), number, at=shorten(heading[2] or "", 40), duration_s=_seconds(heading[3] or "")
                )
            )
        elif entries and (found := _FIELD.match(line)) is not None:
            entries[-1] = _with_field(entries[-1], found[1], found[2])
    return entries


def _with_field(entry: JournalEntry, name: str, words: str) -> JournalEntry:
    name = name.rstrip(":：").replace("／", "/").strip()
    words = shorten(words.strip(), LONGEST)
    if name == "状态":
        good, bad = ("✅" in words or "成功" in words), ("❌" in words or "失败" in words)
        return replace(entry, succeeded=good if good != bad else None)
    if name.lower() == "score":
        parts = re.split(r"\s*[|｜]\s*", words)
        gains = [part for part in parts if part.lower().startswith("improvement")]
        return replace(entry, score=_number(parts[0]), improvement=_number(gains[0]) if gains else None)
    match name:
        case "训练类型":
            return replace(entry, train_type=words)
        case "关键配置":
            return replace(entry, configuration=words)
        case "做了什么":
            return replace(entry, what=words)
        case "为什么":
            return replace(entry, why=words)
        case "问题/进步":
            return replace(entry, problem=words)
    return entry


def read_lines(text: str) -> Iterator[dict[str, Any]]:
    """The objects of `summary.jsonl` that have an iteration."""
    for line in text.splitlines()[:MOST_ENTRIES]:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and type(value.get("iteration")) is int:
            yield value


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


def _seconds(text: str) -> float | None:
    found = _SECONDS.search(text)
    return float(found[1]) if found else None


def _number(text: str) -> float | None:
    found = _NUMBER.search(text.replace("−", "-").replace("＋", "+"))
    return files.as_finite(float(found[0])) if found else None


def _word(value: object) -> str:
    return shorten(value, 60) if isinstance(value, str) else ""
