"""What must hold after every step of a simulated night, whoever made the step and whatever happened to it."""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

import orjson
from fake_compute import Call, FakeCompute
from memory_disk import MemoryDisk
from places import CONTROL, JOURNAL, LEDGER, RUNS, STATE, TEST

from kev.budget import MAX_READING_AGE
from kev.ledger.book import Ledger
from kev.ledger.units import Unit, Units

CLOCKS_S = 91.0
"""By how much the clocks of two processes differ at most."""


class Broken(AssertionError):
    """An invariant does not hold."""


@dataclass
class Invariants:
    """Looks at the world from outside: at the bytes on its disk and at what really runs and really costs."""

    disk: MemoryDisk
    compute: FakeCompute
    ceiling: Decimal
    """Authorization less reserve."""
    damaged: dict[str, bytes] = field(default_factory=dict)
    """Files that something else spoiled, as they are now: nobody may write over them."""
    units: Units = field(default_factory=Units)
    promised: float = 0.0
    """The most that attempts can cost which were admitted and whose call does not exist yet."""
    mode: str = "running"
    """Of the session, before the step."""
    _ledger: Ledger = field(default_factory=lambda: Ledger(RUNS))
    _seen: dict[str, bytes] = field(default_factory=dict)
    _whole: bytes = b""
    _readings: list[object] = field(default_factory=list)
    _settled: set[str] = field(default_factory=set)
    _attempts: dict[str, int] = field(default_factory=dict)

    def check(self) -> None:
        """Raises Broken."""
        files = self.disk.files
        if self._is_new(STATE) and STATE not in self.damaged:
            self._check_state(files[STATE])
        if self._is_new(LEDGER) and LEDGER not in self.damaged:
            self._check_ledger(files[LEDGER])
        if self._is_new(JOURNAL, keep=True):
            raise Broken("the journal lost what was in it")
        for name, data in self.damaged.items():
            _hold(files.get(name) == data, f"{name} is damaged and was written over")
        self._check_calls()
        self.mode = self._read_mode()

    def began(self, call: Call) -> None:
        """A call begins: what it is for must have been on disk before."""
        self._count_promised()
        if call.duplicate or call.run_id == "stray" or LEDGER in self.damaged:
            return
        unit_id, _, number = call.run_id.rpartition("#")
        unit = self.units.by_id.get(unit_id)
        _hold(unit is not None, f"{call.run_id} began and was never wanted")
        live = unit.live if unit is not None else None
        _hold(live is not None, f"{call.run_id} began without an intent")
        nonce = call.payload.get("nonce")
        _hold(nonce in (None, live.nonce if live else None), f"{call.run_id} began with another attempt's nonce")
        _hold(int(number) == len(unit.counted if unit else ()), f"{call.run_id} began under another number")
        _hold(self.compute.spawned.count(call.run_id) == 1, f"{call.run_id} began twice")
        if "prefix" in call.payload:
            made = self.compute.committed()
            _hold(all(f"{trial}/result.json" in made for trial in ("r7/00-trial-0", "r7-delta/00-trial-0")),
                  "a blend is made of what is not there")  # fmt: skip
        if unit is not None and unit.order.once == TEST:
            readers = {each.run_id for each in self.compute.calls.values()
                       if each.payload.get("suite") == "TEST" and not each.duplicate}  # fmt: skip
            _hold(len(readers) == 1, f"a test is read twice: {readers}")

    def _is_new(self, name: str, *, keep: bool = False) -> bool:
        """Whether a file changed since the last look; with `keep`, whether it lost anything."""
        data, old = self.disk.files.get(name, b""), self._seen.get(name, b"")
        if data is old:
            return False
        self._seen[name] = data
        return not data.startswith(old) if keep else True

    def _check_ledger(self, data: bytes) -> None:
        _hold(data.startswith(self._whole), "the ledger lost a line that was acknowledged")
        self._whole = data[: data.rfind(b"\n") + 1]
        if not self._whole:
            return
        self.units = self._ledger.read()
        active = {call.run_id.rpartition("#")[0] for call in self.compute.active() if not call.duplicate}
        for unit in self.units.by_id.values():
            self._check_unit(unit, active)
        self._count_promised()

    def _check_unit(self, unit: Unit, active: set[str]) -> None:
        counted = unit.counted
        _hold(sum(attempt.live for attempt in unit.attempts) <= 1, f"{unit.id}: two attempts may be running")
        _hold(len(counted) <= unit.order.attempts, f"{unit.id}: had {len(counted)} attempts")
        if len(unit.attempts) > self._attempts.get(unit.id, 0):
            self._attempts[unit.id] = len(unit.attempts)
            spoilt = [name for name in self.damaged if not name.endswith(".watch.json")]
            _hold(not spoilt, f"{unit.id}: started while {', '.join(spoilt)} cannot be believed")
            age = self._age_of_meter(unit.attempts[-1].at)
            _hold(age <= MAX_READING_AGE + CLOCKS_S, f"{unit.id}: started on a reading that is {age:.0f} s old")
            _hold(self.mode == "running" or (self.mode == "soft" and len(counted) > 1),
                  f"{unit.id}: started under a {self.mode} pause")  # fmt: skip
        for attempt in unit.attempts:
            call = self.compute.calls.get(attempt.call or "")
            nonce = None if call is None else call.payload.get("nonce")
            _hold(
                nonce in (None, attempt.nonce),
                f"{unit.id}: {attempt.call} is on record for another attempt than its own",
            )
        if unit.settled and unit.id not in self._settled:
            self._settled.add(unit.id)
            _hold(unit.id not in active, f"{unit.id}: is called {unit.outcome} and runs")
        elif not unit.settled:
            self._settled.discard(unit.id)

    def _age_of_meter(self, at: float) -> float:
        """How old the newest reading is at a moment, both as the processes of this machine have them."""
        newest: Any = self._readings[-1] if self._readings else None
        return at - datetime.fromisoformat(newest["at"]).timestamp() if newest else float("inf")

    def _check_state(self, data: bytes) -> None:
        readings = orjson.loads(data).get("readings", [])
        _hold(readings[: len(self._readings)] == self._readings, "the session lost a reading of the meter")
        self._readings = readings

    def _check_calls(self) -> None:
        now, admitted, trials = self.compute.clock.time, self.promised, []
        for call in self.compute.calls.values():
            if call.duplicate:
                continue  # it finds the claim taken and is gone within a second; the bill shows it
            if now >= call.stops:
                admitted += call.cost(now)
                continue
            admitted += call.worst
            if "study" in call.payload:
                trials.append((call.payload["study"], work_of(call.payload)))
        _hold(admitted < float(self.ceiling), f"${admitted:.4f} is admitted, out of ${self.ceiling}")
        _hold(len(trials) == len(set(trials)), f"two live attempts of one trial or blend: {trials}")

    def _count_promised(self) -> None:
        self.promised = 0.0
        for unit in self.units.open():
            left, live = unit.attempts_left, unit.live
            if live is not None and f"{unit.id}#{len(unit.counted)}" not in self.compute.spawned:
                left += 1
            self.promised += float(unit.order.attempt_usd) * left

    def _read_mode(self) -> str:
        data = self.disk.files.get(CONTROL)
        if data is None:
            return "running"
        try:
            return str(orjson.loads(data)["mode"])
        except (orjson.JSONDecodeError, KeyError):
            return "soft"


def work_of(payload: dict[str, Any]) -> object:
    """What of its study a call is about: a trial, whether it trains or only scores, or a blend."""
    if "directory" in payload:
        return int(payload["directory"].rpartition("-")[2])
    return payload.get("index", payload.get("prefix"))


def _hold(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Broken(otherwise)
