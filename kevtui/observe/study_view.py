"""One study as the screen shows it, and what its trials make of its state."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

from kevtui.observe.snapshot import Study, Trial, TrialState
from kevtui.observe.trial_view import MAY_COST

if TYPE_CHECKING:
    from kev.records.spawn import SpawnRecord
    from kev.records.spec import Study as SpecStudy
    from kev.records.watch import WatchRecord
    from kev.session import Work

_LABEL_NUMBER = re.compile(r"(?:.*-)?(\d{1,6})")

_ORDER = (
    TrialState.RUNNING,
    TrialState.UNREACHABLE,
    TrialState.PENDING,
    TrialState.TIMED_OUT,
    TrialState.REFUSED,
    TrialState.UNKNOWN,
    TrialState.FAILED,
    TrialState.CANCELLED,
    TrialState.DONE,
    TrialState.PLANNED,
)
"""A study is in the first of these states that any of its trials is in."""


def view_study(
    name: str,
    trials: tuple[Trial, ...],
    *,
    spawn: SpawnRecord | None,
    listed: Work | None,
    registered: SpecStudy | None,
    damaged: bool = False,
    watch: WatchRecord | None = None,
) -> Study:
    """The study; figures from the ledger, else from the state file, else from the spec.

    `damaged`: its ledger is there and cannot be read now. It may stand for calls that nobody knows of.
    """
    state = study_state(trials, listed)
    bound: Decimal | None = (spawn.bound_usd if spawn else None) or (listed.bound if listed else None)
    timeout = (spawn.timeout if spawn else None) or (registered.timeout if registered else None)
    return Study(
        name=name,
        state=state,
        status_text=_in_words(spawn, listed, bound, damaged=damaged),
        gpu=(spawn.gpu if spawn else None) or (registered.gpu if registered else None),
        timeout_s=None if timeout is None else float(timeout),
        full_weight=spawn.full_ft if spawn else None,
        bound=bound,
        budget=registered.budget if registered else None,
        settled=not damaged
        and not _goes_on(spawn, watch)
        and (listed.settled if listed and spawn is None else is_settled(trials, state)),
        launched=spawn is not None or damaged or (listed is not None and state is not TrialState.PLANNED),
        trials=trials,
    )


def _goes_on(spawn: SpawnRecord | None, watch: WatchRecord | None) -> bool:
    """Whether a call was started after the one whose end the watcher saw: the money gate counts it too."""
    if spawn is None or watch is None:
        return False
    seen = {label: state.call for label, state in watch.calls.items() if state.call is not None}
    return any(seen.get(label, call) != call for label, call in spawn.calls.items())


def _in_words(spawn: SpawnRecord | None, listed: Work | None, bound: Decimal | None, *, damaged: bool) -> str:
    if not damaged:
        return listed.status if listed else ""
    return "ledger damaged, bound unknown" if spawn is None and bound is None else "ledger damaged"


def study_state(trials: tuple[Trial, ...], listed: Work | None) -> TrialState:
    states = {trial.state for trial in trials}
    if not states:
        return state_of_status(listed.status) if listed else TrialState.UNKNOWN
    return next(state for state in _ORDER if state in states)


def is_settled(trials: tuple[Trial, ...], state: TrialState) -> bool:
    """Whether nothing of the study can cost more: every trial ended, or used its last attempt."""
    if not trials:
        return state is not TrialState.PLANNED and state not in MAY_COST
    return all(_ended(trial) for trial in trials) and state is not TrialState.PLANNED


def state_of_status(status: str) -> TrialState:
    """What the free text of a state file says: "done, pulled, read" is done."""
    word = re.match(r"[a-z]+", status.strip().lower())
    match word.group() if word else "":
        case "done" | "pulled" | "read" | "finished" | "complete" | "completed":
            return TrialState.DONE
        case "running" | "launched" | "training":
            return TrialState.RUNNING
        case "queued" | "pending":
            return TrialState.PENDING
        case "failed" | "error":
            return TrialState.FAILED
        case "cancelled" | "canceled" | "stopped":
            return TrialState.CANCELLED
        case "timeout" | "timed":
            return TrialState.TIMED_OUT
        case "planned" | "registered":
            return TrialState.PLANNED
    return TrialState.UNKNOWN


def index_of(label: str, directory: str | None) -> int | None:
    """A trial's number: of its directory `<NN>-<label>`, else the one its label ends in."""
    match = _LABEL_NUMBER.fullmatch(directory.partition("-")[0] if directory else label)
    return int(match.group(1)) if match else None


def _ended(trial: Trial) -> bool:
    if trial.state is TrialState.TIMED_OUT:
        return trial.attempts_used is not None and trial.attempts_used >= (trial.attempts_allowed or 1)
    return trial.state not in MAY_COST and trial.state is not TrialState.PLANNED
