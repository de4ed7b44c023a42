"""One trial as the screen shows it, from everything its files say. Pure; nothing here reads a file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from kevtui.observe import derive
from kevtui.observe.snapshot import Lease, LeaseState, Point, Trial, TrialState
from kevtui.observe.trial_log import TrialLog

if TYPE_CHECKING:
    from kev.records.resume import ResumePoint
    from kev.records.spawn import SpawnRecord
    from kev.records.watch import TrialState as WatchedTrial

UNREACHABLE_AFTER = 60
"""Network failures in a row after which a watcher gives a trial up, although it may still run and cost."""

_BY_STATUS = {
    "running": TrialState.RUNNING,
    "queued": TrialState.PENDING,
    "pending": TrialState.PENDING,
    "done": TrialState.DONE,
    "timeout": TrialState.TIMED_OUT,
    "refused": TrialState.REFUSED,
    "failed": TrialState.FAILED,
    "cancelled": TrialState.CANCELLED,
    "unreachable": TrialState.UNREACHABLE,
}

ACTIVE = frozenset({TrialState.RUNNING, TrialState.PENDING, TrialState.UNREACHABLE, TrialState.UNKNOWN})
MAY_COST = ACTIVE | {TrialState.TIMED_OUT, TrialState.REFUSED}
HELD = frozenset({LeaseState.FRESH, LeaseState.LATE})
RECENT_S = 900.0
"""A log that moved this lately is a sign of life where no watcher says anything."""


@dataclass(frozen=True, slots=True)
class TrialFacts:
    """What is on disk about one trial. Ages are seconds on this machine's clocks."""

    study: str
    label: str
    index: int | None = None
    spawn: SpawnRecord | None = None
    watched: WatchedTrial | None = None
    listed_call: str | None = None
    listed: TrialState | None = None
    """What a session's state file says of the study."""
    planned: bool = False
    read_out: bool = False
    """The round's read-out compares it, so it was trained and read, wherever its own files are."""
    has_result: bool = False
    failure: str | None = None
    """The error in failed.json."""
    resume: ResumePoint | None = None
    resume_age_s: float | None = None
    lease: Lease | None = None
    log: TrialLog | None = None
    log_path: str | None = None
    log_age_s: float | None = None


def view_trial(facts: TrialFacts, points: tuple[Point, ...], *, now: datetime) -> Trial:
    """The trial at `now`."""
    state = trial_state(facts)
    progress = facts.log.progress if facts.log else None
    attempt = facts.spawn.current_attempt(facts.label) if facts.spawn else None
    started_at = attempt.started if attempt else None
    moving = state in (TrialState.RUNNING, TrialState.UNREACHABLE) and not _finished(facts)
    rate = measured_rate(facts) if moving else None
    step = progress.step if progress else None
    steps = progress.steps if progress else None
    if step is None and facts.resume is not None:
        step = facts.resume.step
    projection = derive.project(
        rate,
        step=step,
        steps=steps,
        step_seen_at=(progress.step_seen_at if progress else None) or now,
        now=now,
        timeout_at=_timeout_at(facts.spawn, started_at),
    )
    return Trial(
        study=facts.study,
        label=facts.label,
        index=facts.index,
        state=state,
        call=_call(facts),
        attempts_used=facts.spawn.attempts_used(facts.label) if facts.spawn else None,
        attempts_allowed=facts.spawn.attempts_allowed() if facts.spawn else None,
        error=(facts.watched.error if facts.watched else None) or facts.failure,
        note=_note(facts, state),
        step=step,
        steps=steps,
        loss=progress.loss if progress else None,
        finished=bool(progress and progress.finished),
        rate=rate.shown() if rate else None,
        rate_note="" if rate else _rate_note(facts),
        projection=projection,
        slowing=facts.log.health.slowing if facts.log and moving else None,
        divergences=facts.log.health.divergences if facts.log and (moving or state is TrialState.TIMED_OUT) else (),
        started_at=started_at,
        log=facts.log_path,
        log_age_s=derive.coarse(facts.log_age_s),
        resume_step=_resume_step(facts),
        work_at_risk_s=derive.coarse(_work_at_risk(facts, started_at, now)) if state in ACTIVE else None,
        scoring=progress.scoring if progress else None,
        points=points,
    )


