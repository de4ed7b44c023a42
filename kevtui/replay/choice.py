"""Which files of a night are those of its target: what a colleague's session in the same folder did stays at home."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from kev import files
from kev.session import events_path
from kevtui.observe.events_view import ROUNDS_FILE
from kevtui.observe.scope import is_of_round
from kevtui.observe.sources import WATCH_SUFFIX, WATCHER_SUFFIX
from kevtui.observe.target import SPAWN_SUFFIX
from kevtui.replay.history import History
from kevtui.replay.kinds import RUNS, Kind
from kevtui.replay.night import HeldFile
from kevtui.replay.past import moment
from kevtui.replay.versions import object_in

_NUMBER = re.compile(r"runs/r(\d+)-|experiments/rounds/r0*(\d+)\.json")
_OF_STUDIES = frozenset((Kind.METRICS, Kind.LOG, Kind.RESULT, Kind.FAILURE, Kind.RESUME, Kind.LEASE))
_OF_ROUNDS = frozenset((Kind.INTENT, Kind.READ_LOG, Kind.READOUT, Kind.VERDICT))
_READ_SUFFIX = ".read.json"


def own(history: History) -> History:
    """`history` without the files that no screen of its target shows at any moment."""
    if history.is_empty:
        return history
    choice = _Choice(history)
    taken = [held for held in history.night.files if choice.takes(held)]
    files = tuple(map(choice.cut, taken))
    known = {held.path: history.versions[held.path] for held, was in zip(files, taken, strict=True) if held is was}
    return History(replace(history.night, files=files), known)


class _Choice:
    def __init__(self, history: History) -> None:
        night = self._night = history.night
        self._asked: set[str] = set()
        snapshot = moment(history, history.ends_at, asked=self._asked)
        self._studies = {study.name for study in snapshot.studies}
        state = object_in(next((held.data for held in night.files if held.path == night.state), None)) or {}
        reads = state.get("reads")
        self._reads = set(reads) if isinstance(reads, dict) else set()
        self._specs = {held.path for held in night.files if held.kind is Kind.SPEC and self._is_spec_of_it(held)}
        found = {_number(path) for path in self._specs} | {night.target.round}
        self._rounds = {number for number in found if number is not None}

    def takes(self, held: HeldFile) -> bool:
        path = PurePosixPath(held.path)
        night = self._night
        match held.kind:
            case Kind.STATE:
                return held.path == night.state
            case Kind.SPEC:
                return held.path in self._specs
            case Kind.JOURNAL:
                own = events_path(night.target.root / night.state).name if night.state else None
                return path.name in (own, ROUNDS_FILE)
            case Kind.WATCHER:
                return path.name == f"{night.target.session}{WATCHER_SUFFIX}"
            case Kind.LEDGER:
                return path.name.removesuffix(SPAWN_SUFFIX) in self._studies
            case Kind.WATCH:
                return path.name.removesuffix(WATCH_SUFFIX) in self._studies
            case Kind.READ:
                return self._is_read_of_it(path.name.removesuffix(_READ_SUFFIX))
            case Kind.USAGE:
                # Without a round the screen adds up those of all reads.
                return not self._rounds or self._is_read_of_it(path.parent.name)
            case Kind.ROWS:
                return str(path.parent) in self._asked
            case Kind.PRESENT:
                return path.parts[1] in self._studies or str(path.parent) in self._asked or self._is_locked_of_it(path)
            case Kind.UNITS:
                return True
        if held.kind in _OF_STUDIES:
            return path.parts[1] in self._studies
        assert held.kind in _OF_ROUNDS, held.kind
        return _number(held.path) in self._rounds

    def cut(self, held: HeldFile) -> HeldFile:
        """`held` without the lines about others' work, where one file has all of it."""
        if held.kind is not Kind.UNITS or held.data is None:
            return held
        return replace(held, data=b"".join(map(files.dump_json_line, self._lines(held.data))))

    def _lines(self, data: bytes) -> Iterator[dict[str, Any]]:
        units: set[str] = set()
        for line in data.split(b"\n"):
            value = object_in(line) or {}
            orders = value.get("orders")
            if isinstance(orders, dict):
                orders = {unit: order for unit, order in orders.items() if self._is_order_of_it(order)}
                units |= orders.keys()
                if orders:
                    yield value | {"orders": orders}
            elif value.get("unit") in units:
                yield value

    def _is_spec_of_it(self, held: HeldFile) -> bool:
        studies = (object_in(held.data) or {}).get("studies")
        return held.path == self._night.spec or (isinstance(studies, dict) and bool(studies.keys() & self._studies))

    def _is_order_of_it(self, order: Any) -> bool:
        name = order.get("name") if isinstance(order, dict) else None
        return isinstance(name, str) and (name in self._studies or self._is_read_of_it(name))

    def _is_read_of_it(self, name: str) -> bool:
        return (
            name in self._reads
            or f"{RUNS}/{name}" in self._asked
            or any(is_of_round(number, name) for number in self._rounds)
        )

    def _is_locked_of_it(self, path: PurePosixPath) -> bool:
        return path.parts[1] == "locked" and self._is_read_of_it(path.parts[2])


def _number(path: str) -> int | None:
    match = _NUMBER.match(path)
    return int(match[1] or match[2]) if match else None
