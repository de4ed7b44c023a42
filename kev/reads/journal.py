"""The journal of a read: what it is of, in `read.json`, and every outcome, a line each, in `predictions.jsonl`.

A line is complete before the next record counts as read. A line that a kill cut short is not believed, and its record
is asked again; nothing before it is.
"""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kev import files
from kev.errors import DamagedFile, NotFound, Refused

ABOUT = "read.json"
PREDICTIONS = "predictions.jsonl"
REPORT = "report.json"


@dataclass(frozen=True, slots=True)
class Entry:
    """The outcome of one record: its rows and what was predicted, or the reason it was refused."""

    request_sha256: str
    id: str
    rows: list[dict[str, Any]]
    prediction: dict[str, Any] | None
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        values: dict[str, Any] = {
            "request_sha256": self.request_sha256,
            "id": self.id,
            "prediction": self.prediction,
            "rows": self.rows,
        }
        return values if self.error is None else values | {"error": self.error}


class Journal:
    """The journal in `directory`. Whoever opens it holds the directory's lock."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.attempt = 1
        self.damaged_lines: list[int] = []
        self._entries: dict[tuple[str, str], deque[Entry]] = defaultdict(deque)

    @property
    def recorded(self) -> int:
        """Outcomes that earlier attempts left."""
        return sum(map(len, self._entries.values()))

    def open(self, identity: Mapping[str, Any]) -> None:
        """Begin the read, or go on with one of the same identity.

        Raises Refused for a finished read, for one of another identity, and for a directory that holds no read.
        """
        if (self.directory / REPORT).exists():
            raise Refused(f"{self.directory}: is there already; a read never replaces another")
        about = self.directory / ABOUT
        try:
            before = files.read_json(about)
        except NotFound:
            if self.directory.exists() and any(self.directory.iterdir()):
                raise Refused(
                    f"{self.directory}: is there already, and holds no read that could be gone on with"
                ) from None
            files.create_exclusive(about, files.dump_json({"identity": dict(identity), "attempts": 1}))
            return
        if not isinstance(before, dict) or not isinstance(before.get("identity"), dict):
            raise DamagedFile(about, "does not say what the read is of")
        self._compare(before["identity"], identity)
        attempts = before.get("attempts")
        self.attempt = (attempts if type(attempts) is int else 1) + 1
        files.write_atomic(about, files.dump_json({**before, "attempts": self.attempt}))
        self._load()

    def take(self, request_sha256: str, identifier: str) -> Entry | None:
        """The outcome of a record that an earlier attempt left, once for each time it was recorded."""
        found = self._entries.get((request_sha256, identifier))
        return found.popleft() if found else None

    def add(self, entries: Sequence[Entry]) -> None:
        """Write outcomes. They are on the device when this returns."""
        if entries:
            lines = b"".join(files.dump_json_line(entry.to_json()) for entry in entries)
            files.append(self.directory / PREDICTIONS, lines)

    def _compare(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        changed = [key for key in {**before, **now} if before.get(key) != now.get(key)]
        if changed:
            shown = "; ".join(
                f"{key} was {_short(before.get(key))} and is {_short(now.get(key))}" for key in changed[:3]
            )
            raise Refused(
                f"{self.directory}: holds an unfinished read of something else ({shown}); give this one another name"
            )

    def _load(self) -> None:
        path = self.directory / PREDICTIONS
        try:
            data = files.read_bytes(path, limit=8 * files.MAX_JSON_BYTES)
        except NotFound:
            return
        for line in files.parse_json_lines(data):
            entry = _entry(line.value) if line.damage is None else None
            if entry is None:
                self.damaged_lines.append(line.number)
            else:
                self._entries[(entry.request_sha256, entry.id)].append(entry)


def _entry(value: Any) -> Entry | None:
    match value:
        case {"request_sha256": str(sha256), "id": str(identifier), "rows": list(rows), "prediction": prediction}:
            error = value.get("error")
            if prediction is None and not isinstance(error, str):
                return None
            return Entry(sha256, identifier, rows, prediction, error)
    return None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
