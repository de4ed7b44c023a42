"""What kev asks of the place where work runs, in plain types: nothing of `modal` is in here.

Every method may raise the errors of `kev.compute.errors`, and only those for what happens on the other side.
A generator that is left early must be closed (`contextlib.aclosing`).
Sizes are bytes, durations seconds, moments UTC-aware, amounts US dollars.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

JsonObject = Mapping[str, Any]
"""A JSON object: text keys, and values that JSON has."""


class Phase(StrEnum):
    """How a call stands."""

    ACTIVE = "active"
    """Waiting for a container, or running in one; `get` cannot tell these apart, `recent_calls` can."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """The remote code raised, or its container could not start or was killed."""
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    LOST = "lost"
    """The platform lost the container and gave up."""
    EXPIRED = "expired"
    """It ended, and its result is no longer kept."""
    MISSING = "missing"
    """No such call in this workspace."""

    @property
    def is_terminal(self) -> bool:
        return self is not Phase.ACTIVE


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose account this is."""

    workspace: str
    environment: str
    server: str
    simulated: bool
    """True where nothing is billed: the emulator. Its amounts must never be shown without the word."""


@dataclass(frozen=True, slots=True)
class AppState:
    """The deployed app."""

    id: str
    name: str
    version: int
    deployed_at: datetime | None
    functions: tuple[str, ...]


class DeployEventKind(StrEnum):
    OUTPUT = "output"
    DEPLOYED = "deployed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class DeployEvent:
    """One line of a deployment, or its end."""

    kind: DeployEventKind
    text: str


@dataclass(frozen=True, slots=True)
class CallRef:
    """A call that was accepted. `id` alone finds it again; the rest is for people."""

    id: str
    function: str = ""
    run_id: str = ""


@dataclass(frozen=True, slots=True)
class CallState:
    """How a call stood at `at`."""

    phase: Phase
    at: datetime = field(compare=False)
    result: Any = None
    """What the call returned, as JSON values; None unless it succeeded."""
    error: str = ""
    """One safe line."""
    container_id: str = ""


@dataclass(frozen=True, slots=True)
class CallSummary:
    """One row of the platform's own list of calls."""

    id: str
    phase: Phase
    status: str
    """The platform's word: `pending` and `running` are both ACTIVE."""
    enqueued_at: datetime | None
    started_at: datetime | None
    container_id: str
    execution_s: float | None


class EntryKind(StrEnum):
    FILE = "file"
    DIRECTORY = "directory"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or directory on a volume, as last committed."""

    path: str
    """From the root of the volume, without a leading slash."""
    kind: EntryKind
    size: int
    modified: int
    """Unix seconds."""


@dataclass(frozen=True, slots=True)
class PullProgress:
    """How far a pull is. `path` is the file whose progress was last reported."""

    path: str
    files_done: int
    files: int
    bytes_done: int
    bytes: int


@dataclass(frozen=True, slots=True)
class PullReport:
    """What a pull did. Paths are relative to its destination."""

    fetched: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """Were already there, complete."""
    withheld: tuple[str, ...] = ()
    """Weights and resume points that were not asked for."""
    verified: tuple[str, ...] = ()
    """Agree with the sha256 that a manifest among the files gives for them."""
    bytes_fetched: int = 0

    def __add__(self, other: "PullReport") -> "PullReport":
        """What two pulls, into places of their own, did together."""
        return PullReport(self.fetched + other.fetched, self.kept + other.kept, self.withheld + other.withheld,
                          self.verified + other.verified, self.bytes_fetched + other.bytes_fetched)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line that a container, or the platform about it, wrote."""

    text: str
    """Safe for a terminal, and bounded."""
    at: datetime
    source: str
    """`stdout`, `stderr` or `system`."""
    call_id: str = ""
    container_id: str = ""
    function_id: str = ""
    input_id: str = ""


