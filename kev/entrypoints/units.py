"""Units that a person started: their ends are put on record by whoever sees them, since nobody else watches."""

from kev import files
from kev.compute.errors import RemoteError
from kev.compute.protocol import CallRef, CallState, Phase
from kev.entrypoints.place import Place
from kev.entrypoints.waiting import failure_of
from kev.gate import Gate
from kev.ledger.units import Attempt, Unit
from kev.rounds.watching.decide import Ended, end_of

ONE_CALL = frozenset({"read", "locked", "blend", "mirror", "rescore", "agent"})
"""Kinds of work that one call does: its end is the unit's."""


def put_end_on_record(gate: Gate, unit: Unit, attempt: Attempt, state: CallState) -> None:
    """Record how an attempt ended, if `state` says that it did; of work that one call does, the unit with it."""
    ended = end_of(unit, attempt, state, gate.clock.now().timestamp())
    if not isinstance(ended, Ended) or not attempt.live:
        return
    gate.settle_attempt(unit.id, attempt.nonce, "ended", outcome=ended.outcome, text=ended.text)
    if unit.order.kind in ONE_CALL:
        why = failure_of(state)
        gate.settle(unit.id, "done" if why is None else "failed", why or "")


async def look_at_study(place: Place, gate: Gate, study: str) -> None:
    """Ask how every attempt of a study stands, and settle what has ended, as far as that can be told now."""
    for unit in _units_of(gate, study):
        attempt = unit.live
        if attempt is not None and attempt.call is not None:
            try:
                state = await place.compute.poll(CallRef(attempt.call))
            except RemoteError:
                continue  # asked again by the next look
            put_end_on_record(gate, unit, attempt, state)
    for unit in _units_of(gate, study):
        outcome = _outcome(place, unit)
        if outcome is not None:
            gate.settle(unit.id, outcome)
    gate.show(study)


def _units_of(gate: Gate, study: str) -> list[Unit]:
    prefix = f"{study}/"
    return [unit for unit in gate.ledger.read().by_id.values()
            if not unit.settled and unit.order.round is None
            and (unit.order.name == study or unit.order.name.startswith(prefix))]  # fmt: skip


def _outcome(place: Place, unit: Unit) -> str | None:
    """How a trial is settled, given what is home and how its last attempt ended; None while it may go on."""
    current = unit.current
    if unit.order.kind != "trial" or current is None or current.live:
        return None
    home = files.list_names(place.root / unit.order.local)
    if "result.json" in home:
        return "done"
    if "failed.json" in home or current.outcome in (Phase.FAILED.value, Phase.CANCELLED.value):
        return "failed" if current.outcome != Phase.CANCELLED.value else "cancelled"
    if current.outcome == "succeeded":
        return None  # its result is on the volume, and comes home with a pull
    return "failed" if unit.order.attempts == 1 else None
