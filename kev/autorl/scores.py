"""`scores.json`, whoever wrote it: which entries may be ranked, which are errors, and which is best."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kev import files
from kev.errors import DamagedFile
from kev.records.autorl import ScoreEntry
from kev.records.base import parse_record

FIGURES = ("score", "baseline_score", "improvement", "elapsed_seconds")
DECIMALS = 6


@dataclass(frozen=True, slots=True)
class Scores:
    """The entries in order of their ids, and a line for each that cannot be believed."""

    entries: list[ScoreEntry]
    findings: list[str] = field(default_factory=list)

    @property
    def valid(self) -> list[ScoreEntry]:
        return [entry for entry in self.entries if entry.is_valid]

    @property
    def errors(self) -> list[ScoreEntry]:
        return [entry for entry in self.entries if entry.error is not None]

    @property
    def not_finite(self) -> list[ScoreEntry]:
        """Those whose score is no number, and who have no error that says why."""
        return [entry for entry in self.entries if entry.not_finite and entry.error is None]

    @property
    def best(self) -> ScoreEntry | None:
        return best_of(self.entries)

    @property
    def baseline(self) -> float | None:
        """What the last entry that has a baseline was compared with."""
        return next((each.baseline_score for each in reversed(self.entries) if each.baseline_score is not None), None)


def best_of(entries: Sequence[ScoreEntry]) -> ScoreEntry | None:
    """The entry with the highest score, the first submitted of equals; None where nothing can be ranked."""
    ranked = [entry for entry in entries if entry.is_valid]
    return min(ranked, key=lambda entry: (-(entry.score or 0.0), entry.submission_id), default=None)


def improvement_of(score: float | None, baseline: float | None) -> float | None:
    """`score - baseline` to 6 decimals; None without either."""
    return None if score is None or baseline is None else round(score - baseline, DECIMALS)


def read_scores(path: Path) -> Scores:
    """The entries in `path`. Raises NotFound, or DamagedFile for what is no list; a bad entry is a finding.

    NaN and infinities are read, since other writers leave them: such a score is None and marked.
    """
    data = files.read_bytes(path)
    try:
        value = files.parse_json(data)
    except ValueError as error:
        value = _with_constants(data)
        if value is None:
            raise DamagedFile(path, str(error), recoverable=files.find_recoverable(path)) from None
    return scores_of(path, value)


def scores_of(path: Path, value: Any) -> Scores:
    """What `path` held, as entries. Raises DamagedFile for what is no list."""
    if not isinstance(value, list):
        raise DamagedFile(path, "does not hold a list of entries")
    entries: dict[int, ScoreEntry] = {}
    findings = []
    for place, each in enumerate(value, start=1):
        try:
            entry = parse_record(path, _tolerant(each), ScoreEntry)
        except DamagedFile as error:
            findings.append(f"entry {place}: {error.reason}")
            continue
        if entry.submission_id in entries:
            findings.append(f"entry {place}: submission {entry.submission_id} is there already; the first counts")
            continue
        entries[entry.submission_id] = entry
    return Scores([entries[key] for key in sorted(entries)], findings)


def _tolerant(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    changed = dict(value)
    changed.pop("not_finite", None)
    for key in FIGURES:
        figure = changed.get(key)
        if isinstance(figure, float) and not math.isfinite(figure):
            changed[key] = None
            if key == "score":
                changed["not_finite"] = True
    return changed


def _with_constants(data: bytes) -> Any:
    """The JSON in `data` with NaN and infinities, which Python's writer makes and no other reads; None otherwise."""
    try:
        return json.loads(data.removeprefix(files.UTF8_BOM).decode())
    except (ValueError, RecursionError):
        return None
