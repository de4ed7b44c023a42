"""One view of a session's money and work, whichever kind of file it comes from."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from kev import budget, files
from kev.errors import DamagedFile
from kev.records.base import parse_record, read_record
from kev.records.instant import read_instant
from kev.records.session import NightState, SessionState, SessionStudy, SpecBudget, SpendReading

SETTLED = frozenset({"done", "failed", "cancelled", "canceled", "landed", "pulled", "read"})
"""First words of a status under which nothing more can be spent; any other status still counts its bound."""

STATE_SUFFIX = "-state.json"


@dataclass(frozen=True, slots=True)
class Reading:
    """The provider's meter at one moment."""

    at: datetime
    metered: Decimal
    source: str = ""
    billed: Decimal | None = None
    """What the provider says it will charge for the same cycle."""
    unseen: Decimal = Decimal(0)
    """The most that the cycle before came to after its last reading, where this is the first of a new one."""


@dataclass(frozen=True, slots=True)
class Work:
    """A study or a batch of reads, as the state has it."""

    name: str
    status: str
    bound: Decimal | None = None
    calls: Mapping[str, str | None] = field(default_factory=dict)
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Session:
    """One session, whichever kind of file it was read from. None is unknown, never zero."""

    name: str
    source: str
    """What it was read from, in words: a file's name, or a spec's budget block."""
    authorization: Decimal
    reserve: Decimal
    baseline: Decimal | None = None
    cycle: str | None = None
    sample: bool = False
    simulated: bool = False
    readings: tuple[Reading, ...] = ()
    """Oldest first."""
    studies: tuple[Work, ...] = ()
    reads: tuple[Work, ...] = ()
    planned: Mapping[str, Decimal] = field(default_factory=dict)
    """What the parts of a round were planned to cost, where a spec's budget says so; nothing of it is committed."""
    candidates: Mapping[str, Any] = field(default_factory=dict)
    decisions: tuple[str, ...] = ()
    gateway_authorization: Decimal | None = None
    gateway_spent: Decimal | None = None
    rounds: tuple[str, ...] = ()
    """Specs of the rounds it was opened for."""
    opened_at: datetime | None = None
    closed_at: datetime | None = None
    """Since when nothing may be started."""

    @property
    def metered(self) -> Decimal | None:
        """The newest reading; None without any since the baseline."""
        return self.readings[-1].metered if self.readings else None

    @property
    def spent(self) -> budget.Spent | None:
        """Since the baseline, over all billing cycles; None while either end is unknown."""
        if self.baseline is None:
            return None
        known = budget.spent(self.baseline, [reading.metered for reading in self.readings])
        unseen = sum((reading.unseen for reading in self.readings), Decimal(0))
        return replace(known, usd=known.usd + unseen, carried=known.carried + unseen) if known and unseen else known

    @property
    def committed(self) -> budget.Committed:
        """Bounds of the studies and reads that the state does not call settled."""
        return budget.committed(work.bound for work in (*self.studies, *self.reads) if not work.settled)

    @property
    def account(self) -> budget.Account:
        """The figures that the spend rule is applied to."""
        known = self.spent
        return budget.Account(self.authorization, self.reserve, known.usd if known else None, self.committed)


def read_session(path: Path) -> Session:
    """The session whose state is in `path`, in either schema. Raises NotFound or DamagedFile."""
    try:
        return session_of_state(path, read_record(path, SessionState))
    except DamagedFile:  # or of the other schema
        return parse_session(path, files.read_json(path))


def parse_session(path: Path, value: Any) -> Session:
    """The session whose state, `value`, `path` held. Raises DamagedFile, naming the key."""
    if isinstance(value, dict) and "session" in value:
        return session_of_state(path, parse_record(path, value, SessionState))
    if isinstance(value, dict) and "night" in value:
        return _from_night(path, parse_record(path, value, NightState))
    raise DamagedFile(path, "is no session state: it has neither a session nor a night")


def session_of_budget(path: Path, name: str, block: Any) -> Session:
    """The session that the `budget` block of the round spec in `path` stands for. Raises DamagedFile."""
    try:
        plan = parse_record(path, block, SpecBudget)
    except DamagedFile as error:
        raise DamagedFile(path, f"budget: {error.reason}") from None
    planned = {key: Decimal(str(value)) for key, value in (plan.model_extra or {}).items()
               if key.endswith("_bound") and files.as_finite(value) is not None}  # fmt: skip
    return Session(
        name=name,
        source=f"budget block of {path.name}",
        authorization=plan.hard_cap,
        reserve=budget.reserve(plan.hard_cap),
        baseline=plan.metered_start,
        cycle=plan.cycle,
        planned=planned,
    )


