"""The Snapshot: one immutable picture of a session at one moment, the only thing a widget reads.

Plain frozen dataclasses: this is imported before the first frame. Money is Decimal in US dollars; moments are
UTC-aware; durations end in `_s` and are seconds. None means "not known", never 0.

Texts that come from files are held raw, and lose nothing; whoever paints one passes it through `kev.text.visible`.
"""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from kevtui.observe.states import LeaseState, ReadState, Section, Severity, TrialState, Verdict, WatcherState

__all__ = [
    "Alert", "Arm", "Criterion", "Divergence", "Event", "Finding", "Lease", "LeaseState", "Money", "Point",
    "Projection", "Rate", "ReadCell", "ReadState", "Readout", "Reads", "Replay", "Section", "Severity", "Slowing",
    "Snapshot", "StageVerdict", "Study", "Trial", "TrialState", "Verdict", "Watcher", "WatcherState",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Money:
    """Spend against the authorization. `committed_complete` is false where a ledger could not be read."""

    authorization: Decimal | None = None
    baseline: Decimal | None = None
    metered: Decimal | None = None
    spent: Decimal | None = None
    committed: Decimal | None = None
    reserve: Decimal | None = None
    headroom: Decimal | None = None
    committed_complete: bool = True
    committed_note: str = ""
    """Why the sum is no bound, or why it is zero: "a ledger cannot be read", "all settled", "nothing launched"."""
    reading_at: datetime | None = None
    reading_age_s: float | None = None
    """None without a reading, and for one that is dated ahead of this machine's clock, which is stale as well."""
    reading_stale: bool = False
    source: str = ""
    """Where the reading comes from: a state file's name, a spec's budget block, a provider."""
    simulated: bool = False
    burn_per_hour: Decimal | None = None
    exhausted_in_s: float | None = None
    exhaustion_note: str = ""
    """What the figure rests on, "at the last known rate", or why there is none."""
    gateway_spent: Decimal | None = None
    gateway_authorization: Decimal | None = None
    readings: tuple[tuple[datetime, Decimal], ...] = ()
    """(moment, spent since the baseline), oldest first."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Optimizer steps per minute over the last `span_s` seconds, and what it was measured on."""

    steps_per_minute: float
    span_s: float
    basis: str
    """`metrics` (the trainer's own timestamps), `arrival` (when log lines came), `resume point`."""


@dataclass(frozen=True, slots=True)
class Projection:
    """When training should end, against when its container is stopped. Bounds come from the spread of the rate."""

    remaining_s: float
    remaining_low_s: float
    remaining_high_s: float
    finish_at: datetime
    timeout_at: datetime | None
    past_timeout: bool


@dataclass(frozen=True, slots=True)
class Slowing:
    """Steps per minute far below what was `usual` for this very trial before `since_step`."""

    steps_per_minute: float
    usual: float
    since_step: int


@dataclass(frozen=True, slots=True)
class Divergence:
    """A `loss` or `gradient norm` that is not finite (None), or far above usual; `lasting`: in the newest step too."""

    figure: str
    since_step: int
    lasting: bool
    value: float | None = None
    usual: float | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """One logged step; `at_s` is seconds since the first timed point of the trial, or None without a clock."""

    step: int
    loss: float | None
    at_s: float | None = None
    steps_per_minute: float | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    study: str
    label: str
    index: int | None
    state: TrialState
    call: str | None = None
    attempts_used: int | None = None
    attempts_allowed: int | None = None
    error: str | None = None
    note: str = ""
    """One short remark on the state: "read", "continuation waits for lease", "no step line yet"."""
    step: int | None = None
    steps: int | None = None
    loss: float | None = None
    finished: bool = False
    rate: Rate | None = None
    rate_note: str = ""
    """Why there is no rate: "this log has no clock", "no step line yet"."""
    projection: Projection | None = None
    slowing: Slowing | None = None
    divergences: tuple[Divergence, ...] = ()
    started_at: datetime | None = None
    log: str | None = None
    log_age_s: float | None = None
    resume_step: int | None = None
    work_at_risk_s: float | None = None
    scoring: tuple[int, int] | None = None
    points: tuple[Point, ...] = ()

    @property
    def id(self) -> str:
        return f"{self.study}/{self.label}"


@dataclass(frozen=True, slots=True)
class Study:
    name: str
    state: TrialState
    status_text: str = ""
    """The file's own words, where it has some."""
    gpu: str | None = None
    timeout_s: float | None = None
    full_weight: bool | None = None
    bound: Decimal | None = None
    budget: Decimal | None = None
    settled: bool = False
    """True where nothing of it can cost more; its bound is then no longer committed."""
    launched: bool = False
    """True where a ledger or a state file says that calls were made; a planned study commits nothing."""
    trials: tuple[Trial, ...] = ()


@dataclass(frozen=True, slots=True)
class Lease:
    trial: str
    """`<study>/<label>`."""
    state: LeaseState
    unchanged_s: float | None = None
    """Seconds of local monotonic time since the heartbeat last changed; None before it changed once."""
    stamp_age_s: float | None = None
    """This clock minus the heartbeat's stamp: off by the skew between the two machines."""
    skew_s: float | None = None
    """Estimated lead of the remote clock, where the heartbeat was seen to change."""
    nonce_matches: bool | None = None
    attempt: int | None = None
    call: str | None = None


@dataclass(frozen=True, slots=True)
class Watcher:
    state: WatcherState
    age_s: float | None = None
    source: str = ""
    note: str = ""
    """That the provider does not answer it, or asked it to slow down, and since when."""


@dataclass(frozen=True, slots=True)
class ReadCell:
    """One arm (or parent) by one read tag."""

    owner: str
    tag: str
    state: ReadState
    directory: str = ""
    age_s: float | None = None
    progress: tuple[int, int] | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Reads:
    owners: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    cells: tuple[ReadCell, ...] = ()

    def cell(self, owner: str, tag: str) -> ReadCell | None:
        return next((cell for cell in self.cells if cell.owner == owner and cell.tag == tag), None)


@dataclass(frozen=True, slots=True)
class Criterion:
    """One registered comparison, as the read-out recorded it. `value` and `threshold` are the two operands."""

    name: str
    kind: str
    """`primary`, `guard`, `calibration` or `other`, after the prefix of the name (1_, 2_, 3_)."""
    verdict: Verdict
    left: str = ""
    op: str = ""
    right: str = ""
    value: float | None = None
    threshold: float | None = None
    candidate: float | None = None
    parent: float | None = None
    delta: float | None = None
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True, slots=True)
class Arm:
    name: str
    size: str
    passed: bool | None = None
    complete: bool = False
    selectable: bool = True
    """False for an attribution arm: reported, never a candidate."""
    note: str = ""
    """"not read yet", "no criteria registered"."""
    parent: str = ""
    trial: str | None = None
    checkpoint: str | None = None
    temperature: float | None = None
    temperature_low: float | None = None
    temperature_high: float | None = None
    temperature_source: str = ""
    parent_temperature: float | None = None
    in_distribution: bool = False
    """True where the temperature was fitted on rows of a training corpus."""
    unknowable: tuple[float | None, float | None] | None = None
    criteria: tuple[Criterion, ...] = ()
    missing: tuple[str, ...] = ()
    missing_optional: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Readout:
    """`source` is the read-out's path, or "" where only the spec is known and nothing has been read out."""

    round: int | None = None
    registered: str = ""
    source: str = ""
    age_s: float | None = None
    arms: tuple[Arm, ...] = ()
    candidates: tuple[tuple[str, str | None], ...] = ()
    """(size, arm or None)."""


