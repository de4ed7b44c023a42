"""One hand on the wheel: who may act on a session from a dashboard, and how another asks for it.

`runs/.actions/control-<session>.lock` is held by the dashboard in control for as long as it lives; its one line says
who that is. `control-<session>.ask.json` is another one's wish to have it.
"""

import json
import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from kev import files
from kev.clock import Clock
from kev.errors import DamagedFile, KevError, LockHeld, NotFound
from kevtui.actions.accept import who
from kevtui.actions.proposal import place_of
from kevtui.actions.requests import directory_of


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has control, or asks for it."""

    who: str
    process: int
    since: float
    """Unix seconds."""

    def describe(self) -> str:
        return f"{self.who}, process {self.process}"

    def line(self) -> str:
        return json.dumps({"who": self.who, "process": self.process, "since": round(self.since)})


class Control:
    """This dashboard's hold on one session. Every method may wait for a disk: call them from a thread."""

    def __init__(self, runs: Path, session: str, clock: Clock) -> None:
        base = directory_of(runs) / place_of("control", session)
        self._lock = base.with_name(f"{base.name}.lock")
        self._ask = base.with_name(f"{base.name}.ask.json")
        self._clock = clock
        self._held = ExitStack()
        self.mine = False

    def take(self) -> Holder | None:
        """Take control. Returns None if it is ours now, else who has it. Raises KevError if it cannot be told."""
        me = self._me()
        try:
            self._held.enter_context(files.locked(self._lock, words=me.line()))
        except LockHeld as held:
            return parse_holder(held.holder)
        except OSError as error:
            raise KevError(f"{self._lock}: cannot be locked ({error.strerror or error})") from None
        self.mine = True
        asked = self.asked_by()
        if asked is not None and asked.process == me.process and asked.who == me.who:
            files.remove_file(self._ask)
        return None

    def give(self) -> None:
        """Let go of it, for whoever asks next."""
        self.mine = False
        self._held.close()

    def ask(self) -> None:
        """Tell the holder that this dashboard would like to have it. Raises OSError."""
        me = self._me()
        files.write_atomic(self._ask, files.dump_json({"who": me.who, "process": me.process, "at": round(me.since)}))

    def asked_by(self) -> Holder | None:
        """Who asks for it, if anybody."""
        return _read_ask(self._ask)

    def _me(self) -> Holder:
        return Holder(who(), os.getpid(), self._clock.now().timestamp())


def read_holder(runs: Path, session: str) -> Holder | None:
    """Who has control by the word of the lock's file, locking nothing; None where nobody ever had."""
    try:
        data = files.read_bytes(directory_of(runs) / f"{place_of('control', session)}.lock", limit=4096)
    except (NotFound, DamagedFile):
        return None
    return parse_holder(data.decode(errors="replace"))


def holder_in_control(runs: Path, session: str) -> Holder | None:
    """Who holds the lock at this moment; None where nobody does. Creates and changes nothing."""
    try:
        words = files.lock_holder(directory_of(runs) / f"{place_of('control', session)}.lock")
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


def _read_ask(path: Path) -> Holder | None:
    try:
        value = files.read_json(path)
        return Holder(str(value["who"])[:200], int(value["process"]), float(value["at"]))
    except (KevError, KeyError, TypeError, ValueError):
        return None
