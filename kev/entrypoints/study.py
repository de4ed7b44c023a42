"""Launching a study: each trial is on record before it is spawned, and a launch that was cut short is completed."""

from kev.compute.errors import RemoteError
from kev.compute.protocol import CallRef
from kev.entrypoints.admission import Admission, Request, admit, uncommitted, warnings
from kev.entrypoints.deployed import check_deployed_sources
from kev.entrypoints.ledger import Ledger, record_path, study_lock
from kev.entrypoints.place import Place
from kev.entrypoints.pull import pull_study
from kev.entrypoints.waiting import failure_of, wait_for_end
from kev.errors import Refused
from kev.records.spawn import Attempt
from kev.worker.container import git_commit
from kev.worker.orders import TrialOrder, label_of, trial_function


async def launch_study(place: Place, request: Request, *, detached: bool) -> int:
    """Admit and launch a study. Returns the exit code: attached, 1 if any trial did not succeed.

    Raises Refused and its like before anything is spawned, and a RemoteError where a spawn failed; the record then
    says how far the launch came.
    """
    admission = admit(request, place.root)
    changed = uncommitted(place.root)
    if changed:
        place.say(f"!!! not committed: {', '.join(changed[:3])}{' and more' if len(changed) > 3 else ''}")
    for warning in warnings(admission):
        place.say(f"!!! {warning}")
    with study_lock(place.runs, admission.name):
        ledger = open_ledger(place, admission)
        sources = await check_deployed_sources(place)
        place.say(
            f"{admission.name}: bound ${ledger.record.bound_usd} ({len(admission.configs)} trials on {admission.gpu})"
        )
        calls = await spawn_trials(place, admission, ledger, sources)
    if detached:
        return 0
    return await _attend(place, admission.name, calls)


def open_ledger(place: Place, admission: Admission) -> Ledger:
    """A new ledger, or that of the same launch which was cut short.

    Raises Refused if the name was used: by another plan, or by a launch that is complete.
    """
    found = Ledger.find(place.runs, admission.name)
    if found is None or found.is_unused:
        return Ledger.new(
            place.runs, admission.name, gpu=admission.gpu, timeout=admission.timeout, bound=admission.bound,
            full_weight=admission.full_weight, plan_sha256=admission.plan_sha256,
        )  # fmt: skip
    where = record_path(place.runs, admission.name)
    if found.record.plan_sha256 != admission.plan_sha256:
        raise Refused(f"study {admission.name}: {where} is of another launch; a name is never used again")
    if all(label_of(index) in found.record.calls for index in range(len(admission.configs))):
        raise Refused(f"study {admission.name}: launched already, see {where}; a name is never used again")
    return found


async def spawn_trials(place: Place, admission: Admission, ledger: Ledger, sources: str) -> dict[str, CallRef]:
    """Spawn every trial that is not on record, in order. Raises a RemoteError at the first that cannot be."""
    commit, calls = git_commit(place.root), {}
    for index in range(len(admission.configs)):
        label = label_of(index)
        if label in ledger.record.calls:
            _say_earlier(place, ledger, label)
            continue
        attempt = ledger.begin(label, place.now())
        order = trial_order(admission, index, attempt, sources, commit)
        calls[label] = await spawn_attempt(place, ledger, order, admission.gpu, admission.timeout)
    return calls


def trial_order(admission: Admission, index: int, attempt: Attempt, sources: str, commit: str | None) -> TrialOrder:
    """What the container of a first attempt is asked to do."""
    return TrialOrder(
        run_id=f"{admission.name}/{label_of(index)}/1",
        sources=sources,
        git_commit=commit,
        study=admission.name,
        index=index,
        config=admission.configs[index],
        suite=admission.suite,
        transfer=admission.transfer,
        nonce=attempt.nonce,
        attempt=1,
        gpu=admission.gpu,
    )


async def spawn_attempt(place: Place, ledger: Ledger, order: TrialOrder, gpu: str, timeout: int) -> CallRef:
    """Spawn an attempt that is on record as pending, and put its call there.

    Raises a RemoteError. Where nothing can have started the attempt is taken back; where that is not known it stays
    pending, and its lease will tell.
    """
    function = trial_function(gpu, order.full_weight)
    try:
        call = await place.compute.spawn(function, order.to_json(), run_id=order.run_id, gpu=gpu, timeout_s=timeout)
    except RemoteError as error:
        if not error.may_have_happened:
            ledger.withdraw(order.label, order.nonce)
            raise
        place.say(
            f"!!! {order.study}/{order.label}: whether it started is not known; `resume --study {order.study}` will "
            "find it by its lease"
        )
        raise
    ledger.started(order.label, order.nonce, call.id)
    place.say(f"{order.study}/{order.label}: {call.id}")
    return call


async def _attend(place: Place, study: str, calls: dict[str, CallRef]) -> int:
    failed = 0
    for label, call in calls.items():
        why = failure_of(await wait_for_end(place, call))
        failed += why is not None
        place.say(f"{study}/{label}: {why or 'done'}")
    await pull_study(place, study, weights=False)
    return 1 if failed else 0


def _say_earlier(place: Place, ledger: Ledger, label: str) -> None:
    call = ledger.record.calls[label]
    place.say(f"{ledger.record.name}/{label}: on record already ({call or 'its spawn was interrupted'})")