def trial_state(facts: TrialFacts) -> TrialState:
    """The state, from the most telling source that has one: results, the watcher, the state file, signs of life."""
    watched = facts.watched
    if watched is not None and watched.status != "running":
        if watched.status == "failed" and watched.transient >= UNREACHABLE_AFTER:
            return TrialState.UNREACHABLE
        return _BY_STATUS.get(watched.status, TrialState.UNKNOWN)
    if facts.has_result:
        return TrialState.DONE
    if facts.failure is not None:
        return TrialState.FAILED
    if watched is not None:
        if watched.transient:
            return TrialState.UNREACHABLE
        attempt = facts.spawn.current_attempt(facts.label) if facts.spawn else None
        return TrialState.PENDING if attempt and attempt.pending else TrialState.RUNNING
    if facts.listed is not None:
        return facts.listed
    return TrialState.DONE if facts.read_out else _unwatched(facts)


def _unwatched(facts: TrialFacts) -> TrialState:
    if facts.spawn is None:
        return TrialState.PLANNED if facts.planned and facts.log is None else TrialState.UNKNOWN
    attempt = facts.spawn.current_attempt(facts.label)
    if attempt is not None and attempt.pending:
        return TrialState.PENDING
    alive = facts.lease is not None and facts.lease.state in HELD
    moving = facts.log_age_s is not None and facts.log_age_s < RECENT_S and not _finished(facts)
    return TrialState.RUNNING if alive or moving else TrialState.UNKNOWN


def _finished(facts: TrialFacts) -> bool:
    return facts.log is not None and facts.log.progress.finished


def measured_rate(facts: TrialFacts) -> derive.MeasuredRate | None:
    """By the trainer's times, else by arrivals, else by the step times its last resume point holds."""
    rate = facts.log.rate() if facts.log else None
    if rate is None and facts.resume is not None:
        rate = derive.rate_from_step_seconds(float(seconds) for seconds in facts.resume.step_seconds or [])
    return rate


def _rate_note(facts: TrialFacts) -> str:
    if facts.log is None:
        return "no log yet"
    if not facts.log.has_steps:
        return "no step line yet"
    return "" if facts.log.has_clock else "this log has no clock"


def _note(facts: TrialFacts, state: TrialState) -> str:
    progress = facts.log.progress if facts.log else None
    if progress and progress.step is not None and progress.steps is not None and progress.step > progress.steps:
        return f"{progress.step - progress.steps} past the registered {progress.steps:,} steps"
    watched = facts.watched
    match state:
        case TrialState.TIMED_OUT | TrialState.REFUSED:
            return _note_on_continuation(facts)
        case TrialState.UNREACHABLE if watched is not None:
            return f"network error, {watched.transient} in a row; it may still run"
        case TrialState.PENDING:
            return "spawn not confirmed"
        case TrialState.DONE if watched is not None and watched.unmapped:
            return "no arm of the round has it"
        case TrialState.DONE if facts.read_out:
            return "read"
        case TrialState.DONE if watched is not None and watched.launched:
            return "reads launched"
        case TrialState.RUNNING if not (facts.log and facts.log.has_steps):
            return "no step line yet"
        case TrialState.UNKNOWN if facts.spawn is not None:
            return "launched; nobody has polled it"
    if progress and progress.finished and state is not TrialState.DONE:
        return "training finished"
    return ""


def _note_on_continuation(facts: TrialFacts) -> str:
    if facts.spawn and facts.spawn.attempts_used(facts.label) >= facts.spawn.attempts_allowed():
        return "no attempts left"
    if facts.lease and facts.lease.state in HELD:
        return "continuation waits for lease"
    if facts.watched and facts.watched.continuing_at is not None:
        return "continuing"
    return "waits to be continued"


def _call(facts: TrialFacts) -> str | None:
    called = facts.spawn.calls.get(facts.label) if facts.spawn else None
    return called or (facts.watched.call if facts.watched else None) or facts.listed_call


def _timeout_at(spawn: SpawnRecord | None, started_at: datetime | None) -> datetime | None:
    if spawn is None or spawn.timeout is None or started_at is None:
        return None
    try:
        return started_at + timedelta(seconds=float(spawn.timeout))
    except (OverflowError, ValueError):
        return datetime.max.replace(tzinfo=UTC)


def _resume_step(facts: TrialFacts) -> int | None:
    steps = [step for step in (facts.resume and facts.resume.step, facts.log and facts.log.progress.kept_step) if step]
    return max(steps, default=None)


def _work_at_risk(facts: TrialFacts, started_at: datetime | None, now: datetime) -> float | None:
    """Seconds of work that a kill now would lose: since the last resume point, else since the attempt began."""
    if facts.resume_age_s is not None:
        return facts.resume_age_s
    return None if started_at is None else max(0.0, (now - started_at).total_seconds())
