"""Faults to be built into the engine on purpose: a simulation that lives with one of them proves nothing."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from memory_disk import MemoryDisk

from kev import budget, commitments, gate, meter
from kev.compute.errors import RemoteError
from kev.errors import DamagedFile
from kev.ledger import book, units, views
from kev.records.base import write_record
from kev.rounds import cancel, read_orders, resume
from kev.rounds.watching import asking, blends, decide, pending, rescores, sweep
from kev.rounds.watching.passes import Watch

Patch = pytest.MonkeyPatch
Mutation = Callable[[Patch], None]


def reach_the_limit(patch: Patch) -> None:
    """`>` where the rule says `>=`."""
    real = budget.Account.check_launch

    def check(self: budget.Account, what: str, bound: Decimal, **options: Any) -> None:
        real(self, what, bound - Decimal("0.000001"), **options)

    patch.setattr(budget.Account, "check_launch", check)


def forget_the_reserve(patch: Patch) -> None:
    real = budget.Account.check_launch
    patch.setattr(budget.Account, "check_launch", lambda self, *args, **options: real(
        replace(self, reserve=Decimal(0)), *args, **options))  # fmt: skip


def forget_reads(patch: Patch) -> None:
    """Reads do not count as committed."""
    real = units.Unit.rest
    patch.setattr(units.Unit, "rest", lambda self: Decimal(0) if self.order.kind == "read" else real(self))


def forget_later_attempts(patch: Patch) -> None:
    patch.setattr(units.Unit, "rest", lambda self: self.order.attempt_usd if self.live is not None else Decimal(0))


def forget_what_the_meter_lacks(patch: Patch) -> None:
    """What ended and may not be metered yet is taken for free."""
    patch.setattr(units.Unit, "unseen", lambda _self, _at: Decimal(0))


def forget_the_cycle_before(patch: Patch) -> None:
    """A billing cycle that ended takes what was spent in it along."""

    def spent(baseline: Decimal, metered: list[Decimal]) -> budget.Spent | None:
        return budget.Spent(max(Decimal(0), metered[-1] - baseline)) if metered else None

    patch.setattr(budget, "spent", spent)


def trust_an_old_reading(patch: Patch) -> None:
    """The first reading of the meter is the last that is asked for."""
    real = meter.read_meter

    async def read_meter(*args: Any, young_s: float = 0.0) -> meter.Meter:
        return await real(*args, young_s=1e9)

    patch.setattr(gate, "read_meter", read_meter)
    patch.setattr(commitments, "MAX_READING_AGE", 1e9)


def skip_the_sessions_lock(patch: Patch) -> None:
    @asynccontextmanager
    async def locked(_self: gate.Gate) -> AsyncIterator[None]:
        yield

    patch.setattr(gate.Gate, "locked", locked)


def spawn_outside_of_the_lock(patch: Patch) -> None:
    """The lock is let go between the intent and the spawn."""

    @asynccontextmanager
    async def locked(self: gate.Gate) -> AsyncIterator[None]:
        async with real(self):
            pass
        yield

    real = gate.Gate.locked
    patch.setattr(gate.Gate, "locked", locked)


def write_the_intent_after_the_spawn(patch: Patch) -> None:
    real_add, real_spawn = book.Writer.add, gate.Gate._spawn
    held: list[Any] = []

    def add(self: book.Writer, *events: Any) -> None:
        if events[0].event == "intent":
            held.extend(events)
        else:
            real_add(self, *held, *events)
            held.clear()

    async def spawn(self: gate.Gate, *args: Any) -> Any:
        return await real_spawn(self, *args)

    patch.setattr(book.Writer, "add", add)
    patch.setattr(gate.Gate, "_spawn", spawn)


def take_a_lost_reply_for_a_refusal(patch: Patch) -> None:
    """A spawn that may have happened is taken for one that did not."""

    async def spawn(self: gate.Gate, *args: Any) -> Any:
        compute = self.compute
        real = compute.spawn

        async def lose(*spawned: Any, **options: Any) -> Any:
            try:
                return await real(*spawned, **options)
            except RemoteError as error:
                error.may_have_happened = False
                raise

        self.compute = type("Losing", (), {"spawn": staticmethod(lose)})()
        try:
            return await real_spawn(self, *args)
        finally:
            self.compute = compute

    real_spawn = gate.Gate._spawn
    patch.setattr(gate.Gate, "_spawn", spawn)


def adopt_without_the_nonce(patch: Patch) -> None:
    """Whatever holds the trial's lease is taken for the attempt whose spawn was not answered."""
    real = pending.settle_pending

    def settle(unit: Any, attempt: Any, *, lease: Any, **known: Any) -> Any:
        if lease is not None and lease.call_id:
            return pending.Adopt(lease.call_id, "it holds the lease")
        return real(unit, attempt, lease=lease, **known)

    patch.setattr(asking, "settle_pending", settle)


