"""The seam between observing a bench and painting it: one immutable picture of a run, or of several compared.

What is not known is None, and is shown as missing. Texts are as the files have them: whoever paints makes them safe.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from kevtui.observe.snapshot import Finding


class RunState(StrEnum):
    RUNNING = "running"
    TIME_UP = "time is up"
    """The time has run out, and nobody has written down the end yet."""
    ENDED = "ended"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """What `run_meta.json` says of the time. Seconds."""

    state: RunState = RunState.UNKNOWN
    started_at: datetime | None = None
    ended_at: datetime | None = None
    last_submit_at: datetime | None = None
    timeout_s: float | None = None
    used_s: float | None = None

    @property
    def left_s(self) -> float | None:
        if self.timeout_s is None or self.used_s is None:
            return None
        return max(0.0, self.timeout_s - self.used_s)

    @property
    def share(self) -> float | None:
        """Used of the whole, 0 to 1."""
        if not self.timeout_s or self.timeout_s < 0 or self.used_s is None:
            return None
        return min(1.0, self.used_s / self.timeout_s)


@dataclass(frozen=True, slots=True)
class Submission:
    """An entry of `scores.json`. `score` is None where it is no finite number or the grading failed."""

    number: int
    at_s: float | None
    """Since the run began."""
    model_path: str
    score: float | None
    baseline: float | None
    improvement: float | None
    label: str | None
    error: str | None
    not_finite: bool = False
    best: bool = False
    """The highest score of the run, the first of equals."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What the grader is busy with, from its own store; `note` says why that is not known."""

    number: int | None = None
    model_path: str = ""
    accepted_s: float | None = None
    """Seconds since it was accepted."""
    waiting: int | None = None
    """Accepted after it and not graded."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One iteration as the agent's journal tells it."""

    number: int
    line: int | None
    """Of its heading in `summary.md`; None where only `summary.jsonl` has it."""
    at: str = ""
    duration_s: float | None = None
    succeeded: bool | None = None
    score: float | None = None
    improvement: float | None = None
    train_type: str = ""
    failure_type: str = ""
    configuration: str = ""
    what: str = ""
    why: str = ""
    problem: str = ""
    """Its "problem or progress", which holds a metric or a type of failure."""
    holds: bool | None = None
    """Whether what it says agrees with what the machine knows; None where that was not checked."""
    breaches: tuple[str, ...] = ()

    @property
    def failure_named(self) -> str:
        """The type of failure; "" where none is said, and of a round that went well "unknown" says none."""
        return "" if self.succeeded and self.failure_type == "unknown" else self.failure_type


@dataclass(frozen=True, slots=True)
class Journal:
    entries: tuple[JournalEntry, ...] = ()
    breaches: tuple[str, ...] = ()
    """Of the files as a whole."""
    note: str = ""
    """What the check marks mean, or why there are none."""


@dataclass(frozen=True, slots=True)
class FailureCount:
    kind: str
    count: int


@dataclass(frozen=True, slots=True)
class Final:
    """The verdict on hidden items, once the run is over."""

    verdict: str
    submission: int | None = None
    score: float | None = None
    baseline: float | None = None
    words: str = ""


@dataclass(frozen=True, slots=True)
class AgentLog:
    lines: tuple[str, ...] = ()
    """The end of `agent.log`."""
    path: str = ""
    age_s: float | None = None
    """Since it last changed, by its time stamp."""


@dataclass(frozen=True, slots=True)
class Gpu:
    name: str
    busy: float | None = None
    """0 to 1."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine that the dashboard runs on, which need not be the run's."""

    cores: int | None = None
    cpu_busy: float | None = None
    """0 to 1, since the picture before; None in the first one."""
    load: float | None = None
    """Processes that wanted to run, over the last minute."""
    memory_used: int | None = None
    memory_total: int | None = None
    """Bytes."""
    gpus: tuple[Gpu, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """One run: one agent in one workspace."""

    workspace: str
    task: str
    agent: str
    time: TimeBudget = TimeBudget()
    baseline: float | None = None
    submissions: tuple[Submission, ...] = ()
    evaluation: Evaluation = Evaluation()
    journal: Journal = Journal()
    failures: tuple[FailureCount, ...] = ()
    """Types of failure, of the journal and of gradings, the most frequent first."""
    final: Final | None = None
    log: AgentLog = AgentLog()

    @property
    def best(self) -> Submission | None:
        return next((each for each in self.submissions if each.best), None)


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run among others: a row of `results.csv`, or a workspace that has none yet."""

    run_id: str
    task: str
    agent: str
    state: RunState
    started: str = ""
    driver_model: str = ""
    base_model: str = ""
    baseline: float | None = None
    best: float | None = None
    improvement: float | None = None
    submissions: int | None = None
    used_s: float | None = None
    timeout_s: float | None = None
    verdict: str = ""
    rules: str = ""
    success: bool | None = None
    workspace: str = ""
    trajectory: tuple[tuple[float, float | None], ...] = ()
    """(seconds, score) of its submissions, where its workspace is here."""

    @property
    def key(self) -> str:
        return f"{self.task}/{self.run_id}"


@dataclass(frozen=True, slots=True)
class Cell:
    """What an agent reached on a task, over all of its runs."""

    agent: str
    task: str
    runs: int
    improvement: float | None
    """The highest."""
    running: int = 0


@dataclass(frozen=True, slots=True)
class Comparison:
    rows: tuple[RunRow, ...] = ()
    cells: tuple[Cell, ...] = ()

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(cell.task for cell in self.cells))

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(cell.agent for cell in self.cells))

    def cell(self, agent: str, task: str) -> Cell | None:
        return next((each for each in self.cells if (each.agent, each.task) == (agent, task)), None)


@dataclass(frozen=True, slots=True)
class BenchSnapshot:
    """Everything to be shown at one moment: a run, or several compared."""

    title: str
    taken_at: datetime
    path: str
    run: Run | None = None
    comparison: Comparison | None = None
    machine: Machine = Machine()
    findings: tuple[Finding, ...] = ()
    polling: str = ""
    """Why changes are polled for, or "" while the system tells of them."""
