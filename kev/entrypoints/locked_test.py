"""The one read of the test partitions: refused here wherever this machine can tell that it was made before."""

from dataclasses import dataclass
from pathlib import Path

from kev.budget import compute_bound, parse_gpu
from kev.entrypoints.admission import open_inside
from kev.entrypoints.by_hand import open_gate, provenance_of
from kev.entrypoints.place import RUNS_VOLUME, Place
from kev.entrypoints.reads import launch_again, reserve_reads, wait_for_read
from kev.entrypoints.waiting import failure_of
from kev.errors import NotFound, Refused, UsageError
from kev.procedure.reading_tests import check_test_read
from kev.records.base import read_record
from kev.records.ledger import Order
from kev.records.locked import LockedSummary
from kev.records.result import Result
from kev.records.spec import STUDY_NAME
from kev.rounds.deployed import check_deployed
from kev.rounds.locked_args import MEMORY_MB, check_memory
from kev.rounds.once import ReadKey, checkpoint_of, other_locked_reads, other_reads
from kev.rounds.trial_orders import Provenance, Wanted, round_up
from kev.suite import Suite
from kev.worker.orders import LOCKED_TEST_FUNCTION, UNGATED
from kev.worker.sources import source_hashes


@dataclass(frozen=True, slots=True)
class LockedRequest:
    """What the command line asks for. `trial` is a path on the runs volume."""

    trial: str
    name: str
    decision: str
    transfer: str
    gpu: str
    redo_interrupted: bool = False
    timeout: int = 3600
    memory_mb: int = MEMORY_MB
    owner_allows: str = ""
    """The name again, where no registered round has the read."""


async def run_locked(place: Place, request: LockedRequest) -> int:
    """Read the test partitions of both suites with the checkpoint of a trial, once, and bring the read home.

    A read that was launched before, by a launcher that died, is waited for and not launched again. Returns the exit
    code: 1 if the read failed; what it read is home all the same. Raises Refused, UsageError, NotFound, a RemoteError.
    """
    check_request(place.root, request)
    gate = open_gate(place)
    unit_id, order = locked_order(request, provenance_of(place, gate))
    known = gate.ledger.read().by_id.get(unit_id)
    if known is None or known.live is None:
        await check_deployed(gate, place.app_name, source_hashes(place.root))
    await reserve_reads(gate, f"locked read {request.name}", [(unit_id, order)])
    if request.redo_interrupted:
        call = await launch_again(place, gate, unit_id, lambda _: True, redo_interrupted=True)
    else:
        call = await launch_again(place, gate, unit_id, lambda state: failure_of(state) is not None)
    place.say(f"{request.name}: {call.id}")
    why = await wait_for_read(place, gate, unit_id, call)
    home = place.runs / "locked" / request.name
    try:
        await place.compute.pull(RUNS_VOLUME, f"/locked/{request.name}", home)
    except NotFound:
        why = why or "it left nothing on the volume"
    else:
        _say_figures(place, home)
    if why is not None:
        place.say(f"{request.name}: FAILED {why}")
        return 1
    return 0


def locked_order(request: LockedRequest, provenance: Provenance) -> Wanted:
    """The read as the unit that its round would have."""
    run = _checkpoint(request)
    values = {
        "kind": "locked",
        "name": f"locked/{request.name}",
        "function": LOCKED_TEST_FUNCTION,
        "payload": {"sources": provenance.sources, "git_commit": provenance.commit, "trial": request.trial,
                    "name": request.name, "decision": request.decision or None, "transfer": request.transfer or None},
        "gpu": request.gpu,
        "timeout": request.timeout,
        "memory_mb": check_memory(request.memory_mb),
        "attempt_usd": round_up(compute_bound(request.gpu, request.timeout, 1)),
        "remote": f"locked/{request.name}",
        "local": f"runs/locked/{request.name}",
        "once": f"{run} locked",
        "session": provenance.session,
    }  # fmt: skip
    return f"locked/{request.name}", Order.model_validate(values)


def _checkpoint(request: LockedRequest) -> str:
    return checkpoint_of(f"runs/{request.trial.removeprefix('/runs/').strip('/')}", None) or ""


def check_request(root: Path, request: LockedRequest) -> dict[str, Suite]:
    """The suites to read, by path. Raises Refused wherever this machine can tell that the read may not be made."""
    if not STUDY_NAME.fullmatch(request.name):
        raise UsageError(f"locked read {request.name!r:.100}: a name is 1 to 80 letters, digits, _ or -")
    parse_gpu(request.gpu)
    check_memory(request.memory_mb)
    suites = {
        path: open_inside(root, path, flag)
        for flag, path in (("--decision", request.decision), ("--transfer", request.transfer))
        if path
    }
    if not suites:
        raise UsageError("a locked read needs --decision or --transfer")
    check_not_read(root, request, suites)
    check_local_gates(root, request)
    check_test_read(root, f"runs/locked/{request.name}", owner_allows=request.owner_allows)
    return suites


def check_local_gates(root: Path, request: LockedRequest) -> None:
    """Raises Refused where a trial that was pulled did not pass its gates and the name does not say so."""
    path = root / "runs" / request.trial.removeprefix("/runs/") / "result.json"
    try:
        gates = read_record(path, Result).gates
    except NotFound:
        return  # not pulled; the container looks at the trial itself
    if not (gates and gates.passed) and not request.name.endswith(UNGATED):
        raise Refused(f"locked read {request.name}: {request.trial} did not pass its in-trial gates, so the name must "
                      f"end in {UNGATED}")  # fmt: skip


def check_not_read(root: Path, request: LockedRequest, suites: dict[str, Suite]) -> None:
    """Raises Refused if the checkpoint's tests were read before, under this name or under any other."""
    path = root / "runs" / "locked" / request.name / "summary.json"
    try:
        done = read_record(path, LockedSummary).suites
    except NotFound:
        done = {}
    if {"decision", "transfer"} <= done.keys():
        raise Refused(f"locked read {request.name}: both suites have been read, see {path}; a locked test is read once")
    run = _checkpoint(request)
    own = f"runs/locked/{request.name}"
    others = other_locked_reads(root, run, f"{own}/decision")
    for suite in suites.values():
        key = ReadKey(run, suite.sha256, "test")
        others += [each for each in other_reads(root, key, own) if not each.startswith(f"{own}/")]
    if others:
        raise Refused(
            f"locked read {request.name}: {request.trial} was read before, in {others[0]}; a test is read once"
        )


def _say_figures(place: Place, home: Path) -> None:
    summary = read_record(home / "summary.json", LockedSummary)
    for label, suite in summary.suites.items():
        place.say(f"{home.name} {label}: acc {suite.clean['acc']:.4f} brier {suite.clean['brier']:.4f}")
