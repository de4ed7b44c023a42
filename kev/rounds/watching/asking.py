"""Asking the provider: how calls stand, what became of a spawn, what else is alive, how far trials are.

What is learned goes on record through the Watch. A provider that does not answer changes nothing.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kev.compute.errors import RemoteError, Throttled
from kev.compute.lease_watch import LeaseWatch
from kev.compute.leases import FILE_NAME
from kev.compute.protocol import CallRef, CallState, Phase
from kev.errors import KevError, LockHeld
from kev.ledger.book import holding
from kev.ledger.units import Attempt, Unit
from kev.records.base import read_record
from kev.records.lease import Lease
from kev.rounds.resume import look_at_lease
from kev.rounds.watching import decide, progress
from kev.rounds.watching.follow import LEASES
from kev.rounds.watching.pending import Abandon, Adopt, settle_pending
from kev.rounds.watching.sweep import FUNCTIONS, orphans, unknown_calls
from kev.session import lock_path

if TYPE_CHECKING:
    from kev.rounds.watching.passes import Watch

SWEEP_S = 900.0
PROGRESS_S = 600.0
LOG_LINES = 400


@dataclass
class Silence:
    """That a call could not be asked about: since when, how often in a row, and whether it was only throttled."""

    since: float
    times: int = 0
    throttled: bool = False
    text: str = ""


async def poll(watch: "Watch") -> None:
    """Ask about every call that may be running, and put on record what ended."""
    asked = [(unit, unit.live) for unit in watch.units() if unit.live is not None and unit.live.call is not None]
    answers = await watch.engine.gather([_ask(watch, unit, attempt) for unit, attempt in asked if attempt is not None])
    for (unit, attempt), state in zip(asked, answers, strict=True):
        if state is None or attempt is None:
            continue
        action = decide.end_of(unit, attempt, state, watch.engine.now())
        if isinstance(action, decide.Ended):
            watch.end(unit, attempt, action)
        elif isinstance(action, decide.Cancel):
            await _cancel_again(watch, unit, attempt)
        elif isinstance(action, decide.Wait):
            watch.show_wait(unit.id, action.text)


async def _ask(watch: "Watch", unit: Unit, attempt: Attempt) -> CallState | None:
    ref = CallRef(attempt.call or "", unit.order.function, unit.id)
    try:
        state = await watch.engine.compute.poll(ref)
    except RemoteError as error:
        not_heard(watch, unit.id, error)
        return None
    if watch.silent.pop(unit.id, None) is not None:
        watch.engine.gate.note("reachable", "answers again", subject=unit.id)
    return state


def not_heard(watch: "Watch", unit_id: str, error: RemoteError) -> None:
    """A call could not be asked about: it is left as it is, which is said once."""
    silence = watch.silent.get(unit_id)
    if silence is None:
        silence = watch.silent[unit_id] = Silence(watch.engine.now())
        watch.engine.gate.note("unreachable", str(error), subject=unit_id, severity="warning")
        watch.engine.say(f"{unit_id}: cannot be asked, and is left as it is ({error})")
    silence.text, silence.throttled = str(error), isinstance(error, Throttled)
    if isinstance(error, Throttled):
        watch.retry_after_s = max(watch.retry_after_s, error.retry_after_s or 0.0)
    else:
        silence.times += 1


async def _cancel_again(watch: "Watch", unit: Unit, attempt: Attempt) -> None:
    try:
        await watch.engine.compute.cancel(CallRef(attempt.call or ""), hard=True)
    except RemoteError as error:
        not_heard(watch, unit.id, error)
    watch.show_wait(unit.id, f"stopping, cancelled by {unit.cancelled_by}")


async def settle_unanswered(watch: "Watch", unit: Unit, attempt: Attempt) -> None:
    """Find out what became of an attempt whose spawn was not answered."""
    engine = watch.engine
    # A spawn is sent under the session's lock: once that was free, nothing more is sent for this attempt.
    with suppress(LockHeld), holding(lock_path(engine.gate.state)):
        watch.first_seen.setdefault(attempt.nonce, engine.clock.monotonic())
    now = engine.clock.monotonic()
    lease = None
    if unit.order.lease is not None:
        try:
            lease = (await look_at_lease(engine, unit, LeaseWatch(engine.clock))).holder
        except RemoteError:
            watch.show_wait(unit.id, "its spawn was not answered, and its lease cannot be read")
            return
    unknown = await unknown_calls(engine, unit.order.function, attempt.at, engine.ledger.read())
    answers = {}
    for row in unknown or () if unit.order.kind in ("read", "locked", "blend") else ():
        if row.phase is Phase.SUCCEEDED:
            try:
                answers[row.id] = (await engine.compute.poll(CallRef(row.id))).result
            except RemoteError:
                continue
    found = settle_pending(
        unit, attempt, silent_s=now - watch.first_seen.get(attempt.nonce, now), lease=lease, unknown=unknown,
        answers=answers,
    )  # fmt: skip
    if isinstance(found, Adopt):
        watch.record(unit, attempt, "call", call=found.call, text=f"adopted: {found.how}")
        engine.gate.note("adopted", f"{found.call}: {found.how}", subject=unit.id)
        engine.say(f"{unit.id}: is {found.call} ({found.how})")
    elif isinstance(found, Abandon):
        watch.record(unit, attempt, "abandoned", text=found.text)
        engine.gate.note("ghost", f"attempt {len(unit.counted)} counts: {found.text}", subject=unit.id,
                         severity="warning")  # fmt: skip
        engine.say(f"{unit.id}: attempt {len(unit.counted)} given up, and counted: {found.text}")
    else:
        watch.show_wait(unit.id, found.text)


async def sweep(watch: "Watch") -> None:
    """Show what is alive at the provider and was started by nothing here."""
    engine = watch.engine
    if watch.swept is not None and engine.clock.monotonic() - watch.swept < SWEEP_S:
        return
    units = watch.units()
    since = min((attempt.at for unit in units for attempt in unit.attempts), default=engine.now())
    pending = {unit.order.function for unit in units if unit.live is not None and unit.live.pending}
    functions = sorted({unit.order.function for unit in units if unit.order.kind != "sources"} - pending)
    # The first look is short, so that the watch begins; the later ones are at everything the app can do.
    also = () if watch.swept is None else sorted(FUNCTIONS - pending - set(functions))
    found = await orphans(engine, since, functions, also)
    if found is None:
        return
    watch.swept = engine.clock.monotonic()
    for call, function in found.items():
        if call not in watch.strays:
            engine.gate.note("orphan", f"{function} is alive and nothing here started it", subject=call,
                             severity="critical")  # fmt: skip
            engine.say(f"!!! {call} ({function}) is alive and nothing here started it; "
                       f"`cancel --orphan {call}` ends it")  # fmt: skip
    watch.strays = found


async def project(watch: "Watch") -> None:
    """Say early, and once, that a trial cannot be done in its time."""
    clock = watch.engine.clock
    for unit in watch.units():
        live = unit.live
        if unit.order.kind != "trial" or live is None or live.call is None or live.nonce in watch.warned:
            continue
        if clock.monotonic() - watch.looked.get(live.nonce, -PROGRESS_S) < PROGRESS_S:
            continue
        watch.looked[live.nonce] = clock.monotonic()
        try:
            lines = await watch.engine.compute.log_tail(CallRef(live.call), LOG_LINES)
        except RemoteError:
            continue
        steps = progress.steps_of((line.at.timestamp(), line.text) for line in lines)
        run_for = _run_for(watch, unit, live, steps)
        text = progress.warn_of_timeout(steps, run_for, unit.order.timeout, unit.attempts_left)
        if text is not None:
            watch.warned.add(live.nonce)
            watch.engine.gate.note("projection", text, subject=unit.id, severity="warning")
            watch.engine.say(f"!!! {unit.id}: {text}")


def _run_for(watch: "Watch", unit: Unit, live: Attempt, steps: list[progress.Step]) -> float:
    """Seconds that an attempt has run, without its time in the queue where its lease tells when it began."""
    if unit.order.lease is not None and steps:
        with suppress(KevError):
            lease = read_record(watch.engine.root / LEASES / unit.order.lease / FILE_NAME, Lease)
            if lease.nonce == live.nonce and float(lease.started) < steps[-1].at:
                return steps[-1].at - float(lease.started)  # both by the clock of the container
    return watch.engine.now() - live.at
