"""Several registered rounds, one after the other, under one authorization, with nobody there.

A round is launched, watched to its read-out, and put on record as a line of `runs/autoresearch-sessions.jsonl`. Before
each, its trials and its reads together are held against the sum; a round that would pass it ends the session there. A
round that cannot be launched for half an hour is recorded as blocked, and the next one is begun. Nothing is ever
confirmed: the commands for it are printed, and a person runs them.

The same command again goes on where it was: what was launched is not launched twice, and a round with a line is over.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from kev import files
from kev.compute.errors import RemoteError
from kev.errors import LockHeld, NotFound, Refused
from kev.gate import Gate
from kev.records.autoresearch import SessionRound
from kev.records.readout import read_readout
from kev.rounds.blend_orders import registered_orders
from kev.rounds.engine import STAGGER_S, Engine
from kev.rounds.launch import check_launchable, launch
from kev.rounds.places import readout_path
from kev.rounds.read_orders import arm_reads, has_landed
from kev.rounds.specs import LoadedSpec
from kev.rounds.trial_orders import Wanted, trial_orders
from kev.rounds.watching.loop import INTERVAL_S, Finish, watch
from kev.rounds.watching.passes import BLOCKED_S
from kev.session.state import change_locked_state
from kev.session.view import read_session
from kev.session_report.steps import confirmation_commands

RECORD = "autoresearch-sessions.jsonl"
RETRY_S = 60.0
"""Between tries to launch a round that could not be launched."""


@dataclass
class Outcome:
    """What became of the rounds."""

    done: list[int] = field(default_factory=list)
    blocked: dict[int, str] = field(default_factory=dict)
    """Rounds that could not be launched, and why."""
    stopped: str | None = None
    """Why the session ended before its last round."""
    to_confirm: list[str] = field(default_factory=list)
    """Commands for a person."""

    def to_json(self) -> dict[str, Any]:
        return {"done": self.done, "blocked": {str(number): why for number, why in self.blocked.items()},
                "stopped": self.stopped, "to_confirm": self.to_confirm}  # fmt: skip


@dataclass
class Rounds:
    """The rounds of one session."""

    engine_of: Callable[[LoadedSpec], AbstractAsyncContextManager[Engine]]
    """Opens the engine of a round, and closes it."""
    finish: Finish
    say: Callable[[str], None] = print
    stagger_s: float = STAGGER_S
    interval_s: float = INTERVAL_S

    async def run(self, loaded: Sequence[LoadedSpec]) -> Outcome:
        """Run every round that the authorization has room for. Raises KevError for what no waiting mends."""
        outcome = Outcome()
        for each in loaded:
            async with self.engine_of(each) as engine:
                going_on = await self._round(engine, each, outcome)
            if not going_on:
                break
        for command in outcome.to_confirm:
            self.say(command)
        return outcome

    async def _round(self, engine: Engine, loaded: LoadedSpec, outcome: Outcome) -> bool:
        """One round. Returns whether the next may be begun."""
        number, gate = loaded.spec.round, engine.gate
        if number in recorded_rounds(engine.runs, gate.session):
            self.say(f"round {number}: is on record in runs/{RECORD}")
            outcome.done.append(number)
            return True
        try:
            check_launchable(loaded)
        except Refused as refusal:
            return self._stop(gate, number, str(refusal), outcome)
        before = await self._admit(engine, loaded, outcome)
        if before is None:
            return outcome.stopped is None
        try:
            await watch(engine, loaded, self.finish, interval_s=self.interval_s, stagger_s=self.stagger_s)
        except Refused as refusal:
            return self._stop(gate, number, str(refusal), outcome)
        await record_round(engine, loaded, before)
        outcome.done.append(number)
        outcome.to_confirm += confirmations(loaded, gate.session)
        return True

    async def _admit(self, engine: Engine, loaded: LoadedSpec, outcome: Outcome) -> Decimal | None:
        """Hold the round against the sum and launch it. Returns what was spent before; None if it was not launched."""
        gate, number = engine.gate, loaded.spec.round
        started, told, before = engine.clock.monotonic(), "", None
        while True:
            try:
                total = await gate.preview(f"round {number}", wanted_of(engine, loaded))
                if before is None:  # a later sum has what was started of the round meanwhile
                    before = total.account.spent
                if total.bound:
                    try:
                        total.check()
                    except Refused as refusal:
                        for line in total.lines():
                            self.say(line)
                        self._stop(gate, number, f"{refusal}; no further round is launched", outcome)
                        return None
                await launch(engine, loaded, stagger_s=self.stagger_s)
                return before or Decimal(0)
            except (RemoteError, Refused, LockHeld) as error:
                why = str(error)
            if why != told:
                self.say(f"round {number}: {why}")
                told = why
            if engine.clock.monotonic() - started >= BLOCKED_S:
                outcome.blocked[number] = why
                gate.note("blocked", why, subject=f"round {number}", severity="warning")
                if has_begun(engine, number):
                    self.say(f"round {number}: could not be launched whole; what of it was started is watched")
                    return gate_spent(gate) if before is None else before
                self.say(f"round {number}: blocked for {BLOCKED_S / 60:.0f} minutes, and skipped")
                return None
            await gate.sleep(RETRY_S)

    def _stop(self, gate: Gate, number: int, why: str, outcome: Outcome) -> bool:
        outcome.stopped = f"round {number}: {why}"
        gate.note("stopped", why, subject=f"round {number}", severity="warning")
        self.say(outcome.stopped)
        return False


def has_begun(engine: Engine, number: int) -> bool:
    """Whether anything of a round was started. Raises DamagedFile."""
    return any(unit.counted for unit in engine.ledger.read().by_id.values() if unit.order.round == number)


def gate_spent(gate: Gate) -> Decimal:
    """What the session's last reading says was spent."""
    spent = read_session(gate.state).spent
    return spent.usd if spent is not None else Decimal(0)


