"""Benchmark jobs: `run@suite@name[@flags]`, several separated by commas, one batch for each arm.

Read from the right, since a run may itself hold one `@`: `repo@revision@suite@name`.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kev.errors import KevError, Refused, UsageError

READ_TIMEOUTS = {"longstate": 7200, "documents": 5400, "transfer-v9": 3600, "longdoc": 10_800}
"""Seconds for a suite whose name holds the word; the first that does decides."""

DEFAULT_READ_TIMEOUT = 1800
BENCH_ROOT = "/runs/bench"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class Job:
    """One run read on one suite. `run` is a directory on the volume, or a hub id with its revision."""

    run: str
    suite: str
    name: str
    flags: str = ""

    def __post_init__(self) -> None:
        """Raises UsageError for a job that could not be written down and read back."""
        for field_name, value, forbidden in (
            ("suite", self.suite, "@,"),
            ("name", self.name, "@,"),
            ("run", self.run, ","),
            ("flags", self.flags, "@,"),
        ):
            if found := next((each for each in forbidden if each in value), None):
                raise UsageError(f"job {self.name!r:.60}: {field_name} {value!r:.60} may not hold {found!r}")
        if not (self.run and self.suite and self.name):
            raise UsageError(f"job {self.name!r:.60}: run, suite and name must all be given")
        if "" in self.run.split("@") or self.run.count("@") > 1:
            raise UsageError(f"job {self.name!r:.60}: run {self.run!r:.60} is neither a directory nor repo@revision")
        if self.flags and not self.flags.startswith("--"):
            raise UsageError(f"job {self.name!r:.60}: flags {self.flags!r:.60} must begin with --")
        if self.name.startswith("--"):
            raise UsageError(f"job {self.name!r:.60}: a name may not begin with --, it would be read as flags")
        if not _NAME.fullmatch(self.name):
            raise UsageError(f"job {self.name!r:.60}: the name is one directory; use letters, digits, _ . and -")

    def __str__(self) -> str:
        return "@".join([self.run, self.suite, self.name, *([self.flags] if self.flags else [])])

    @property
    def timeout_s(self) -> int:
        """Seconds that the job may take."""
        return read_timeout(self.suite)

    @property
    def is_data(self) -> bool:
        """Whether `suite` is one file of records rather than a frozen suite."""
        return self.suite.endswith(".jsonl")

    @property
    def remote_directory(self) -> str:
        """Where the container writes, on the runs volume."""
        return f"{BENCH_ROOT}/{self.name}"

    @property
    def local_directory(self) -> str:
        return f"runs/{self.name}"


def read_timeout(suite: str) -> int:
    """Seconds for a read of `suite`."""
    return next((seconds for word, seconds in READ_TIMEOUTS.items() if word in suite), DEFAULT_READ_TIMEOUT)


def parse_job(text: str) -> Job:
    """`run@suite@name[@flags]` as a job. Raises UsageError naming the job and what is wrong."""
    fields = text.strip().split("@")
    flags = fields.pop() if len(fields) > 1 and fields[-1].startswith("--") else ""
    if "" in fields or not 3 <= len(fields) <= 4:
        raise UsageError(f"job {text!r:.80}: write run@suite@name, with @--flags at the end if any")
    *run, suite, name = fields
    return Job("@".join(run), suite, name, flags)


def parse_jobs(text: str) -> list[Job]:
    """Jobs separated by commas. Raises UsageError; two jobs of one name would write into each other's directory."""
    jobs = [parse_job(part) for part in text.split(",")]
    seen: set[str] = set()
    for job in jobs:
        if job.name.casefold() in seen:
            raise UsageError(f"job {job.name!r:.60}: named twice (names that differ only in case count as one)")
        seen.add(job.name.casefold())
    return jobs


def check_suites(jobs: Iterable[Job], root: Path) -> None:
    """Refuse jobs whose suite or data file is not in this checkout: a container would find that out for money.

    Raises Refused naming the first.
    """
    for job in jobs:
        path = root / job.suite
        if Path(job.suite).is_absolute() or ".." in Path(job.suite).parts:
            raise Refused(f"job {job.name}: suite {job.suite} must be a path inside this checkout")
        there = path.is_file() if job.is_data else path.is_dir()
        if not there:
            raise Refused(f"job {job.name}: no {'file' if job.is_data else 'suite'} {job.suite} in this checkout")


@dataclass(frozen=True, slots=True)
class Batch:
    """The reads of one arm, launched together; `calls` has the call id of every job that was started."""

    arm: str
    gpu: str
    jobs: tuple[Job, ...]
    timeout_s: int | None = None
    """For every job; None is each suite's own."""
    calls: dict[str, str] = field(default_factory=dict)
    """Job name to call id."""

    def timeout_of(self, job: Job) -> int:
        return self.timeout_s or job.timeout_s

    def with_call(self, job: Job, call_id: str) -> "Batch":
        """The batch after `job` was started. Raises KevError if the job is unknown or already has another call."""
        if job not in self.jobs:
            raise KevError(f"{self.arm}: {job.name} is no job of this batch")
        if self.calls.get(job.name, call_id) != call_id:
            raise KevError(f"{self.arm}: {job.name} already runs as {self.calls[job.name]}; it was started twice")
        return Batch(self.arm, self.gpu, self.jobs, self.timeout_s, {**self.calls, job.name: call_id})

    @property
    def unstarted(self) -> Sequence[Job]:
        """Jobs without a call, in order."""
        return [job for job in self.jobs if job.name not in self.calls]
