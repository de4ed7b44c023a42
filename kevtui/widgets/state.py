"""States in a glyph, a word and a role, the same in every panel."""

from collections import Counter

from kevtui import glyphs
from kevtui.observe.snapshot import Lease, LeaseState, Severity, Snapshot, Trial, TrialState, Verdict
from kevtui.widgets.line import Role

TRIAL_ROLE = {
    TrialState.PLANNED: Role.DIM,
    TrialState.PENDING: Role.TEXT,
    TrialState.RUNNING: Role.ACCENT,
    TrialState.DONE: Role.GOOD,
    TrialState.TIMED_OUT: Role.BAD,
    TrialState.REFUSED: Role.BAD,
    TrialState.FAILED: Role.BAD,
    TrialState.CANCELLED: Role.DIM,
    TrialState.UNREACHABLE: Role.WARN,
    TrialState.UNKNOWN: Role.DIM,
}
LEASE_ROLE = {
    LeaseState.FRESH: Role.GOOD,
    LeaseState.LATE: Role.WARN,
    LeaseState.STALE: Role.BAD,
    LeaseState.RELEASED: Role.DIM,
    LeaseState.CLOCK_AHEAD: Role.WARN,
    LeaseState.UNKNOWN: Role.DIM,
}
VERDICT_ROLE = {Verdict.PASS: Role.GOOD, Verdict.FAIL: Role.BAD, Verdict.MISSING: Role.WARN}
SEVERITY_ROLE = {Severity.CRITICAL: Role.BAD, Severity.WARNING: Role.WARN, Severity.INFO: Role.DIM}

AT_RISK = (glyphs.RISK, "at risk", Role.WARN)

_ORDER = [
    "failed", "refused", "timed out", "at risk", "unreachable", "unknown",
    "running", "pending", "planned", "done", "cancelled",
]  # fmt: skip
_RANK = {word: rank for rank, word in enumerate(_ORDER)}


def trial_state(trial: Trial) -> tuple[str, str, Role]:
    """(glyph, word, role); a running trial whose projection passes its timeout is at risk."""
    if trial.state is TrialState.RUNNING and trial.projection is not None and trial.projection.past_timeout:
        return AT_RISK
    return state(trial.state)


def state(value: TrialState) -> tuple[str, str, Role]:
    return glyphs.TRIAL[value], value.value, TRIAL_ROLE[value]


def urgency(word: str) -> int:
    """Lower is more urgent: what is wrong, then what moves, then what is over."""
    return _RANK.get(word, len(_RANK))


def counts(snapshot: Snapshot) -> list[tuple[str, str, Role, int]]:
    """(glyph, word, role, how many trials), what is wrong first. A study without trials counts as one."""
    states = [trial_state(trial) for trial in snapshot.trials]
    states += [state(study.state) for study in snapshot.studies if not study.trials]
    tally = Counter(states)
    return [(*key, tally[key]) for key in sorted(tally, key=lambda key: urgency(key[1]))]


def lease_of(snapshot: Snapshot) -> dict[str, Lease]:
    return {lease.trial: lease for lease in snapshot.leases}