@dataclass(frozen=True, slots=True)
class Container:
    """A container that runs or waits for a machine."""

    id: str
    app_id: str
    app_name: str
    started_at: datetime | None
    """None while it is pending."""


@dataclass(frozen=True, slots=True)
class CostRow:
    """What one app cost in one interval. Billing knows apps, not calls."""

    app_id: str
    description: str
    environment: str
    start: datetime
    cost: Decimal
    by_resource: Mapping[str, Decimal]
    tags: Mapping[str, str]
    simulated: bool


@dataclass(frozen=True, slots=True)
class CostSummary:
    """What the workspace cost since the billing cycle began."""

    start: datetime
    end: datetime
    metered: Decimal
    billed: Decimal
    by_resource: Mapping[str, Decimal]
    adjustments: Mapping[str, Decimal]
    simulated: bool


class Compute(Protocol):
    """Where work runs."""

    async def ping(self) -> Identity: ...

    async def app(self) -> AppState | None:
        """The app as deployed now, or None."""
        ...

    def deploy(self, ref: str, *, tag: str = "") -> AsyncGenerator[DeployEvent, None]:
        """Deploy the app in the file `ref`. Ends with exactly one DEPLOYED or FAILED event.

        Leaving the iterator early ends the deployment.
        """
        ...

    async def spawn(
        self, function: str, payload: JsonObject, *, run_id: str, gpu: str | None = None, timeout_s: int | None = None,
        memory_mb: int | None = None,
    ) -> CallRef:  # fmt: skip
        """Start `function` with one argument: `payload` with `run_id` added; on other cards, or with another time or
        limit of memory, than it was deployed with.

        Never repeated here. An error with `may_have_happened` leaves open whether a call exists: the caller writes
        its intent before, and looks (`recent_calls`, the lease of `run_id`) before it tries again.
        """
        ...

    async def poll(self, ref: CallRef, *, wait_s: float = 0) -> CallState:
        """How the call stands, after waiting up to `wait_s` for its end. A failure of the call is a phase."""
        ...

    async def cancel(self, ref: CallRef, *, hard: bool = False) -> None:
        """Ask the code of the call to stop; `hard` kills its container. Nothing to cancel is no error."""
        ...

    async def settle(self, ref: CallRef, *, soft_s: float, hard_s: float) -> CallState:
        """Cancel softly, after `soft_s` hard, and watch for `hard_s` more. ACTIVE means that it did not end."""
        ...

    async def recent_calls(self, function: str, *, since: datetime) -> list[CallSummary]:
        """Calls of `function` under whatever options, newest first; at most the last 1,000."""
        ...

    async def listdir(self, volume: str, path: str, *, recursive: bool = False) -> list[Entry]:
        """What is under `path`, as of at most a few seconds ago; empty if there is no such directory or volume."""
        ...

    async def read(self, volume: str, path: str, *, limit: int) -> bytes | None:
        """The bytes of a file, or None if there is none. Raises Refused for one longer than `limit`."""
        ...

    async def pull(
        self, volume: str, path: str, dest: Path, *, weights: bool = False,
        on_progress: Callable[[PullProgress], None] | None = None,
    ) -> PullReport:  # fmt: skip
        """Bring the tree at `path` to `dest`. Repeating it fetches only what is missing or differs."""
        ...

    def log_stream(self, *, idle_s: float) -> AsyncGenerator[LogLine, None]:
        """Every line of the app as it is written, until none came for `idle_s`."""
        ...

    async def log_tail(self, ref: CallRef, n: int) -> list[LogLine]:
        """The last `n` lines of a call."""
        ...

    async def containers(self) -> list[Container]: ...

    async def billing(self, start: datetime, end: datetime) -> list[CostRow]:
        """Cost by app and hour."""
        ...

    async def billing_summary(self) -> CostSummary: ...

    async def rates(self) -> dict[str, Decimal]:
        """US dollars by resource, as the platform prices them; cached for a day."""
        ...

    async def aclose(self) -> None: ...
