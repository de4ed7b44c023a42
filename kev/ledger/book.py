"""The ledger's file: read as a whole, added to under its lock, refused as soon as any of it cannot be believed.

A crash can cut off the last line, which then was never acknowledged: nothing rests on it, and the next writer removes
it. Every whole line was acknowledged: one that does not parse raises DamagedFile, and whoever spends reads it first.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
from pydantic import ValidationError

from kev import files
from kev.errors import DamagedFile, DamagedLine, KevError, NotFound
from kev.ledger.units import Units
from kev.records.base import reason_of
from kev.records.ledger import EVENTS, LedgerEvent

FILE_NAME = "ledger.jsonl"


class NotRecorded(KevError):
    """What must be on disk before anything is started could not be written."""


@contextmanager
def holding(lock: Path, *, wait: bool = False) -> Iterator[None]:
    """`files.locked`, with a disk that takes nothing as NotRecorded."""
    try:
        manager = files.locked(lock, wait=wait)
        manager.__enter__()
    except OSError as error:
        raise NotRecorded(f"{lock}: cannot be written ({error.strerror or error}); nothing was started") from None
    try:
        yield
    finally:
        manager.__exit__(None, None, None)


class Ledger:
    """The ledger of one runs/ directory."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs
        self.path = runs / FILE_NAME
        self._lock = runs / f".{FILE_NAME}.lock"
        self._forget()

    @property
    def size(self) -> int:
        """Bytes of it that were read: equal as long as nothing was added."""
        return len(self._data)

    @property
    def is_begun(self) -> bool:
        """Whether the last reading found a ledger."""
        return self._lines > 0

    def read(self) -> Units:
        """What it holds; nothing where there is none yet. Only what was added since the last reading is parsed.

        The same object is returned and grows with each reading. Raises DamagedFile.
        """
        try:
            return self._fold()
        except DamagedFile:
            self._forget()
            raise

    @contextmanager
    def writing(self) -> Iterator["Writer"]:
        """Read, decide and write with nobody between. Raises DamagedFile, or NotRecorded if the disk takes nothing.

        Never await inside: the lock is waited for without giving way.
        """
        with holding(self._lock, wait=True):
            yield Writer(self, self.read())

    def _forget(self) -> None:
        self._data, self._lines, self._units = b"", 0, Units()

    def _fold(self) -> Units:
        try:
            data = files.read_bytes(self.path)
        except NotFound:
            if self.path.is_symlink():
                raise DamagedFile(self.path, "a link to nothing: what it leads to may be on a disk that is not "
                                  "mounted; until it is back nothing is spent") from None  # fmt: skip
            self._forget()
            return self._units
        if data == self._data and self._lines:
            return self._units
        if not data.strip(b"\0 \r\n\t"):
            raise DamagedFile(self.path, "empty, and a ledger never is: put it back from a copy; until then nothing "
                              "is spent. runs/*.spawn.json and runs/*.read.json name every call",
                              recoverable=files.find_recoverable(self.path))  # fmt: skip
        if not data.startswith(self._data):
            self._forget()
        # What follows the last newline was never acknowledged.
        whole = data.rfind(b"\n") + 1
        for line in data[len(self._data) : whole].split(b"\n")[:-1]:
            self._lines += 1
            event, problem = parse_event(line)
            if event is not None:
                problem = self._units.add(event) or ""
            if problem:
                raise DamagedLine(self.path, self._lines, problem)
            if (self._lines == 1) != (event is not None and event.event == "opened"):
                raise DamagedLine(self.path, self._lines, "is not the beginning of a ledger")
        self._data = data[:whole]
        if not self._lines:
            raise DamagedLine(self.path, 1, "is not the beginning of a ledger")
        return self._units


class Writer:
    """The ledger while its lock is held."""

    def __init__(self, ledger: Ledger, units: Units) -> None:
        self._ledger, self.units = ledger, units

    def add(self, *events: LedgerEvent) -> None:
        """Put events on disk, in one write. Raises NotRecorded if the disk did not take them."""
        path = self._ledger.path
        try:
            if not self._ledger.is_begun:
                # Whole or not at all: an empty ledger must mean that something went wrong.
                files.create_exclusive(path, _line(LedgerEvent(event="opened", at=events[0].at, text="version 1")))
            files.append(path, b"".join(_line(event) for event in events), cut_torn=True)
        except OSError as error:
            raise NotRecorded(f"{path}: cannot be written ({error.strerror or error}); nothing was started") from None
        self.units = self._ledger.read()


def parse_event(line: bytes) -> tuple[LedgerEvent | None, str]:
    """The event of a line, or None and the reason."""
    try:
        event = LedgerEvent.model_validate(orjson.loads(line))
    except orjson.JSONDecodeError:
        return None, "not JSON" if line.strip() else "blank"
    except ValidationError as error:
        return None, reason_of(error)
    if event.event not in EVENTS:
        return None, f"{event.event!r:.40} is no event that this version knows"
    return event, ""


def _line(event: LedgerEvent) -> bytes:
    return files.dump_json_line(event.to_json())