def wanted_of(engine: Engine, loaded: LoadedSpec) -> list[Wanted]:
    """Everything that a round costs until its read-out: its trials, its blend, and the reads that are not here yet.

    Raises what building its orders raises.
    """
    wanted = dict(trial_orders(loaded.spec, loaded.root, engine.provenance))
    wanted |= registered_orders(loaded.spec, engine.provenance)
    for arm in loaded.spec.arms:
        for unit_id, order in arm_reads(loaded.spec, loaded.root, arm, engine.provenance):
            if not has_landed(loaded.root, order.local):
                wanted.setdefault(unit_id, order)
    return list(wanted.items())


async def record_round(engine: Engine, loaded: LoadedSpec, spent_before: Decimal) -> None:
    """Append the line of a finished round, and put its candidates into the session's state."""
    spec, gate = loaded.spec, engine.gate
    candidates = candidates_of(loaded)
    line = SessionRound.model_validate({
        "round": spec.round,
        "spec": _relative(loaded),
        "spend_before": round(spent_before, 2),
        "budgets": sum((study.budget for study in spec.studies.values()), Decimal(0)),
        "candidates": candidates,
        "at": f"{engine.clock.now():%Y-%m-%dT%H:%MZ}",
        "session": gate.session,
    })  # fmt: skip
    files.append(engine.runs / RECORD, files.dump_json_line(line.to_json()))
    chosen = {size: {"arm": arm, "round": spec.round} for size, arm in candidates.items() if arm is not None}
    async with gate.locked():
        change_locked_state(
            gate.state, lambda old: old.model_copy(update={"candidates": {**old.candidates, **chosen}})
        )  # fmt: skip


def recorded_rounds(runs: Path, session: str | None) -> set[int]:
    """The rounds of a session that have a line. Raises DamagedFile."""
    try:
        values = files.read_json_lines(runs / RECORD)
    except NotFound:
        return set()
    lines = [value for value in values if isinstance(value, dict) and value.get("session") == session]
    return {line["round"] for line in lines if isinstance(line.get("round"), int)}


def candidates_of(loaded: LoadedSpec) -> dict[str, str | None]:
    """Size to the arm that the read-out chose. Raises DamagedFile; a round without a read-out has none."""
    try:
        return dict(read_readout(readout_path(loaded.spec, loaded.root)).readout.candidates)
    except NotFound:
        return {}


def confirmations(loaded: LoadedSpec, session: str | None) -> list[str]:
    """The two commands of each candidate and stage. Raises DamagedFile."""
    return [command for arm in candidates_of(loaded).values() if arm is not None for stage in loaded.spec.confirm
            for command in confirmation_commands(_relative(loaded), stage, arm, session)]  # fmt: skip


def _relative(loaded: LoadedSpec) -> str:
    path, root = loaded.path.absolute(), loaded.root.absolute()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
