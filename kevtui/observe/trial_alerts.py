"""What deserves a look of one trial. It follows from its Trial alone, and from what was said of it before."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from kev.text import shorten
from kevtui.format import age as shown_age
from kevtui.observe import derive
from kevtui.observe.snapshot import Alert, Divergence, Projection, Severity, Study, Trial, TrialState

MOST_TEXT: Final = 200

BACK_S: Final = 60.0
BACK_SHARE: Final = 0.03
"""A projection counts as past the timeout until it ends this long, or this share of what remains, before it: the
rate wavers, and a trial on the edge would be told of again with every step."""

IMMENSE: Final = 100.0
"""A gradient norm of so many times the usual one is no bad batch any more."""

_PAST = frozenset({"past-timeout", "five-minute-check"})


class StudyAlerts:
    """Remembers the alerts of each trial."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Study, dict[str, tuple[Trial, tuple[Alert, ...]]]]] = {}

    def find(self, studies: Iterable[Study], *, now: datetime) -> Iterator[Alert]:
        """The alerts of all `studies`; a trial is looked at again only where it is another object than before."""
        known = {}
        for study in studies:
            before = self._known.get(study.name)
            if before is None or before[0] is not study:
                before = (study, self._of_study(study, before[1] if before else {}, now))
            known[study.name] = before
            for _, alerts in before[1].values():
                yield from alerts
        self._known = known

    @staticmethod
    def _of_study(
        study: Study, before: dict[str, tuple[Trial, tuple[Alert, ...]]], now: datetime
    ) -> dict[str, tuple[Trial, tuple[Alert, ...]]]:
        found = {}
        for trial in study.trials:
            known = before.get(trial.label)
            if known is None or known[0] is not trial:
                was_past = known is not None and any(alert.code in _PAST for alert in known[1])
                known = (trial, tuple(alerts_of(trial, now, was_past=was_past)))
            found[trial.label] = known
        return found


def alerts_of(trial: Trial, now: datetime, *, was_past: bool = False) -> Iterator[Alert]:
    """The alerts of one trial; `was_past`: its projection was said to be past its timeout."""
    match trial.state:
        case TrialState.FAILED:
            error = trial.error or "no reason given"
            text = shorten(f"failed: {error}", MOST_TEXT)
            yield Alert("trial-failed", Severity.WARNING, trial.id, text, condition=error)
        case TrialState.UNREACHABLE:
            yield Alert("unreachable", Severity.WARNING, trial.id, trial.note or "cannot be reached; it may still run")
        case TrialState.TIMED_OUT | TrialState.REFUSED:
            text = f"{trial.state}: {trial.note}"
            condition = f"{trial.state}, attempt {trial.attempts_used}"
            yield Alert("timed-out", Severity.WARNING, trial.id, text, condition)
        case TrialState.RUNNING if trial.log_age_s is not None and trial.log_age_s >= derive.SILENT_S:
            if not trial.finished:
                text = f"nothing logged for {shown_age(trial.log_age_s)}"
                yield Alert("silent", Severity.WARNING, trial.id, text)
    if trial.projection is not None and _is_past(trial.projection, was_past=was_past):
        yield _past_timeout(trial, trial.projection, now)
    if trial.slowing is not None:
        slowing = trial.slowing
        text = f"slowed to {slowing.steps_per_minute:.1f} steps/min since step {slowing.since_step:,}"
        yield Alert("slowed", Severity.WARNING, trial.id, f"{text}, usually {slowing.usual:.1f}")
    yield from (_diverged(trial, divergence) for divergence in trial.divergences)


def _is_past(projection: Projection, *, was_past: bool) -> bool:
    if projection.past_timeout or projection.timeout_at is None or not was_past:
        return projection.past_timeout
    margin_s = max(BACK_S, BACK_SHARE * projection.remaining_s)
    return (projection.timeout_at - projection.finish_at).total_seconds() < margin_s


def _past_timeout(trial: Trial, projection: Projection, now: datetime) -> Alert:
    assert projection.timeout_at is not None
    over_s = (projection.finish_at - projection.timeout_at).total_seconds()
    over = f"projected {shown_age(over_s)} past its timeout" if over_s > 0 else "projected to end at its timeout"
    left = (trial.attempts_allowed or 1) - (trial.attempts_used or 1)
    early = trial.started_at is not None and (now - trial.started_at).total_seconds() < derive.FIVE_MINUTE_CHECK_S
    condition = f"attempt {trial.attempts_used}"
    if left > 0:
        text = f"{over}; {left} continuation{'s' if left > 1 else ''} left"
        return Alert("past-timeout", Severity.WARNING, trial.id, text, condition)
    if early:
        text = f"{over} from the start: cancel it and save the rest"
        return Alert("five-minute-check", Severity.CRITICAL, trial.id, text, condition)
    return Alert("past-timeout", Severity.CRITICAL, trial.id, over, condition)


def _diverged(trial: Trial, found: Divergence) -> Alert:
    since = f"step {found.since_step:,}"
    if found.figure == "loss":
        text = f"the loss is not a finite number since {since}"
        if not found.lasting:
            text = f"the loss was not a finite number at {since}"
        severity = Severity.CRITICAL if found.lasting else Severity.WARNING
        return Alert("loss-not-finite", severity, trial.id, text, condition=since)
    value = "not finite" if found.value is None else f"{found.value:.3g}"
    usual = "" if found.usual is None else f", usually {found.usual:.3g}"
    immense = found.value is None or (found.usual is not None and found.value >= IMMENSE * found.usual)
    text = f"the gradient norm is {value} since {since}{usual}"
    return Alert("gradient-norm", Severity.CRITICAL if immense else Severity.WARNING, trial.id, text, condition=since)