def give_up_at_once(patch: Patch) -> None:
    """An attempt that was not answered is given up without waiting for it to show."""
    patch.setattr(pending, "ABSENT_S", 0.0)


def give_up_without_a_list(patch: Patch) -> None:
    real = pending.settle_pending
    patch.setattr(asking, "settle_pending", lambda *unit, **known: real(*unit, **known | {"unknown": ()}))


def look_back_for_an_hour(patch: Patch) -> None:
    """The clock of this machine is taken to be ahead of the provider's by an hour at most."""
    patch.setattr(sweep, "LOOK_BACK", timedelta(hours=1))


def believe_that_what_is_unknown_was_cancelled(patch: Patch) -> None:
    """A call that the provider does not know just now is no more, if it was asked to stop."""

    class Phases:
        MISSING = None

    patch.setattr(cancel, "Phase", Phases)


def take_silence_for_failure(patch: Patch) -> None:
    """A call that cannot be asked about has failed."""
    real = asking.not_heard

    def not_heard(watch: Watch, unit_id: str, error: RemoteError) -> None:
        real(watch, unit_id, error)
        unit = watch.engine.ledger.read().by_id[unit_id]
        if unit.live is not None and unit.live.call is not None:
            watch.end(unit, unit.live, decide.Ended("failed", str(error)))

    patch.setattr(asking, "not_heard", not_heard)


def take_unknown_for_ended(patch: Patch) -> None:
    """A call that the provider does not know just now has ended."""
    patch.setattr(decide, "QUEUE_S", -1e9)


def start_what_runs(patch: Patch) -> None:
    """Whether a unit has a live attempt is not looked at."""
    patch.setattr(units.Unit, "live", property(lambda _self: None))


def allow_any_number_of_attempts(patch: Patch) -> None:
    patch.setattr(units.Unit, "attempts_left", property(lambda _self: 1))


def read_a_test_again(patch: Patch) -> None:
    patch.setattr(gate.Gate, "_check_names", lambda *_args: None)
    patch.setattr(gate.Gate, "_startable", lambda _self, known, unit_id: known.by_id[unit_id])


def settle_what_was_only_asked_to_stop(patch: Patch) -> None:
    """A cancelled unit is over as soon as it was asked to be."""
    real = decide.end_of
    patch.setattr(decide, "end_of", lambda unit, attempt, state, now: (
        decide.Ended("cancelled") if unit.cancelled_by else real(unit, attempt, state, now)))  # fmt: skip


def ignore_a_pause(patch: Patch) -> None:
    patch.setattr(gate.control, "check_may_start", lambda *_args, **_options: None)


def keep_a_torn_line(patch: Patch) -> None:
    """The next writer of the ledger leaves half a line where it is."""
    real = MemoryDisk.append
    patch.setattr(MemoryDisk, "append", lambda self, path, data, **_options: real(self, path, data))


def leave_the_call_unwritten(patch: Patch) -> None:
    real = book.Writer.add

    def add(self: book.Writer, *events: Any) -> None:
        if events[0].event != "call" or events[0].text:
            real(self, *events)

    patch.setattr(book.Writer, "add", add)


def take_success_for_a_result(patch: Patch) -> None:
    """A trial whose call succeeded is done, whether its result came home or not."""
    real = decide.next_step

    def step(unit: units.Unit, **seen: Any) -> Any:
        if unit.current is not None and unit.current.outcome == "succeeded":
            return decide.Settle("done")
        return real(unit, **seen)

    patch.setattr(decide, "next_step", step)


def keep_the_newest_reading_only(patch: Patch) -> None:
    real = meter.with_reading

    def with_reading(state: Any, *args: Any, **options: Any) -> Any:
        new = real(state, *args, **options)
        return new.model_copy(update={"readings": new.readings[-1:]})

    patch.setattr(meter, "with_reading", with_reading)


