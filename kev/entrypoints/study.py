"""Launching a study: each trial is on record before it is spawned, and a launch that was cut short is completed."""

from kev import budget
from kev.compute.errors import RemoteError
from kev.compute.protocol import CallRef
from kev.entrypoints.admission import Admission, Request, admit, uncommitted, warnings
from kev.entrypoints.by_hand import open_gate, provenance_of
from kev.entrypoints.names import check_study_is_ours, study_lock
from kev.entrypoints.place import Place
from kev.entrypoints.pull import pull_study
from kev.entrypoints.units import put_end_on_record
from kev.entrypoints.waiting import failure_of, wait_for_end
from kev.gate import Gate
from kev.ledger.units import trial_id
from kev.rounds.deployed import check_deployed
from kev.rounds.trial_orders import Provenance, Wanted, round_up, trial_order
from kev.worker.orders import label_of
from kev.worker.sources import source_hashes


async def launch_study(place: Place, request: Request, *, detached: bool) -> int:
    """Admit and launch a study. Returns the exit code: attached, 1 if any trial did not succeed.

    Raises Refused and its like before anything is spawned, and a RemoteError where a spawn failed; the ledger then
    says how far the launch came.
    """
    admission = admit(request, place.root)
    changed = uncommitted(place.root)
    if changed:
        place.say(f"!!! not committed: {', '.join(changed[:3])}{' and more' if len(changed) > 3 else ''}")
    for warning in warnings(admission):
        place.say(f"!!! {warning}")
    gate = open_gate(place)
    with study_lock(place.runs, admission.name):
        wanted = study_orders(admission, provenance_of(place, gate))
        check_study_is_ours(gate, admission.name, wanted)
        await check_deployed(gate, place.app_name, source_hashes(place.root))
        place.say(f"{admission.name}: bound ${budget.recorded(admission.bound)} ({len(admission.configs)} trials on "
                  f"{admission.gpu})")  # fmt: skip
        calls = await start_trials(place, gate, admission.name, wanted)
    if detached:
        return 0
    return await _attend(place, gate, admission.name, calls)


def study_orders(admission: Admission, provenance: Provenance) -> list[Wanted]:
    """The trials of an admitted study, in the order of its plan."""
    attempts = budget.FULL_WEIGHT_ATTEMPTS if admission.full_weight else 1
    each = round_up(admission.bound / len(admission.configs) / attempts)
    return [
        (trial_id(admission.name, label_of(index, existing)),
         trial_order(
             admission.name, index, config, suite=admission.suite, transfer=admission.transfer, gpu=admission.gpu,
             timeout=admission.timeout, full_weight=admission.full_weight, attempt_usd=each,
             study_usd=budget.recorded(admission.bound), provenance=provenance, existing=existing,
         ))
        for index, (existing, config) in enumerate(admission.numbered())
    ]  # fmt: skip


async def start_trials(place: Place, gate: Gate, study: str, wanted: list[Wanted]) -> dict[str, CallRef]:
    """Reserve all of `wanted`, and start what was not begun before. Raises a RemoteError at the first that cannot be.

    A study of which the provider took nothing leaves its name free.
    """
    await gate.reserve(f"study {study}", wanted)
    calls: dict[str, CallRef] = {}
    for unit_id, order in wanted:
        unit = gate.ledger.read().by_id[unit_id]
        label = order.label or unit_id
        if unit.current is not None:
            call = unit.current.call
            place.say(f"{study}/{label}: on record already ({call or 'its spawn was interrupted'})")
            continue
        try:
            calls[label] = await gate.start(unit_id)
        except RemoteError as error:
            if error.may_have_happened:
                place.say(f"!!! {study}/{label}: whether it started is not known; `resume --study {study}` will find "
                          "it by its lease")  # fmt: skip
            elif not any(unit.counted for unit in gate.ledger.read().of_name(study)):
                for each, _ in wanted:
                    gate.settle(each, "refused", str(error))
            raise
        finally:
            gate.show(study)
        place.say(f"{study}/{label}: {calls[label].id}")
    return calls


async def _attend(place: Place, gate: Gate, study: str, calls: dict[str, CallRef]) -> int:
    failed = 0
    for label, call in calls.items():
        state = await wait_for_end(place, call)
        unit = gate.ledger.read().by_id[trial_id(study, label)]
        if unit.live is not None:
            put_end_on_record(gate, unit, unit.live, state)
        why = failure_of(state)
        failed += why is not None
        place.say(f"{study}/{label}: {why or 'done'}")
    await pull_study(place, study, weights=False)
    return 1 if failed else 0
