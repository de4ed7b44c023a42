"""What one file held at a moment. Where only its last content is known, it is not there before that was written."""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

from kev import files
from kev.records.instant import read_instant


@dataclass(frozen=True, slots=True)
class Then:
    """A file as it was: its last change up to then, and its bytes or its JSON value."""

    stamp_ns: int
    data: bytes | None = None
    value: Any = None

    def load(self) -> Any:
        """The JSON value. Raises ValueError in words."""
        return self.value if self.data is None else files.parse_json(self.data)


class Version(Protocol):
    """One file through the night."""

    def at(self, at: datetime) -> Then | None:
        """As it was at `at`; None where it was not there, or nobody can know how."""
        ...


class Whole:
    """A file of which only the last content is known, complete since `since`."""

    def __init__(self, data: bytes | None, since: datetime) -> None:
        self._then = Then(to_ns(since), b"{}" if data is None else data)
        self.since = since

    def at(self, at: datetime) -> Then | None:
        return self._then if self.since <= at else None


class Lines:
    """A file that grows by lines with a time in each.

    A line without one, damaged or not, was written before the next that has one; after the last of those, by the time
    of the file.
    """

    def __init__(self, data: bytes, written: datetime, time_of: Callable[[Any], datetime | None]) -> None:
        self._lines = _split(data)
        own = [_time(line, time_of) for line in self._lines]
        self._times: list[datetime] = []
        upcoming = written
        for moment in reversed(own):
            upcoming = moment or upcoming
            self._times.append(upcoming)
        self._times.reverse()
        self._is_sorted = all(before <= after for before, after in pairwise(self._times))

    @property
    def times(self) -> list[datetime]:
        return self._times

    def at(self, at: datetime) -> Then | None:
        if self._is_sorted:
            count = bisect_right(self._times, at)
            lines, last = self._lines[:count], self._times[count - 1] if count else None
        else:
            known = [index for index, moment in enumerate(self._times) if moment <= at]
            lines = [self._lines[index] for index in known]
            last = max((self._times[index] for index in known), default=None)
        return None if last is None else Then(to_ns(last), b"".join(lines))


class Ledger:
    """A study's ledger: the attempts that had been entered by then."""

    def __init__(self, value: dict[str, Any], written: datetime) -> None:
        self._value, self._written = value, written

    @cached_property
    def attempts(self) -> dict[str, list[tuple[datetime, dict[str, Any]]]]:
        found = {}
        for label, entries in self._value["attempts"].items():
            timed = [(moment_of(entry.get("at")), entry) for entry in entries if isinstance(entry, dict)]
            found[label] = [(moment, entry) for moment, entry in timed if moment is not None]
        return found

    @property
    def launched(self) -> datetime | None:
        return min((moment for entries in self.attempts.values() for moment, _ in entries), default=None)

    def at(self, at: datetime) -> Then | None:
        if self._written <= at:
            return Then(to_ns(self._written), value=self._value)
        attempts = {}
        last: datetime | None = None
        for label, entries in self.attempts.items():
            known = [(moment, entry) for moment, entry in entries if moment <= at]
            if known:
                attempts[label] = [_attempt(entry, at) for _, entry in known]
                last = max(moment for moment, _ in known) if last is None else max(last, known[-1][0])
        if last is None:
            return None
        calls = {label: entries[-1].get("call") for label, entries in attempts.items()}
        return Then(to_ns(last), value={**self._value, "attempts": attempts, "calls": calls})


def ledger(data: bytes, written: datetime) -> Version:
    """The ledger in `data`; one from before there were attempts is known only as a whole."""
    value = object_in(data)
    attempts = (value or {}).get("attempts")
    if value is None or not isinstance(attempts, dict) or not all(isinstance(each, list) for each in attempts.values()):
        return Whole(data, written)
    found = Ledger(value, written)
    return found if found.launched is not None else Whole(data, written)


def _attempt(entry: dict[str, Any], at: datetime) -> dict[str, Any]:
    abandoned = moment_of(entry.get("abandoned"))
    is_known = abandoned is not None and abandoned <= at
    return {key: value for key, value in entry.items() if key != "abandoned" or is_known}


def object_in(data: bytes | None) -> dict[str, Any] | None:
    """The JSON object in `data`, or None."""
    try:
        value = files.parse_json(data or b"")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def moment_of(value: object) -> datetime | None:
    """`value` as a moment, UTC; None where it is none."""
    return read_instant(value).at


def earliest(*moments: datetime | None) -> datetime | None:
    known = [moment for moment in moments if moment is not None]
    return min(known, default=None)


def to_ns(moment: datetime) -> int:
    return int(moment.timestamp()) * 10**9 + moment.microsecond * 1000


def from_ns(stamp_ns: int) -> datetime:
    """Rounded up to the microsecond, so that nothing is there before it was written."""
    seconds, rest = divmod(stamp_ns, 10**9)
    try:
        return datetime.fromtimestamp(seconds, UTC).replace(microsecond=min(999_999, -(-rest // 1000)))
    except (OverflowError, ValueError, OSError):
        return datetime.max.replace(tzinfo=UTC)


def event_time(value: Mapping[str, Any]) -> datetime | None:
    return moment_of(value.get("at"))


def step_time(value: Mapping[str, Any]) -> datetime | None:
    return moment_of(value["at"] if value.get("at") is not None else value.get("t"))


def _time(line: bytes, time_of: Callable[[Any], datetime | None]) -> datetime | None:
    value = object_in(line)
    return None if value is None else time_of(value)


def _split(data: bytes) -> list[bytes]:
    parts = data.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
