"""Reads of checkpoints: one container for each job, every call on record, and an exit code that tells of failures."""

from pathlib import Path, PurePosixPath

from kev.budget import compute_bound, parse_gpu, recorded
from kev.compute.jobs import Job, check_suites, parse_jobs
from kev.compute.protocol import CallRef
from kev.entrypoints.deployed import check_deployed_sources
from kev.entrypoints.place import RUNS_VOLUME, Place
from kev.entrypoints.read_records import launch_read
from kev.entrypoints.waiting import failure_of, wait_for_end
from kev.errors import KevError, NotFound, Refused
from kev.records.base import read_record
from kev.records.read import ReadRecord
from kev.records.report import Report
from kev.rounds.once import ReadKey, other_reads
from kev.suite import Suite, open_suite
from kev.worker.container import git_commit
from kev.worker.flags import parse_flags
from kev.worker.orders import BENCHMARK_FUNCTION, BenchmarkOrder


async def run_benchmarks(place: Place, jobs: str, gpu: str, timeout: int) -> int:
    """Launch every job of `jobs`, wait for each, and bring it to `runs/<name>`.

    A job that was launched before, by a launcher that died, is waited for and not launched again. Returns the exit
    code: 1 if any job failed. Raises Refused and its like before anything is launched; a RemoteError.
    """
    wanted = parse_jobs(jobs)
    check_jobs(place.root, wanted, gpu, timeout)
    sources = await check_deployed_sources(place)
    commit = git_commit(place.root)
    calls = []
    for job in wanted:
        order = BenchmarkOrder(
            run_id=f"bench/{job.name}", sources=sources, git_commit=commit, run=job.run, suite=job.suite,
            name=job.name, flags=job.flags,
        )  # fmt: skip
        path = place.runs / f"{job.name}.read.json"
        call = await launch_read(place, path, record_of(place, job, gpu, timeout), BENCHMARK_FUNCTION, order)
        place.say(f"{job.name}: {call.id}")
        calls.append((job, call))
    failed = [job.name for job, call in calls if not await _bring_home(place, job, call)]
    return 1 if failed else 0


def check_jobs(root: Path, jobs: list[Job], gpu: str, timeout: int) -> None:
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


def _check_test_is_unread(root: Path, job: Job, suite: Suite) -> None:
    key = ReadKey(PurePosixPath(job.run).as_posix(), suite.sha256, "test")
    earlier = other_reads(root, key, job.local_directory)
    if earlier:
        raise Refused(f"job {job.name}: {job.run} was read on the test split of {job.suite} before, in {earlier[0]}")


def record_of(place: Place, job: Job, gpu: str, timeout: int) -> ReadRecord:
    """What is put on record of a job before it is spawned."""
    seconds = timeout or job.timeout_s
    return ReadRecord(
        name=job.name, kind="benchmark", run=job.run, suites=[job.suite], flags=job.flags, gpu=gpu, timeout=seconds,
        bound_usd=recorded(compute_bound(gpu, seconds, 1)), at=place.now(), call=None,
    )  # fmt: skip


async def _bring_home(place: Place, job: Job, call: CallRef) -> bool:
    """Wait for a job and pull what it wrote; says how it went, and whether it went well."""
    state = await wait_for_end(place, call)
    why = failure_of(state)
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