@dataclass(frozen=True, slots=True)
class StageVerdict:
    """The result of one confirmation stage, or its absence."""

    size: str
    stage: str
    passed: bool | None = None
    source: str = ""
    criteria: tuple[Criterion, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    severity: Severity
    text: str
    at: datetime | None = None
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A file that cannot be believed. What it last held stays in use, `last_good_age_s` old."""

    path: str
    reason: str
    last_good_age_s: float | None = None


@dataclass(frozen=True, slots=True)
class Alert:
    """Something that deserves a look now; docs/alerts.md lists the kinds."""

    code: str
    severity: Severity
    subject: str
    text: str
    condition: str = ""
    """What an acknowledgement is good for: another condition, or a graver severity, is told again."""
    acknowledged: bool = False

    @property
    def id(self) -> str:
        return f"{self.code}:{self.subject}" if self.subject else self.code


@dataclass(frozen=True, slots=True)
class Replay:
    """What of the night is replayed, where `taken_at` lies in the past: nothing later than it is shown."""

    begins_at: datetime
    ends_at: datetime
    speed: float = 1.0
    """Seconds of the night in one second."""
    playing: bool = False
    untimed: tuple[str, ...] = ()
    """What no time is recorded of, in words: it may have been there at this moment, and is not shown."""
    alerts_now: int = 0
    """Of the alerts, those of the session as it is at present, where it goes on while its past is looked at."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything known at `taken_at`. `changed` names the sections that differ from the Snapshot before."""

    taken_at: datetime
    title: str
    root: str
    session: str | None = None
    round: int | None = None
    spec: str | None = None
    state_file: str | None = None
    sample: bool = False
    """True where the files themselves say that they are a made-up sample."""
    polling: str = ""
    """Why changes are polled for instead of told by the system, or ""."""
    money: Money = field(default_factory=Money)
    studies: tuple[Study, ...] = ()
    leases: tuple[Lease, ...] = ()
    watcher: Watcher = field(default_factory=lambda: Watcher(WatcherState.NONE))
    reads: Reads = field(default_factory=Reads)
    readout: Readout | None = None
    verdicts: tuple[StageVerdict, ...] = ()
    events: tuple[Event, ...] = ()
    findings: tuple[Finding, ...] = ()
    alerts: tuple[Alert, ...] = ()
    replay: Replay | None = None
    """Set where this is a moment of the past and not what is known now."""
    changed: frozenset[str] = frozenset()

    @property
    def trials(self) -> tuple[Trial, ...]:
        return tuple(trial for study in self.studies for trial in study.trials)

    @property
    def urgent(self) -> tuple[Alert, ...]:
        """What is wrong, without what somebody knows of."""
        return tuple(each for each in self.alerts if each.severity is not Severity.INFO and not each.acknowledged)
