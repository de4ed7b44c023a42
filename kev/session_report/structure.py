"""The report as data. None is unknown or not there, never zero; money is Decimal, times are UTC."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from kev.session.state import utc_text


@dataclass(frozen=True, slots=True)
class Row:
    """One row of what is out: a name and the most it can still cost."""

    name: str
    usd: Decimal | None


@dataclass(frozen=True, slots=True)
class Money:
    """What the session may spend and has spent, in US dollars."""

    authorization: Decimal
    reserve: Decimal
    baseline: Decimal | None
    cycle: str | None
    """Billing cycle of the baseline."""
    spent: Decimal | None
    """Since the baseline, over all billing cycles."""
    carried: Decimal | None
    """The part of it that is from cycles that have ended."""
    metered: Decimal | None
    """The last reading."""
    billed: Decimal | None
    read_at: datetime | None
    age_s: float | None
    gap: str
    """Metered and billed side by side, in words; empty where the provider did not say what it bills."""
    alarming: bool
    """Whether more is billed than the meter can explain."""
    running: tuple[Row, ...]
    committed: Decimal
    committed_is_complete: bool
    headroom: Decimal | None
    gateway_authorization: Decimal | None
    gateway_spent: Decimal | None


@dataclass(frozen=True, slots=True)
class Pending:
    """Work on which something may still be spent."""

    name: str
    """The unit's id in the ledger, or the name of what others started."""
    state: str
    call: str | None
    attempt: int
    attempts: int
    since: datetime | None
    usd: Decimal | None
    """The most that it can still cost."""
    command: str
    """What finishes it."""


@dataclass(frozen=True, slots=True)
class Incident:
    """Something that went wrong, or nearly, as the journal has it."""

    first: datetime | None
    last: datetime | None
    times: int
    kind: str
    severity: str
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class ReadPart:
    """One read behind a panel."""

    tag: str
    suite: str | None
    split: str | None
    report: str | None
    """Path of its report."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One metric of a panel on both sides."""

    metric: str
    candidate: float | None
    parent: float | None
    delta: float | None
    lower: float | None
    upper: float | None
    n: int | None
    """Questions it covers: the panel's, unless it is of a part of it."""


@dataclass(frozen=True, slots=True)
class PanelResult:
    """One panel of an arm."""

    name: str
    n: int | None
    """Questions."""
    reads: tuple[ReadPart, ...]
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class ArmResult:
    """One arm against its parent."""

    arm: str
    checkpoint: str | None
    parent: str | None
    parent_checkpoint: str | None
    temperature: float | None
    temperature_source: str
    """What it was fitted on, in words."""
    parent_temperature: float | None
    complete: bool | None
    passed: bool | None
    criteria: Mapping[str, bool | None]
    missing: tuple[str, ...]
    panels: tuple[PanelResult, ...]


@dataclass(frozen=True, slots=True)
class VerdictResult:
    """One confirmation stage that was decided."""

    stage: str
    arm: str | None
    passed: bool | None
    path: str
    result: ArmResult


@dataclass(frozen=True, slots=True)
class RoundResult:
    """One round of the session."""

    round: int
    spec: str
    registered_at: datetime | None
    arms_tried: int
    """Arms of the spec: with more of them the best one says less."""
    arms_read: int
    readout: str | None
    """Path of the read-out; None while there is none."""
    candidates: Mapping[str, str | None]
    """Size to the arm that the rule selected."""
    arms: tuple[ArmResult, ...]
    verdicts: tuple[VerdictResult, ...]


@dataclass(frozen=True, slots=True)
class NextStep:
    """Something worth doing, and what speaks for it."""

    what: str
    command: str
    evidence: str


@dataclass(frozen=True, slots=True)
class SessionReport:
    """All of it, as of `at`."""

    session: str
    simulated: bool
    """Whether all money in it is simulated."""
    at: datetime
    opened_at: datetime | None
    closed_at: datetime | None
    mode: str
    """`running`, or how the session is paused."""
    money: Money
    pending: tuple[Pending, ...]
    incidents: tuple[Incident, ...]
    rounds: tuple[RoundResult, ...]
    next_steps: tuple[NextStep, ...]
    findings: tuple[str, ...]
    """Files that could not be believed, and so are not in the rest."""

    def to_json(self) -> dict[str, Any]:
        """The report as JSON values: amounts as decimal text, times in ISO 8601."""
        value = _plain(self)
        assert isinstance(value, dict)
        return value


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        return utc_text(value)
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return value
