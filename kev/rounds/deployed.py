"""What runs remotely must be what is here: the deployed app is asked for its sources before anything is launched."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from kev import budget
from kev.compute.protocol import CallRef, Phase
from kev.errors import Refused
from kev.evaluators import describe, differing
from kev.gate import AlreadyStarted, Gate
from kev.records.ledger import Order
from kev.rounds.patience import patiently
from kev.rounds.trial_orders import round_up
from kev.worker.sources import digest

FUNCTION = "remote_source_hashes"
TIMEOUT_S = 120
RESOURCES = budget.Resources(1, (1024, 1024))
WAIT_S = 30.0
TRIES = 8


async def check_deployed(gate: Gate, app: str, ours: Mapping[str, str]) -> None:
    """Raises Refused if `app` is not deployed, was deployed from other sources, or does not say; or a RemoteError.

    A deployment that was asked once is not asked again: what is deployed under a version never changes.
    """
    deploy = f"run: KEV_APP_NAME={app} modal deploy modal_app.py"
    state = await patiently(gate, gate.compute.app)
    if state is None:
        raise Refused(f"app {app} is not deployed; {deploy}")
    base = f"sources/{app}/{state.id}/v{state.version}/{digest(ours)[:12]}"
    asked = gate.ledger.read().by_id
    if any(unit.id.startswith(base) and unit.outcome == "same" for unit in asked.values()):
        return
    unit_id = f"{base}/{sum(name.startswith(base) for name in asked)}"
    theirs = await _ask(gate, unit_id, app)
    if theirs is None:
        raise Refused(f"app {app} does not tell its sources; {deploy}")
    changed = differing(ours, theirs)
    gate.settle(unit_id, "same" if not changed else "other")
    if changed:
        raise Refused(f"app {app} was deployed from other sources: {describe(changed)}; {deploy}")


async def _ask(gate: Gate, unit_id: str, app: str) -> dict[str, Any] | None:
    order = Order(
        kind="sources", name=unit_id, function=FUNCTION, payload={}, timeout=TIMEOUT_S,
        attempt_usd=round_up(budget.cpu_bound(RESOURCES, TIMEOUT_S)), remote="", local="", app=app,
        session=gate.session,
    )  # fmt: skip
    await gate.reserve(unit_id, [(unit_id, order)])
    try:
        ref: CallRef = await gate.start(unit_id)
    except AlreadyStarted as refusal:
        raise Refused(f"{refusal}; another launch asks it now, try again in a minute") from None
    for _ in range(TRIES):
        state = await patiently(gate, partial(gate.compute.poll, ref, wait_s=WAIT_S))
        if state.phase is not Phase.ACTIVE:
            attempt = gate.ledger.read().by_id[unit_id].counted[-1]
            gate.settle_attempt(unit_id, attempt.nonce, "ended", outcome=state.phase.value)
            if state.phase is Phase.SUCCEEDED and isinstance(state.result, dict):
                return state.result
            break
    gate.settle(unit_id, "silent")
    return None
