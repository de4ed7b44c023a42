"""Reads of checkpoints: one container for each job, every call on record, and an exit code that tells of failures."""

from pathlib import Path, PurePosixPath

from kev.budget import compute_bound, parse_gpu
from kev.compute.jobs import Job, check_suites, parse_jobs
from kev.compute.protocol import CallRef
from kev.entrypoints.by_hand import open_gate, provenance_of
from kev.entrypoints.place import RUNS_VOLUME, Place
from kev.entrypoints.reads import launch_read, reserve_reads, wait_for_read
from kev.errors import KevError, NotFound, Refused
from kev.gate import Gate
from kev.ledger.units import read_id
from kev.procedure.reading_tests import check_test_read
from kev.records.base import read_record
from kev.records.ledger import Order
from kev.records.report import Report
from kev.rounds.deployed import check_deployed
from kev.rounds.once import ReadKey, other_reads
from kev.rounds.trial_orders import Provenance, Wanted, round_up
from kev.suite import Suite, open_suite
from kev.worker.flags import parse_flags
from kev.worker.orders import BENCHMARK_FUNCTION
from kev.worker.sources import source_hashes


async def run_benchmarks(place: Place, jobs: str, gpu: str, timeout: int, owner_allows: str = "") -> int:
    """Launch every job of `jobs`, wait for each, and bring it to `runs/<name>`.

    A job that was launched before, by a launcher that died, is waited for and not launched again. Returns the exit
    code: 1 if any job failed. Raises Refused and its like before anything is launched; a RemoteError.
    """
    wanted = parse_jobs(jobs)
    check_jobs(place.root, wanted, gpu, timeout, owner_allows)
    gate = open_gate(place)
    orders = [read_order(place.root, job, gpu, timeout, provenance_of(place, gate)) for job in wanted]
    known = gate.ledger.read().by_id
    if any(unit_id not in known or not known[unit_id].counted for unit_id, _ in orders):
        await check_deployed(gate, place.app_name, source_hashes(place.root))
    await reserve_reads(gate, f"reads {', '.join(job.name for job in wanted)}", orders)
    calls = []
    for job, (unit_id, _) in zip(wanted, orders, strict=True):
        call = await launch_read(gate, unit_id)
        place.say(f"{job.name}: {call.id}")
        calls.append((job, unit_id, call))
    failed = [job.name for job, unit_id, call in calls if not await _bring_home(place, gate, job, unit_id, call)]
    return 1 if failed else 0


def check_jobs(root: Path, jobs: list[Job], gpu: str, timeout: int, owner_allows: str = "") -> None:
    """Raises before money is spent what a container would find out for money."""
    parse_gpu(gpu)
    if timeout < 0:
        raise Refused(f"--timeout {timeout}: write a number of seconds, or 0 for that of each suite")
    check_suites(jobs, root)
    for job in jobs:
        options = parse_flags(job.flags)
        if (root / job.local_directory).exists():
            raise Refused(f"job {job.name}: {job.local_directory} exists; a read never replaces another")
        if not job.is_data:
            suite = open_suite(root / job.suite)
            suite.entry(options.split)
            if options.split == "test":
                _check_test_is_unread(root, job, suite)
                check_test_read(root, job.local_directory, owner_allows=owner_allows)


def _check_test_is_unread(root: Path, job: Job, suite: Suite) -> None:
    key = ReadKey(PurePosixPath(job.run).as_posix(), suite.sha256, "test")
    earlier = other_reads(root, key, job.local_directory)
    if earlier:
        raise Refused(f"job {job.name}: {job.run} was read on the test split of {job.suite} before, in {earlier[0]}")


def read_order(root: Path, job: Job, gpu: str, timeout: int, provenance: Provenance) -> Wanted:
    """A job as the unit that its round would have: whoever wants the directory filled wants the same thing."""
    seconds = timeout or job.timeout_s
    values = {
        "kind": "read",
        "name": job.name,
        "function": BENCHMARK_FUNCTION,
        "payload": {"sources": provenance.sources, "git_commit": provenance.commit, "run": job.run, "suite": job.suite,
                    "name": job.name, "flags": job.flags},
        "gpu": gpu,
        "timeout": seconds,
        "attempt_usd": round_up(compute_bound(gpu, seconds, 1)),
        "remote": f"bench/{job.name}",
        "local": job.local_directory,
        "once": _once(root, job),
        "session": provenance.session,
    }  # fmt: skip
    return read_id(job.local_directory), Order.model_validate(values)


def _once(root: Path, job: Job) -> str | None:
    if job.is_data or parse_flags(job.flags).split != "test":
        return None
    return f"{PurePosixPath(job.run).as_posix()} {open_suite(root / job.suite).sha256} test"


async def _bring_home(place: Place, gate: Gate, job: Job, unit_id: str, call: CallRef) -> bool:
    """Wait for a job and pull what it wrote; says how it went, and whether it went well."""
    why = await wait_for_read(place, gate, unit_id, call)
    local = place.root / job.local_directory
    try:
        await place.compute.pull(RUNS_VOLUME, f"/bench/{job.name}", local)
    except NotFound:
        why = why or "left nothing on the volume"
    if why is not None:
        place.say(f"{job.name}: FAILED {why.removeprefix('failed: ')}")
        return False
    try:
        clean = read_record(local / "report.json", Report).clean
    except KevError as error:
        place.say(f"{job.name}: FAILED {error}")
        return False
    place.say(f"{job.name}: acc {clean['acc']:.4f} brier {clean['brier']:.4f}")
    return True