def session_name(path: Path) -> str:
    """The name of the session whose state file `path` is."""
    return path.name.removesuffix(STATE_SUFFIX)


def is_settled(status: str) -> bool:
    """True if nothing more can be spent under `status`, which may be free text; in doubt, false."""
    words = re.match(r"\s*([A-Za-z]+)", status)
    return words is not None and words[1].lower() in SETTLED


def session_of_state(path: Path, state: SessionState) -> Session:
    """The session whose state, as a record, is that of `path`. Raises DamagedFile for a time that is none."""
    gateway = state.ai_gateway
    return Session(
        name=state.session,
        source=path.name,
        authorization=state.authorization_usd,
        reserve=budget.reserve(state.authorization_usd) if state.reserve_usd is None else state.reserve_usd,
        baseline=state.baseline_usd,
        cycle=state.cycle,
        sample=state.sample,
        simulated=state.simulated,
        readings=_in_order(
            _reading(path, f"readings.{number}.at", made.at, made.metered_usd, made.source, made)
            for number, made in enumerate(state.readings)
        ),
        studies=tuple(_work(name, study) for name, study in state.studies.items()),
        reads=tuple(Work(name, read.status, read.bound_usd, settled=is_settled(read.status))
                    for name, read in state.reads.items()),
        candidates=state.candidates,
        decisions=tuple(state.decisions),
        gateway_authorization=gateway.authorization_usd if gateway else None,
        gateway_spent=gateway.spent_usd if gateway else None,
        rounds=tuple(state.rounds),
        opened_at=_moment(path, "opened_at", state.opened_at),
        closed_at=_moment(path, "closed_at", state.closed_at),
    )  # fmt: skip


def _from_night(path: Path, state: NightState) -> Session:
    metered = state.modal_metered_usd
    baselines = [usd for key, usd in metered.items() if key.startswith("baseline")]
    if len(baselines) > 1:
        raise DamagedFile(path, "modal_metered_usd: has more than one baseline")
    estimates = state.ai_gateway_estimated_usd
    return Session(
        name=session_name(path),
        source=path.name,
        authorization=state.authorization.modal_usd,
        reserve=budget.reserve(state.authorization.modal_usd),
        baseline=baselines[0] if baselines else None,
        readings=_in_order(
            _reading(path, f"modal_metered_usd.{key}", key, usd, path.name)
            for key, usd in metered.items() if not key.startswith("baseline")
        ),
        studies=_night_studies(state),
        candidates=state.candidates_unpublished,
        decisions=tuple(state.pending_decisions),
        gateway_authorization=state.authorization.ai_gateway_usd,
        gateway_spent=estimates.get("total", sum(estimates.values(), Decimal(0))) if estimates else None,
    )  # fmt: skip


def _night_studies(state: NightState) -> tuple[Work, ...]:
    running = state.running_bounds_usd
    # Whatever is listed as running counts, even where its status says otherwise or it has no entry of its own.
    works = [_work(name, study, running.get(name)) for name, study in state.studies.items()]
    works += [Work(name, "running", bound) for name, bound in running.items() if name not in state.studies]
    return tuple(works)


def _work(name: str, study: SessionStudy, running_bound: Decimal | None = None) -> Work:
    settled = running_bound is None and is_settled(study.status)
    bound = study.bound_usd if running_bound is None else running_bound
    return Work(name, study.status, bound, study.calls, settled)


def _reading(
    path: Path, where: str, at: str, metered: Decimal, source: str | None = None, made: SpendReading | None = None
) -> Reading:
    moment = _moment(path, where, at)
    assert moment is not None, "a reading has a time"
    billed, unseen = (made.billed_usd, made.unseen_usd) if made is not None else (None, None)
    return Reading(moment, metered, source or path.name, billed, unseen or Decimal(0))


def _moment(path: Path, where: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    instant = read_instant(text)
    if instant.at is None:
        raise DamagedFile(path, f"{where}: {text!r:.40} {instant.problem}")
    return instant.at


def _in_order(readings: Iterable[Reading]) -> tuple[Reading, ...]:
    return tuple(sorted(readings, key=lambda reading: reading.at))