def write_over_damage(patch: Patch) -> None:
    """A record that cannot be read is replaced by a new one."""
    patch.setattr(views, "replace_record", write_record)


def overlook_damage(patch: Patch) -> None:
    """A spawn record that cannot be read stands for nothing."""

    def records(runs: Path) -> Iterator[Any]:
        with suppress(DamagedFile):
            yield from real(runs)

    real = commitments.spawn_records
    patch.setattr(commitments, "spawn_records", records)
    patch.setattr(gate, "spawn_records", records)


def take_an_empty_ledger_for_a_new_one(patch: Patch) -> None:
    real = book.Ledger._fold

    def fold(self: book.Ledger) -> units.Units:
        try:
            return real(self)
        except book.DamagedFile:
            self._forget()
            return self._units

    patch.setattr(book.Ledger, "_fold", fold)
    patch.setattr(MemoryDisk, "create_exclusive", MemoryDisk.write_atomic)


def resume_without_the_gate(patch: Patch) -> None:
    """A continuation by hand starts whatever the ledger says of the last attempt."""
    patch.setattr(resume, "check_continuable", lambda _unit: None)
    patch.setattr(gate.Gate, "_startable", lambda _self, known, unit_id: known.by_id[unit_id])


def start_beside_others(patch: Patch) -> None:
    """The gate does not look for another unit that works in the same place: alone, what asks it still waits."""
    patch.setattr(gate, "check_alone", lambda *_: None)


def mix_while_it_is_mixed(patch: Patch) -> None:
    """The retry of a blend does not wait for the end of the first try."""
    real = blends.next_try

    def next_try(known: units.Units, unit_id: str, order: Any) -> Any:
        again = read_orders.retry_id(unit_id)
        if unit_id in known.by_id and known.by_id[unit_id].counted and again not in known.by_id:
            return again, read_orders.retry_of(order, 1)
        return real(known, unit_id, order)

    patch.setattr(blends, "next_try", next_try)
    start_beside_others(patch)


def mix_what_is_not_there_yet(patch: Patch) -> None:
    """A blend is made as soon as the round is launched."""

    async def is_ready(*_: Any) -> bool:
        return True

    patch.setattr(blends.Blends, "_is_ready", is_ready)


def score_what_may_run(patch: Patch) -> None:
    """A trial is scored again as soon as it is begun."""

    def may_be_scored(_self: Any, trial: units.Unit) -> bool:
        return trial.order.kind == "trial" and bool(trial.counted)

    async def is_trained(_self: Any, _trial: units.Unit) -> bool:
        return True

    patch.setattr(rescores.Rescores, "_may_be_scored", may_be_scored)
    patch.setattr(rescores.Rescores, "_is_trained", is_trained)
    start_beside_others(patch)


@contextmanager
def built_in(mutation: Mutation, patch: Patch) -> Iterator[None]:
    """The engine with one fault."""
    with patch.context() as context:
        mutation(context)
        yield


MUTATIONS: list[Mutation] = [
    reach_the_limit, forget_the_reserve, forget_reads, forget_later_attempts, forget_what_the_meter_lacks,
    forget_the_cycle_before, skip_the_sessions_lock,
    spawn_outside_of_the_lock, write_the_intent_after_the_spawn, take_a_lost_reply_for_a_refusal,
    give_up_at_once, give_up_without_a_list, look_back_for_an_hour, take_silence_for_failure, take_unknown_for_ended,
    start_what_runs, allow_any_number_of_attempts, read_a_test_again, settle_what_was_only_asked_to_stop,
    ignore_a_pause, keep_a_torn_line, leave_the_call_unwritten, take_success_for_a_result,
    keep_the_newest_reading_only, write_over_damage, overlook_damage, take_an_empty_ledger_for_a_new_one,
    resume_without_the_gate, trust_an_old_reading, mix_while_it_is_mixed, mix_what_is_not_there_yet,
    score_what_may_run,
]  # fmt: skip
RARE: list[Mutation] = [
    adopt_without_the_nonce, believe_that_what_is_unknown_was_cancelled,
]  # fmt: skip
"""What takes more nights than there are in CI."""
