"""`python -m kev.rounds cancel`: end a trial or a read, and put on record who did it and what is lost.

A unit that was asked to stop is `stopping`, and counts, until the provider says that it ended.
"""

import argparse
import json
from typing import Any

from kev.compute.errors import RemoteError
from kev.compute.protocol import CallRef, Phase
from kev.errors import NotFound, Refused
from kev.ledger.units import Unit
from kev.records.ledger import LedgerEvent
from kev.records.resume import ResumePoint
from kev.rounds.engine import RUNS_VOLUME, Engine, add_session_arguments, run_engine
from kev.rounds.specs import LoadedSpec

SOFT_S, HARD_S = 45.0, 60.0
MAX_POINT_BYTES = 1_000_000


async def cancel(engine: Engine, unit_id: str, reason: str) -> str:
    """Ask a unit to end. Returns what is known of it then: `cancelled` or `stopping`. Raises KevError."""
    with engine.ledger.writing() as book:
        unit = book.units.by_id.get(unit_id)
        if unit is None:
            raise NotFound(f"{unit_id}: is not in the ledger; `status` lists what is")
        if unit.settled:
            raise Refused(f"{unit_id}: is over ({unit.outcome})")
        at = engine.now()
        book.add(LedgerEvent(event="cancel", at=at, unit=unit_id, who=engine.gate.who or "someone", text=reason))
        if unit.live is None:
            book.add(LedgerEvent(event="settled", at=at, unit=unit_id, outcome="cancelled", text=reason))
    lost = await what_is_lost(engine, unit)
    engine.gate.note("cancel", f"{reason or 'no reason given'}; lost: {lost}", subject=unit_id, severity="warning")
    engine.say(f"{unit_id}: lost: {lost}")
    live = unit.live
    if live is not None and live.call is not None:
        ref = CallRef(live.call, unit.order.function, unit_id)
        state = await engine.compute.settle(ref, soft_s=SOFT_S, hard_s=HARD_S)
        # A call that the provider does not know may run in another workspace: it is no proof of an end.
        if state.phase.is_terminal and state.phase is not Phase.MISSING:
            engine.gate.settle_attempt(unit_id, live.nonce, "ended", outcome=state.phase.value)
            with engine.ledger.writing() as book:
                book.add(LedgerEvent(event="settled", at=engine.now(), unit=unit_id, outcome="cancelled", text=reason))
    engine.gate.show(unit.order.name)
    return "cancelled" if engine.ledger.read().by_id[unit_id].settled else "stopping"


async def what_is_lost(engine: Engine, unit: Unit) -> str:
    """In words, from what is committed now."""
    if unit.current is None:
        return "nothing, it had not started"
    if unit.order.kind in ("blend", "mirror"):
        return "the checkpoint that it is at; those before it are whole"
    if unit.order.kind == "agent":
        return "the run of the agent"
    if unit.order.kind == "rescore":
        return "the scores; the checkpoint stays"
    if unit.order.kind != "trial":
        return "the read; a test that was begun is not read again"
    if unit.order.attempts == 1:
        return "all of it; such a trial keeps nothing before its end"
    try:
        data = await engine.compute.read(
            RUNS_VOLUME, f"/{unit.order.remote}/checkpoint/resume/latest.json", limit=MAX_POINT_BYTES
        )
        point = ResumePoint.model_validate_json(data) if data is not None else None
    except (RemoteError, ValueError):
        return "what ran after its last resume point, which cannot be read now"
    return f"what ran after step {point.step}" if point is not None else "all of it; it has no resume point yet"


async def cancel_orphan(engine: Engine, call: str, reason: str) -> str:
    """End a call that the ledger does not know. Raises Refused for one that it does."""
    if call in engine.ledger.read().calls():
        raise Refused(f"{call}: belongs to the ledger; cancel its unit")
    state = await engine.compute.settle(CallRef(call), soft_s=SOFT_S, hard_s=HARD_S)
    engine.gate.note("cancel", f"orphan; {reason or 'no reason given'}; now {state.phase.value}", subject=call,
                     severity="warning")  # fmt: skip
    return state.phase.value


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `cancel`."""
    add_session_arguments(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--unit", metavar="ID", help="the unit, as `status` names it: trial/<study>/<label>")
    what.add_argument("--orphan", metavar="CALL", help="a call that nothing here started, as watch names it")
    parser.add_argument("--reason", default="", metavar="TEXT", help="goes on record")
    parser.add_argument("--yes", action="store_true", help="confirm; without it, only what would be lost is said")
    parser.add_argument("--dry-run", action="store_true", help="say what would be lost, and cancel nothing")


def cancel_command(arguments: argparse.Namespace) -> int:
    """0 if the unit ended, 3 if it was asked to and is stopping, 1 without --yes."""

    async def work(engine: Engine, _: LoadedSpec) -> int:
        if arguments.orphan:
            if arguments.dry_run or not arguments.yes:
                raise Refused(f"{arguments.orphan}: add --yes to end it; what it does is not known here")
            state = await cancel_orphan(engine, arguments.orphan, arguments.reason)
            return _report(arguments, {"call": arguments.orphan, "state": state})
        unit = engine.unit(arguments.unit)
        if arguments.dry_run or not arguments.yes:
            lost = await what_is_lost(engine, unit)
            _report(arguments, {"unit": arguments.unit, "lost": lost})
            if not arguments.dry_run:
                raise Refused(f"{arguments.unit}: add --yes to cancel it")
            return 0
        return _report(arguments, {"unit": arguments.unit,
                                   "state": await cancel(engine, arguments.unit, arguments.reason)})  # fmt: skip

    return run_engine(arguments, work)


def _report(arguments: argparse.Namespace, value: dict[str, Any]) -> int:
    print(json.dumps(value, indent=2) if arguments.json else ", ".join(f"{key} {text}" for key, text in value.items()))
    return 3 if value.get("state") == "stopping" else 0
