"""Who has control of a session, told by the files that say so; nothing is written or locked here."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kev import files
from kev.errors import DamagedFile, KevError, NotFound
from kevtui.actions.proposal import place_of
from kevtui.actions.requests import lock_of


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has control, or asks for it."""

    who: str
    process: int
    since: float
    """Unix seconds."""

    @property
    def since_at(self) -> datetime:
        return datetime.fromtimestamp(self.since, UTC)

    def describe(self) -> str:
        return f"{self.who}, process {self.process}"

    def line(self) -> str:
        return json.dumps({"who": self.who, "process": self.process, "since": round(self.since)})


def control_lock(runs: Path, session: str) -> Path:
    """What the dashboard in control of `session` holds."""
    return lock_of(runs, place_of("control", session))


def read_holder(runs: Path, session: str) -> Holder | None:
    """Who has control by the word of the lock's file, locking nothing; None where nobody ever had."""
    try:
        data = files.read_bytes(control_lock(runs, session), limit=4096)
    except (NotFound, DamagedFile):
        return None
    return parse_holder(data.decode(errors="replace"))


def holder_in_control(runs: Path, session: str) -> Holder | None:
    """Who holds the lock at this moment; None where nobody does. Creates and changes nothing."""
    return holder_of(control_lock(runs, session))


def holder_of(lock: Path) -> Holder | None:
    """Who holds a control lock, found out without taking it; None where nobody does, or where it cannot be told."""
    try:
        words = files.lock_holder(lock)
    except OSError:
        return None
    return None if words is None else parse_holder(words)


def parse_holder(text: str) -> Holder:
    """The holder that a lock's line names; unknown where it does not say."""
    try:
        value = json.loads(text)
        return Holder(str(value["who"])[:200], int(value["process"]), float(value["since"]))
    except (ValueError, KeyError, TypeError):
        return Holder("another dashboard", 0, 0.0)


def read_ask(path: Path) -> Holder | None:
    """Who asks for control, by the file in `path`."""
    try:
        value = files.read_json(path)
        return Holder(str(value["who"])[:200], int(value["process"]), float(value["at"]))
    except (KevError, KeyError, TypeError, ValueError):
        return None
