"""Launching reads so that none is lost and none is made twice: each is one unit of the ledger, by what it fills."""

from collections.abc import Callable

from kev.compute.errors import RemoteError
from kev.compute.protocol import CallRef, CallState
from kev.entrypoints.place import Place
from kev.entrypoints.units import put_end_on_record
from kev.entrypoints.waiting import failure_of, wait_for_end
from kev.errors import Refused
from kev.gate import Gate
from kev.ledger.units import Unit
from kev.records.ledger import Order
from kev.rounds.trial_orders import Wanted

WANTED = ("run", "suite", "flags", "trial", "decision", "transfer")
"""What of a payload says which answers are wanted; card and time may differ."""


def is_same_read(one: Order, other: Order) -> bool:
    """Whether both ask for the same answers."""
    return all((one.payload.get(key) or None) == (other.payload.get(key) or None) for key in WANTED)


async def reserve_reads(
    gate: Gate, what: str, wanted: list[Wanted], is_same: Callable[[Order, Order], bool] = is_same_read
) -> None:
    """Put reads on record, all of them or none; what was never started gives way. Raises Refused for a name in use."""
    units = gate.ledger.read().by_id
    for unit_id, order in wanted:
        unit = units.get(unit_id)
        if unit is not None and unit.counted and not is_same(unit.order, order):
            kind = "read" if order.kind == "locked" else order.kind
            raise Refused(f"{order.name}: the ledger has another {kind} of that name; a name is used once")
        if unit is not None and not unit.settled and not unit.counted:
            gate.settle(unit_id, "replaced")
    await gate.reserve(what, wanted)


async def launch_read(gate: Gate, unit_id: str, **extra: object) -> CallRef:
    """Start a reserved read, or find the call of the same read that was started before.

    Raises Refused for one whose spawn was interrupted; a RemoteError.
    """
    unit = gate.ledger.read().by_id[unit_id]
    current = unit.current
    if current is not None:
        if current.call is None:
            raise Refused(f"{unit.order.name}: its launch was interrupted and it may be running; pull it if it "
                          "appears, and otherwise read under a new name")  # fmt: skip
        return CallRef(current.call, unit.order.function, unit.order.name)
    return await _start(gate, unit, extra)


async def launch_again(
    place: Place, gate: Gate, unit_id: str, is_wanted: Callable[[CallState], bool], **extra: object
) -> CallRef:
    """As `launch_read`, but started once more where its call ended and `is_wanted` of how.

    For reads whose container knows what was read. One more attempt is admitted under the same rule as the first.
    """
    unit = gate.ledger.read().by_id[unit_id]
    current = unit.current
    if current is None or current.call is None:
        return await launch_read(gate, unit_id, **extra)
    state = await place.compute.poll(CallRef(current.call))
    if current.live:
        put_end_on_record(gate, unit, current, state)
    if not (state.phase.is_terminal and is_wanted(state)):
        return CallRef(current.call, unit.order.function, unit.order.name)
    await gate.extend(unit_id)
    return await _start(gate, gate.ledger.read().by_id[unit_id], extra)


async def _start(gate: Gate, unit: Unit, extra: dict[str, object]) -> CallRef:
    try:
        return await gate.start(unit.id, **extra)
    except RemoteError as error:
        if not error.may_have_happened and not gate.ledger.read().by_id[unit.id].counted:
            gate.settle(unit.id, "refused", str(error))  # nothing was started under the name, so it is free again
        raise
    finally:
        gate.show(unit.order.name)


async def wait_for_read(place: Place, gate: Gate, unit_id: str, call: CallRef) -> str | None:
    """Wait for the end of a read and put it on record. Returns why it is no success, or None if it is one."""
    state = await wait_for_end(place, call)
    unit = gate.ledger.read().by_id[unit_id]
    if unit.live is not None and unit.live.call == call.id:
        put_end_on_record(gate, unit, unit.live, state)
        gate.show(unit.order.name)
    return failure_of(state)
