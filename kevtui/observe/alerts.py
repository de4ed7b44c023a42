"""What deserves a look now, worst first. Pure, over the parts of a Snapshot."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from kev.text import shorten
from kevtui.format import age as shown_age
from kevtui.format import money as shown_money
from kevtui.observe import derive
from kevtui.observe.snapshot import (
    Alert,
    Finding,
    Lease,
    LeaseState,
    Money,
    Reads,
    ReadState,
    Severity,
    Study,
    Trial,
    TrialState,
    Watcher,
    WatcherState,
)

_ORDER = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.INFO: 2}
MOST_TEXT = 200


def find_alerts(
    *,
    money: Money,
    of_studies: Iterable[Alert],
    leases: Iterable[Lease],
    watcher: Watcher,
    reads: Reads,
    findings: Iterable[Finding],
) -> tuple[Alert, ...]:
    """Every alert, worst first; `of_studies` are those that StudyAlerts found.

    Texts may hold raw text from files: make them safe where they are painted.
    """
    found = [*_of_money(money), *_of_watcher(watcher), *_of_leases(leases), *_of_reads(reads), *_of_findings(findings)]
    found += of_studies
    return tuple(sorted(found, key=lambda alert: _ORDER[alert.severity]))


class StudyAlerts:
    """Remembers the alerts of each trial, which follow from nothing but its Trial."""

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
            found[trial.label] = known if known and known[0] is trial else (trial, tuple(_of_trial(trial, now)))
        return found


def _of_money(money: Money) -> Iterator[Alert]:
    if money.headroom is not None and money.headroom < 0:
        yield Alert(
            "overcommitted", Severity.CRITICAL, "money", f"committed past the limit by {shown_money(-money.headroom)}"
        )
    # From a stale reading it is history, and the reading has an alert of its own.
    if money.exhausted_in_s is not None and money.exhausted_in_s < 7200 and not money.reading_stale:
        severity = Severity.CRITICAL if money.exhausted_in_s < 1800 else Severity.WARNING
        yield Alert(
            "exhaustion", severity, "money", f"exhausted in {shown_age(money.exhausted_in_s)} at this burn rate"
        )
    if money.reading_stale:
        text = f"the billing reading is {shown_age(money.reading_age_s)} old: spend may be higher by now"
        yield Alert("stale-reading", Severity.WARNING, "money", text)
    if not money.committed_complete:
        text = f"committed is incomplete: {money.committed_note or 'a bound is not known'}, and that may cost money"
        yield Alert("committed-incomplete", Severity.CRITICAL, "money", text)


def _of_watcher(watcher: Watcher) -> Iterator[Alert]:
    if watcher.state is WatcherState.DOWN:
        text = f"watcher down: silent for {shown_age(watcher.age_s)}, nothing is continued"
        yield Alert("watcher-down", Severity.CRITICAL, watcher.source, text)


def _of_leases(leases: Iterable[Lease]) -> Iterator[Alert]:
    for lease in leases:
        if lease.nonce_matches is False and lease.state is not LeaseState.RELEASED:
            text = "another attempt holds the lease than the ledger's newest"
            yield Alert("lease-nonce", Severity.CRITICAL, lease.trial, text)
        if lease.state is LeaseState.STALE:
            yield Alert("lease-stale", Severity.WARNING, lease.trial, "no heartbeat for 15 min: nobody holds it")
        elif lease.state is LeaseState.CLOCK_AHEAD:
            text = "the heartbeat is stamped in the future: that machine's clock is ahead"
            yield Alert("clock-ahead", Severity.WARNING, lease.trial, text)


def _of_reads(reads: Reads) -> Iterator[Alert]:
    for cell in reads.cells:
        if cell.state is ReadState.FAILED:
            text = shorten(f"read {cell.tag} failed: {cell.detail}", MOST_TEXT)
            yield Alert("read-failed", Severity.WARNING, cell.owner, text)
        elif cell.state is ReadState.OVERDUE:
            text = f"read {cell.tag} overdue, launched {shown_age(cell.age_s)} ago"
            yield Alert("read-overdue", Severity.WARNING, cell.owner, text)


def _of_findings(findings: Iterable[Finding]) -> Iterator[Alert]:
    for finding in findings:
        yield Alert("damaged", Severity.WARNING, finding.path, shorten(finding.reason, MOST_TEXT))


def _of_trial(trial: Trial, now: datetime) -> Iterator[Alert]:
    match trial.state:
        case TrialState.FAILED:
            text = shorten(f"failed: {trial.error or 'no reason given'}", MOST_TEXT)
            yield Alert("trial-failed", Severity.WARNING, trial.id, text)
        case TrialState.UNREACHABLE:
            yield Alert("unreachable", Severity.WARNING, trial.id, trial.note or "cannot be reached; it may still run")
        case TrialState.TIMED_OUT | TrialState.REFUSED:
            yield Alert("timed-out", Severity.WARNING, trial.id, f"{trial.state}: {trial.note}")
        case TrialState.RUNNING if trial.log_age_s is not None and trial.log_age_s >= derive.SILENT_S:
            if not trial.finished:
                text = f"nothing logged for {shown_age(trial.log_age_s)}"
                yield Alert("silent", Severity.WARNING, trial.id, text)
    if trial.projection is not None and trial.projection.past_timeout:
        yield _past_timeout(trial, now)


def _past_timeout(trial: Trial, now: datetime) -> Alert:
    projection = trial.projection
    assert projection is not None and projection.timeout_at is not None
    over = shown_age((projection.finish_at - projection.timeout_at).total_seconds())
    left = (trial.attempts_allowed or 1) - (trial.attempts_used or 1)
    early = trial.started_at is not None and (now - trial.started_at).total_seconds() < derive.FIVE_MINUTE_CHECK_S
    if left > 0:
        text = f"projected {over} past its timeout; {left} continuation{'s' if left > 1 else ''} left"
        return Alert("past-timeout", Severity.WARNING, trial.id, text)
    if early:
        text = f"projected {over} past its timeout from the start: cancel it and save the rest"
        return Alert("five-minute-check", Severity.CRITICAL, trial.id, text)
    return Alert("past-timeout", Severity.CRITICAL, trial.id, f"projected {over} past its timeout")
