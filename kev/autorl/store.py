"""What the grader knows: a chain of events, each bound to the one before it, outside the workspace.

Every line holds the hash of its own words and of the line before, keyed with a secret of the grader. A line that was
added, changed or removed by anybody else breaks the chain, and a broken chain is not graded on: the run has no score.
"""

import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kev import files
from kev.errors import DamagedFile, NotFound, Refused

FIRST = "0" * 64
MAX_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Event:
    """One event: what happened, and its facts."""

    number: int
    kind: str
    facts: dict[str, Any]


class Store:
    """The chain in `path`. One process at a time, and one thread at a time, writes it."""

    def __init__(self, path: Path, key: bytes) -> None:
        self._path = path
        self._key = key
        self._last = FIRST
        self._size = 0
        self.events: list[Event] = []
        self._load()

    def append(self, kind: str, facts: dict[str, Any]) -> Event:
        """Add an event; it is on the device when this returns.

        Raises Refused if the file was changed by anybody else, and OSError, with nothing added, for a full disk.
        """
        self._check_untouched()
        event = Event(len(self.events) + 1, kind, facts)
        digest = self._hash(event, self._last)
        line = files.dump_json_line(_words(event, self._last) | {"hash": digest})
        files.append(self._path, line, cut_torn=True)
        self._last, self._size = digest, self._size + len(line)
        self.events.append(event)
        return event

    def verify(self) -> None:
        """Read the whole chain again. Raises Refused or DamagedFile if it is not what was written."""
        self._check_untouched()
        again = Store(self._path, self._key)
        if again._last != self._last:
            raise self._touched()

    def _load(self) -> None:
        try:
            data = files.read_bytes(self._path, limit=MAX_BYTES)
        except NotFound:
            return
        # What has no newline was never acknowledged: the next append cuts it off.
        data = data[: data.rfind(b"\n") + 1]
        for number, line in enumerate(data.split(b"\n")[:-1], start=1):
            try:
                value = json.loads(line)
                event = Event(value["number"], value["kind"], value["facts"])
                said = (value["previous"], value["hash"])
            except (ValueError, KeyError, TypeError, RecursionError):
                raise DamagedFile(self._path, f"line {number}: no event; the run cannot be graded") from None
            if event.number != number or said != (self._last, self._hash(event, self._last)):
                raise DamagedFile(self._path, f"line {number}: not written by the grader; the run cannot be graded")
            self._last = said[1]
            self.events.append(event)
        self._size = len(data)

    def _check_untouched(self) -> None:
        try:
            size = self._path.stat().st_size
        except FileNotFoundError:
            size = 0
        if size != self._size and (size < self._size or not self._is_torn(size)):
            raise self._touched()

    def _is_torn(self, size: int) -> bool:
        """Whether what follows our last line is the beginning of one: the tail of a kill, before our first append."""
        with self._path.open("rb") as stream:
            stream.seek(self._size)
            return b"\n" not in stream.read(size - self._size)

    def _touched(self) -> Refused:
        return Refused(f"{self._path}: changed by another program; the run cannot be graded")

    def _hash(self, event: Event, previous: str) -> str:
        said = json.dumps(_words(event, previous), sort_keys=True, ensure_ascii=True, allow_nan=False)
        return hmac.new(self._key, said.encode(), hashlib.sha256).hexdigest()


def grader_key(directory: Path) -> bytes:
    """The grader's secret in `directory`, made at the first call. Only its owner may read it."""
    path = directory / "key"
    try:
        files.create_exclusive(path, secrets.token_hex(32).encode() + b"\n")
        path.chmod(0o600)
    except FileExistsError:
        pass
    return files.read_bytes(path, limit=1000).strip()


def derive(key: bytes, *words: str) -> bytes:
    """A secret of its own for each purpose, which gives nothing of `key` away."""
    return hmac.new(key, "\0".join(words).encode(), hashlib.sha256).digest()


def _words(event: Event, previous: str) -> dict[str, Any]:
    return {"number": event.number, "kind": event.kind, "facts": event.facts, "previous": previous}
