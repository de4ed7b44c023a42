"""The versions of every file of a night, and the moments at which something happened in it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import InitVar, dataclass, field
from datetime import UTC, datetime, time
from functools import cached_property
from itertools import chain
from pathlib import PurePosixPath
from typing import Any

from kevtui.observe.target import SPAWN_SUFFIX
from kevtui.replay.kinds import LINES, LOGS, WITHOUT_CONTENT, Kind
from kevtui.replay.night import HeldFile, Night
from kevtui.replay.state_then import StateThen
from kevtui.replay.units import Units
from kevtui.replay.versions import (
    Ledger,
    Lines,
    Version,
    Whole,
    earliest,
    event_time,
    from_ns,
    ledger,
    moment_of,
    object_in,
    step_time,
)

_INTENT = re.compile(r"runs/(r\d+)-reads-(.+)\.json")
_INCIDENTS = frozenset({"warning", "error", "critical"})
_HAPPENS = frozenset({Kind.RESULT, Kind.FAILURE, Kind.ROWS, Kind.USAGE, Kind.READOUT, Kind.VERDICT})
"""Kinds whose appearing is an event of its own."""


@dataclass(frozen=True, slots=True, order=True)
class Happening:
    """A moment to stop at."""

    at: datetime
    is_incident: bool = False


@dataclass(frozen=True)
class History:
    """What `night` says of when."""

    night: Night
    known: InitVar[Mapping[str, Version] | None] = None
    """Versions of files of it that were found already: a long log is taken apart once."""
    versions: Mapping[str, Version] = field(init=False)

    def __post_init__(self, known: Mapping[str, Version] | None) -> None:
        object.__setattr__(self, "versions", _versions(self.night, known or {}))

    @property
    def state(self) -> StateThen | None:
        found = self.versions.get(self.night.state or "")
        return found if isinstance(found, StateThen) else None

    @cached_property
    def happenings(self) -> tuple[Happening, ...]:
        """Every moment at which something happened, each once, in order."""
        found: dict[datetime, bool] = {}
        for each in _happenings(self):
            found[each.at] = found.get(each.at, False) or each.is_incident
        return tuple(Happening(at, is_incident) for at, is_incident in sorted(found.items()))

    @cached_property
    def begins_at(self) -> datetime:
        return min(self._ends(), default=datetime.min.replace(tzinfo=UTC))

    @cached_property
    def ends_at(self) -> datetime:
        return max(self._ends(), default=datetime.min.replace(tzinfo=UTC))

    @cached_property
    def moves(self) -> tuple[datetime, ...]:
        """Every moment at which anything was written, steps included, in order."""
        lines = (version.times for version in self.versions.values() if isinstance(version, Lines))
        return tuple(sorted({*self._ends(), *chain.from_iterable(lines)}))

    @property
    def is_empty(self) -> bool:
        return next(self._ends(), None) is None

    @cached_property
    def untimed(self) -> tuple[str, ...]:
        """What no time is recorded of, in words."""
        words = []
        if self.state is not None and self.state.untimed:
            words.append(
                f"the launches of {self.state.untimed} studies and reads of the state file, and so what was committed"
            )
        kinds = {held.kind for held in self.night.files}
        if kinds & {Kind.WATCH, Kind.WATCHER, Kind.LEASE}:
            words.append("passes of the watcher and heartbeats before the last")
        if kinds & LOGS:
            words.append("single lines of logs")
        return tuple(words)

    def _ends(self) -> Iterator[datetime]:
        for each in self.happenings:
            yield each.at
        for version in self.versions.values():
            if isinstance(version, Lines) and version.times:
                yield from (min(version.times), max(version.times))
        if self.state is not None:
            yield self.state.opened
        for held in self.night.files:
            if held.kind not in LINES:
                yield from_ns(held.stamp_ns)


def _happenings(history: History) -> Iterator[Happening]:
    for held in history.night.files:
        version, written = history.versions[held.path], from_ns(held.stamp_ns)
        match version:
            case StateThen():
                yield Happening(version.opened)
                yield from map(Happening, version.readings)
            case Ledger():
                for entries in version.attempts.values():
                    for moment, entry in entries:
                        yield Happening(moment)
                        if (abandoned := moment_of(entry.get("abandoned"))) is not None:
                            yield Happening(abandoned, is_incident=True)
            case Lines() if held.kind is Kind.JOURNAL:
                yield from _of_journal(held)
            case Whole() if held.kind in _HAPPENS:
                yield Happening(written, is_incident=held.kind is Kind.FAILURE)
            case Whole() if held.kind in (Kind.INTENT, Kind.READ):
                yield Happening(version.since)


def _of_journal(held: HeldFile) -> Iterator[Happening]:
    for line in (held.data or b"").split(b"\n"):
        value = object_in(line)
        if value is not None and (moment := event_time(value)) is not None:
            yield Happening(moment, value.get("severity") in _INCIDENTS)


# ---- versions


def _versions(night: Night, known: Mapping[str, Version]) -> dict[str, Version]:
    found: dict[str, Version] = {}
    units = Units(next((held.data or b"" for held in night.files if held.kind is Kind.UNITS), b""))
    launches = units.launched
    batches = dict(launches)
    later = []
    for held in night.files:
        written = from_ns(held.stamp_ns)
        if held.path == night.state or held.kind in (Kind.STATE, Kind.SPEC):
            later.append(held)
            continue
        version = known.get(held.path) or _version(held, written)
        found[held.path] = version
        if isinstance(version, Ledger) and version.launched is not None:
            study = PurePosixPath(held.path).name.removesuffix(SPAWN_SUFFIX)
            launches[study] = min(version.launched, launches.get(study, version.launched))
        if isinstance(version, Whole) and held.kind is Kind.READ:
            batches[PurePosixPath(held.path).name.removesuffix(".read.json")] = version.since
        if isinstance(version, Whole) and (named := _INTENT.fullmatch(held.path)):
            batches |= dict.fromkeys(_batch_names(*named.groups()), version.since)
    opened: dict[str, datetime] = {}
    for held in sorted(later, key=lambda held: held.kind is Kind.SPEC):
        written = from_ns(held.stamp_ns)
        value = object_in(held.data)
        if value is None:
            found[held.path] = Whole(held.data, written)
        elif held.kind is Kind.SPEC:
            found[held.path] = Whole(held.data, _registered(held, value, written, launches, opened))
        else:
            state = found[held.path] = StateThen(value, written, launches, batches, units)
            rounds = value.get("rounds")
            opened |= {
                name: state.opened for name in (rounds if isinstance(rounds, list) else ()) if isinstance(name, str)
            }
    return found


def _version(held: HeldFile, written: datetime) -> Version:
    data = held.data or b""
    match held.kind:
        case Kind.JOURNAL | Kind.UNITS:
            return Lines(data, written, event_time)
        case Kind.METRICS:
            return Lines(data, written, step_time)
        case Kind.LEDGER:
            return ledger(data, written)
        case Kind.INTENT | Kind.READ:
            value = object_in(data) or {}
            launched = moment_of(value.get("launched_at" if held.kind is Kind.INTENT else "at"))
            return Whole(data, launched or written)
    return Whole(None if held.kind in WITHOUT_CONTENT else data, written)


def _batch_names(number: str, arm: str) -> Iterator[str]:
    """As the state file may call the batch: `r7/<arm>`, or `r7/<arm>/<stage>`, whose parts a file name joins."""
    yield f"{number}/{arm}"
    for cut in (index for index, sign in enumerate(arm) if sign == "-"):
        yield f"{number}/{arm[:cut]}/{arm[cut + 1 :]}"


def _registered(
    held: HeldFile, value: dict[str, Any], written: datetime, launches: Mapping[str, datetime],
    opened: Mapping[str, datetime],
) -> datetime:  # fmt: skip
    """Since when the spec was there: nothing of a round is started before it is registered, nor changed after."""
    studies = value.get("studies")
    launched = [launches.get(name) for name in studies] if isinstance(studies, dict) else []
    text = value.get("registered")
    day = None
    if isinstance(text, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        try:
            # Some time of that day: at its end it was there.
            day = datetime.combine(datetime.fromisoformat(text), time.max, UTC)
        except ValueError:
            day = None
    return earliest(written, day, opened.get(held.path), *launched) or written
