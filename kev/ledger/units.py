"""What a ledger's events come to: units of work, their attempts, and the most they can still cost.

A unit's id derives from what is wanted, so that wanting the same thing twice is one unit:

    trial/<study>/<label>      read/<directory>             locked/<name>
    blend/<study>/<prefix>     mirror/<repository>/<hash>   rescore/<study>/<NN>-<label>/<n>
    agent/<name>               sources/<app>/<id>/v<version>/<hash>/<n>
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import PurePosixPath

from kev.records.ledger import LedgerEvent, Order

BILLING_LAG_S = 3600.0
"""Work that ended less than this before a billing reading may not be in it yet, and is still counted.

The provider meters within minutes as a rule and promises nothing; its report knows full hours only.
"""

END_MARGIN_S = 180.0
"""Seconds that an end may be noticed early or late by clocks that are corrected meanwhile."""


@dataclass(slots=True)
class Attempt:
    """One container run of a unit, or the intent of one."""

    nonce: str
    at: float
    call: str | None = None
    ended_at: float | None = None
    outcome: str | None = None
    text: str | None = None
    withdrawn: bool = False
    abandoned: bool = False

    @property
    def live(self) -> bool:
        """Whether it may be running, as far as anyone has positive evidence of the contrary."""
        return self.ended_at is None and not self.withdrawn

    @property
    def pending(self) -> bool:
        """Whether its spawn was under way, or was interrupted, and no call is known."""
        return self.live and self.call is None


@dataclass(slots=True)
class Unit:
    """One thing that was wanted. Change it only through the ledger."""

    id: str
    order: Order
    attempts: list[Attempt] = field(default_factory=list)
    wanted_at: float = 0.0
    settled_at: float | None = None
    outcome: str | None = None
    text: str | None = None
    cancelled_by: str | None = None

    @property
    def settled(self) -> bool:
        return self.settled_at is not None

    @property
    def counted(self) -> list[Attempt]:
        """Attempts that count against those allowed."""
        return [attempt for attempt in self.attempts if not attempt.withdrawn]

    @property
    def current(self) -> Attempt | None:
        counted = self.counted
        return counted[-1] if counted else None

    @property
    def live(self) -> Attempt | None:
        """The attempt that may be running; there is never more than one."""
        return next((attempt for attempt in self.attempts if attempt.live), None)

    @property
    def attempts_left(self) -> int:
        return max(0, self.order.attempts - len(self.counted))

    def rest(self) -> Decimal:
        """The most that attempts which are running or still allowed can cost."""
        if self.settled:
            return Decimal(0)
        return self.order.attempt_usd * (self.attempts_left + (self.live is not None))

    def unseen(self, metered_at: float) -> Decimal:
        """The most that ended attempts may have cost which a reading made at `metered_at` (Unix seconds) lacks."""
        return sum((self._cost_cap(attempt) for attempt in self.attempts
                    if attempt.ended_at is not None and not attempt.withdrawn
                    and attempt.ended_at > metered_at - BILLING_LAG_S), Decimal(0))  # fmt: skip

    def _cost_cap(self, attempt: Attempt) -> Decimal:
        elapsed = (attempt.ended_at or attempt.at) - attempt.at
        if elapsed < 0:
            return self.order.attempt_usd  # the clock was set back meanwhile: it tells nothing
        share = min(Decimal(1), Decimal(str(round(elapsed + END_MARGIN_S, 3))) / self.order.timeout)
        return self.order.attempt_usd * share


@dataclass(slots=True)
class Units:
    """All of them, by id, in the order they were first wanted."""

    by_id: dict[str, Unit] = field(default_factory=dict)
    by_nonce: dict[str, tuple[Unit, Attempt]] = field(default_factory=dict)
    trials: dict[str, Unit] = field(default_factory=dict)
    """Of trials only, by the directory under the root that each comes to."""

    def add(self, event: LedgerEvent) -> str | None:
        """Take in one event. Returns why it cannot be believed, or None."""
        if event.event == "opened":
            return None
        if event.event == "wanted":
            return self._want(event)
        unit = self.by_id.get(event.unit)
        if unit is None:
            return f"{event.event} of {event.unit or 'nothing'}, which was never wanted"
        if event.event == "intent":
            return self._intend(unit, event)
        if event.event == "extended":
            unit.order = unit.order.model_copy(update={"attempts": unit.order.attempts + 1})
            unit.settled_at, unit.outcome, unit.text, unit.cancelled_by = None, None, None, None
            return None
        if event.event == "settled":
            unit.settled_at, unit.outcome, unit.text = float(event.at), event.outcome, event.text
            return None
        if event.event == "cancel":
            unit.cancelled_by = event.who or "someone"
            return None
        found = self.by_nonce.get(event.nonce or "")
        if found is None or found[0] is not unit:
            return f"{event.event} of an attempt at {event.unit} that was never made"
        self._change(found[1], event)
        return None

    def open(self) -> Iterable[Unit]:
        """Units on which something may still be spent."""
        return (unit for unit in self.by_id.values() if not unit.settled)

    def calls(self) -> set[str]:
        """Every call that is on record."""
        return {attempt.call for unit in self.by_id.values() for attempt in unit.attempts if attempt.call is not None}

    def of_name(self, name: str) -> list[Unit]:
        """The units of a study, or the read of a directory."""
        return [unit for unit in self.by_id.values() if unit.order.name == name]

    def trial_at(self, path: str) -> Unit | None:
        """The trial that makes what lies at `path`: `runs/<study>/<NN>-<label>`, or `/runs/...` as on the volume."""
        return self.trials.get("/".join(PurePosixPath(path.lstrip("/")).parts[:3]))

    def reader_of(self, once: str) -> Unit | None:
        """The unit that has read, is reading or is about to read what may be read a single time."""
        return next((unit for unit in self.by_id.values()
                     if unit.order.once == once and (unit.counted or not unit.settled)), None)  # fmt: skip

    def _want(self, event: LedgerEvent) -> str | None:
        for name, order in (event.orders or {}).items():
            unit = self.by_id.get(name)
            if unit is None:
                self.by_id[name] = Unit(name, order, wanted_at=float(event.at))
            elif unit.counted:
                return f"{name} is wanted a second time"
            else:  # nothing of it was ever started, so it may be wanted anew, with other settings
                unit.order, unit.wanted_at = order, float(event.at)
                unit.settled_at, unit.outcome, unit.text, unit.cancelled_by = None, None, None, None
            if order.kind == "trial":
                self.trials[order.local] = self.by_id[name]
        return None

    def _intend(self, unit: Unit, event: LedgerEvent) -> str | None:
        if event.nonce is None or event.nonce in self.by_nonce:
            return f"intent of {event.unit} without a nonce of its own"
        attempt = Attempt(event.nonce, float(event.at))
        unit.attempts.append(attempt)
        self.by_nonce[event.nonce] = (unit, attempt)
        return None

    @staticmethod
    def _change(attempt: Attempt, event: LedgerEvent) -> None:
        match event.event:
            case "call":
                attempt.call = event.call
            case "withdrawn":
                attempt.withdrawn = True
            case "abandoned":
                attempt.abandoned, attempt.ended_at, attempt.outcome = True, float(event.at), "abandoned"
            case "ended":
                attempt.ended_at, attempt.outcome = float(event.at), event.outcome
        attempt.text = event.text


def trial_id(study: str, label: str) -> str:
    return f"trial/{study}/{label}"


def read_id(directory: str) -> str:
    """Of the read that fills `directory`, relative to the root."""
    return f"read/{directory}"


def rescore_id(directory: str, number: int) -> str:
    """Of the scoring, counted from 0, of the trial in `<study>/<NN>-<label>`."""
    return f"rescore/{directory}/{number}"


def agent_id(name: str) -> str:
    """Of an agent's run."""
    return f"agent/{name}"


def blend_id(study: str, prefix: str) -> str:
    return f"blend/{study}/{prefix}"
