"""`python -m kev.rounds resume`: continue a trial that a timeout ended, as the watch would.

A continuation beyond the attempts that the study was admitted for needs `--beyond-bound` with the study's name typed.
"""

import argparse
import json
from dataclasses import asdict

from kev.compute.errors import RemoteError
from kev.compute.lease_watch import CONTINUATION_WAIT_S, Evidence, LeaseView, LeaseWatch
from kev.compute.leases import FILE_NAME
from kev.errors import Refused
from kev.ledger.units import Unit, trial_id
from kev.records.lease import Lease
from kev.rounds.engine import LEASE_VOLUME, Engine, add_session_arguments, run_engine
from kev.rounds.specs import LoadedSpec

LOOK_S = 30.0
MAX_LEASE_BYTES = 65_536
CONTINUABLE = frozenset({"timed_out", "lost", "refused", "expired", "missing", "abandoned"})
"""How an attempt may have ended for another one to go on from where it was."""


def check_continuable(unit: Unit) -> None:
    """Raises Refused for a unit that may not be continued now."""
    current = unit.current
    if unit.order.kind != "trial" or unit.order.lease is None or current is None:
        raise Refused(f"{unit.id}: is no trial that was started")
    if current.live:
        raise Refused(f"{unit.id}: attempt {len(unit.counted)} may be running ({current.call or 'call not known'})")
    if current.outcome not in CONTINUABLE:
        raise Refused(f"{unit.id}: its last attempt {current.outcome}; only what was cut off is continued")


async def look_at_lease(engine: Engine, unit: Unit, watch: LeaseWatch) -> LeaseView:
    """The standing of a trial's lease as of now. Raises a RemoteError."""
    trial = unit.order.lease or ""
    claims, ended = await engine.count_claims(trial)
    data = await engine.compute.read(LEASE_VOLUME, f"/{trial}/{FILE_NAME}", limit=MAX_LEASE_BYTES)
    try:
        lease = Lease.model_validate_json(data) if data is not None else None
    except ValueError:
        lease = None  # half written: it says nothing, and what stands still is judged by its claims
    return watch.look(lease, claims=claims, claim_ended=ended)


async def continue_trial(engine: Engine, unit: Unit, evidence: Evidence | None) -> str:
    """Start the next attempt, with what was seen of the lease. Returns its call. Raises as `Gate.start` does."""
    extra = {"evidence": asdict(evidence)} if evidence is not None else {}
    ref = await engine.gate.start(unit.id, **extra)
    engine.gate.show(unit.order.name)
    return ref.id


async def resume(engine: Engine, unit_id: str, *, beyond_bound: str | None = None) -> str:
    """Wait for the lease as long as that can take, and continue. Returns the call. Raises KevError."""
    unit = engine.unit(unit_id)
    check_continuable(unit)
    if not unit.attempts_left:
        if beyond_bound != unit.order.name:
            raise Refused(
                f"{unit_id}: had all of its {unit.order.attempts} attempts; one more goes beyond the bound it was "
                f"admitted for (${unit.order.attempt_usd:.2f}): --beyond-bound {unit.order.name}"
            )
        await engine.gate.extend(unit_id)
    watch = LeaseWatch(engine.clock)
    waited, told = 0.0, ""
    while True:
        try:
            view = await look_at_lease(engine, unit, watch)
        except RemoteError as error:
            if not error.retryable:
                raise
            view = None
        if view is not None and view.may_continue:
            return await continue_trial(engine, unit, view.evidence)
        if waited >= CONTINUATION_WAIT_S:
            raise Refused(f"{unit_id}: {view.reason(engine.clock.now()) if view else 'the lease cannot be read'}")
        reason = view.reason(engine.clock.now()) if view is not None else "the lease cannot be read"
        if reason != told:
            engine.say(f"{unit_id}: {reason}")
            told = reason
        waited += LOOK_S
        await engine.gate.sleep(LOOK_S)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `resume`."""
    add_session_arguments(parser)
    parser.add_argument("--trial", required=True, metavar="STUDY/LABEL", help="such as r41-4b/trial-0")
    parser.add_argument("--beyond-bound", metavar="STUDY", help="one attempt more than admitted; type the study's name")
    parser.add_argument("--dry-run", action="store_true", help="say whether it may be continued")


def resume_command(arguments: argparse.Namespace) -> int:
    """Continue one trial. Raises KevError."""

    async def work(engine: Engine, _: LoadedSpec) -> int:
        study, _slash, label = arguments.trial.partition("/")
        unit_id = trial_id(study, label)
        if arguments.dry_run:
            unit = engine.unit(unit_id)
            check_continuable(unit)
            value = {"unit": unit_id, "attempts_left": unit.attempts_left, "attempt_usd": str(unit.order.attempt_usd)}
        else:
            value = {"unit": unit_id, "call": await resume(engine, unit_id, beyond_bound=arguments.beyond_bound)}
        print(json.dumps(value, indent=2) if arguments.json else ", ".join(f"{k} {v}" for k, v in value.items()))
        return 0

    return run_engine(arguments, work)
