"""Going on with one full-weight trial after its container was ended by a timeout.

In this order, under the study's lock: is there a ledger; who has the pending attempt; are attempts left; did the
current call end so that it may be continued; is the lease free; then an attempt is put on record and spawned.
"""

import asyncio
from dataclasses import asdict, dataclass

from kev import files
from kev.compute.errors import NotDeployed
from kev.compute.lease_watch import CONTINUATION_WAIT_S, LEASE_STALE_S, LeaseView, LeaseWatch
from kev.compute.leases import FILE_NAME, LEASE_VOLUME, count_claims
from kev.compute.protocol import CallRef, CallState, Phase
from kev.entrypoints.place import Place
from kev.entrypoints.units import put_end_on_record
from kev.errors import DamagedFile, Refused
from kev.gate import Gate
from kev.ledger.units import Attempt, Unit
from kev.records.base import parse_record
from kev.records.lease import Lease, PreviousLease

MAX_LEASE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Waits:
    """How long a continuation waits, in seconds; those of the engine unless a rehearsal has shorter ones."""

    look: float = 30.0
    """Between looks at a lease that was not ended."""
    stale: float = LEASE_STALE_S
    """After which a heartbeat that stood still belongs to nobody."""
    most: float = CONTINUATION_WAIT_S
    """For a lease to be free, before the continuation gives up for this time."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial of a study on the volume: its label, and its directory, `<study>/<NN>-<label>`."""

    label: str
    directory: str


async def read_lease(place: Place, trial: Trial) -> Lease | None:
    """The lease as last committed. Raises DamagedFile, or a RemoteError."""
    path = f"{trial.directory}/{FILE_NAME}"
    data = await place.compute.read(LEASE_VOLUME, path, limit=MAX_LEASE_BYTES)
    if data is None:
        return None
    where = place.root / f"{LEASE_VOLUME}:" / path
    try:
        return parse_record(where, files.parse_json(data), Lease)
    except ValueError as error:
        raise DamagedFile(where, str(error)) from None


async def settle_pending(place: Place, gate: Gate, unit: Unit, trial: Trial, waits: Waits) -> str | None:
    """Find out about an attempt whose spawn was interrupted: the call id if it runs, None if there is no such attempt.

    Raises Refused while it may yet appear; one that never took the lease for long enough is given up.
    """
    pending = [attempt for attempt in unit.attempts if attempt.pending]
    if not pending:
        return None
    lease = await read_lease(place, trial)
    for attempt in pending:
        call = _call_in(lease, attempt)
        if call is not None:
            gate.settle_attempt(unit.id, attempt.nonce, "call", call=call, text="its lease has the nonce")
            gate.show(unit.order.name)
            return call
    for attempt in pending:
        age = place.now() - attempt.at
        if age < waits.stale and attempt is unit.current:
            raise Refused(
                f"{trial.directory}: the spawn of attempt {attempt.nonce[:8]} was interrupted {max(0.0, age):.0f} s "
                f"ago; it may still take the lease, ask again {waits.stale:.0f} s after it"
            )
        gate.settle_attempt(unit.id, attempt.nonce, "abandoned", text=f"never took the lease in {age:.0f} s")
    gate.show(unit.order.name)
    return None


def _call_in(lease: Lease | None, attempt: Attempt) -> str | None:
    if lease is None:
        return None
    holders: list[Lease | PreviousLease] = [lease, *([lease.previous] if lease.previous else [])]
    return next((holder.call_id for holder in holders if holder.nonce == attempt.nonce), None)


def check_attempts(unit: Unit, *, beyond_bound: bool) -> None:
    """Raises Refused if the study's bound has no further attempt in it, unless it is to be exceeded."""
    if unit.attempts_left or beyond_bound:
        return
    used, allowed = len(unit.counted), unit.order.attempts
    raise Refused(
        f"{unit.order.name}/{unit.order.label}: {used} of {allowed} attempts are used; --beyond-bound goes on all the "
        "same, and costs more than was admitted"
    )


async def check_ended(place: Place, gate: Gate, unit: Unit) -> None:
    """Raises Refused unless the last call ended so that another may follow: by a timeout, or refused its lease."""
    current = unit.current
    if current is None or current.abandoned or current.call is None:
        return
    state = await _state(place, current.call)
    put_end_on_record(gate, unit, current, state)
    if state.phase in {Phase.TIMED_OUT, Phase.LOST} or is_refused(state):
        return
    why = {
        Phase.ACTIVE: "is still running",
        Phase.SUCCEEDED: "ended by itself",
        Phase.CANCELLED: "was cancelled, which is a decision and no timeout",
        Phase.EXPIRED: "ended so long ago that nobody knows how",
        Phase.MISSING: "is not known in this workspace",
    }.get(state.phase, f"failed ({state.error})")
    raise Refused(f"{unit.order.name}/{unit.order.label}: call {current.call} {why}; it is not continued")


def is_refused(state: CallState) -> bool:
    """Whether a container started, found the trial held, and left it alone."""
    return state.phase is Phase.SUCCEEDED and isinstance(state.result, dict) and "refused" in state.result


async def _state(place: Place, call: str) -> CallState:
    try:
        return await place.compute.poll(CallRef(call))
    except NotDeployed:
        return CallState(Phase.MISSING, place.clock.now())


async def wait_for_lease(place: Place, trial: Trial, waits: Waits) -> LeaseView:
    """Look at the lease until a continuation may start. Raises Refused if its heartbeat goes on."""
    watch = LeaseWatch(place.clock, stale_s=waits.stale)
    end = place.clock.monotonic() + waits.most
    told = False
    while True:
        claims, ended = await asyncio.to_thread(count_claims, place.claims, trial.directory)
        view = watch.look(await read_lease(place, trial), claims=claims, claim_ended=ended)
        if view.may_continue:
            return view
        if place.clock.monotonic() >= end:
            raise Refused(f"{trial.directory}: {view.reason(place.clock.now())}")
        if not told:
            place.say(f"{trial.directory}: {view.reason(place.clock.now())}")
            told = True
        await place.pause(min(waits.look, max(view.wait_s, 0.05)))


async def continue_trial(
    place: Place, gate: Gate, unit: Unit, trial: Trial, waits: Waits, *, beyond_bound: bool = False
) -> CallRef:
    """Spawn the next attempt of a trial; the caller holds the study's lock and has settled what was pending.

    Card and time are those that the study was admitted for. Raises Refused, naming the rule, or a RemoteError.
    """
    check_attempts(unit, beyond_bound=beyond_bound)
    await check_ended(place, gate, unit)
    view = await wait_for_lease(place, trial, waits)
    place.say(f"{trial.directory}: {view.reason(place.clock.now())}")
    if not unit.attempts_left:
        await gate.extend(unit.id)
    extra = {"evidence": asdict(view.evidence)} if view.evidence is not None else {}
    try:
        ref = await gate.start(unit.id, **extra)
    finally:
        gate.show(unit.order.name)
    place.say(f"{unit.order.name}/{unit.order.label}: {ref.id}")
    return ref
