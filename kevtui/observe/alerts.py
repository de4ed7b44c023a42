"""What deserves a look now, worst first. Pure, over the parts of a Snapshot."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Final

from kev.text import shorten
from kevtui.format import age as shown_age
from kevtui.format import money as shown_money
from kevtui.observe.snapshot import (
    Alert,
    Finding,
    Lease,
    LeaseState,
    Money,
    Readout,
    Reads,
    ReadState,
    Severity,
    StageVerdict,
    Study,
    TrialState,
    Watcher,
    WatcherState,
)
from kevtui.observe.states import RANK
from kevtui.observe.trial_alerts import MOST_TEXT

SHARES: Final = ((100, Severity.CRITICAL), (90, Severity.WARNING), (75, Severity.WARNING))
"""Of the authorization, in percent, the highest first: only that one is shown."""

OVER: Final = frozenset({TrialState.DONE, TrialState.FAILED, TrialState.CANCELLED})
"""States in which nobody need hold a trial any more: a container that was stopped leaves its lease behind."""

Acknowledged = Callable[[Alert], bool]


def find_alerts(
    *,
    money: Money,
    studies: Iterable[Study],
    of_studies: Iterable[Alert],
    leases: Iterable[Lease],
    watcher: Watcher,
    reads: Reads,
    readout: Readout | None,
    verdicts: Iterable[StageVerdict],
    findings: Iterable[Finding],
    acknowledged: Acknowledged = lambda _: False,
) -> tuple[Alert, ...]:
    """Every alert once, worst first; `of_studies` are those that StudyAlerts found, `acknowledged` says of which it
    is known.

    Texts may hold raw text from files: make them safe where they are painted.
    """
    found = [
        *_of_money(money),
        *_of_watcher(watcher),
        *_of_leases(leases, studies),
        *_of_reads(reads),
        *_of_readout(readout, verdicts),
        *_of_findings(findings),
        *of_studies,
    ]
    found = [replace(alert, acknowledged=True) if acknowledged(alert) else alert for alert in found]
    found.sort(key=lambda alert: (alert.acknowledged, RANK[alert.severity]))
    once: dict[str, Alert] = {}
    for alert in found:
        once.setdefault(alert.id, alert)
    return tuple(once.values())


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
        if money.reading_age_s is None:
            text = "the billing reading is dated ahead of this machine's clock: nothing is launched on it"
        else:
            text = f"the billing reading is {shown_age(money.reading_age_s)} old: spend may be higher by now"
        yield Alert("stale-reading", Severity.WARNING, "money", text)
    if not money.committed_complete:
        text = f"committed is incomplete: {money.committed_note or 'a bound is not known'}, and that may cost money"
        yield Alert("committed-incomplete", Severity.CRITICAL, "money", text, condition=money.committed_note)
    yield from _of_share("spent", "money", "", money.spent, money.authorization)
    yield from _of_share(
        "gateway", "AI gateway", " at the AI gateway", money.gateway_spent, money.gateway_authorization
    )


def _of_share(code: str, subject: str, where: str, spent: Decimal | None, of: Decimal | None) -> Iterator[Alert]:
    if spent is None or of is None or spent <= 0:
        return
    for percent, severity in SHARES:
        if spent * 100 >= of * percent:
            text = f"spent {shown_money(spent)} of {shown_money(of)}{where}: {percent} % of the authorization or more"
            yield Alert(f"{code}-{percent}", severity, subject, text, condition=shown_money(of))
            return


def _of_watcher(watcher: Watcher) -> Iterator[Alert]:
    if watcher.state is WatcherState.DOWN:
        text = f"watcher down: silent for {shown_age(watcher.age_s)}, nothing is continued"
        yield Alert("watcher-down", Severity.CRITICAL, watcher.source, text)
    elif watcher.state is not WatcherState.FINISHED and watcher.note:
        yield Alert("provider-silent", Severity.WARNING, watcher.source, watcher.note)


def _of_leases(leases: Iterable[Lease], studies: Iterable[Study]) -> Iterator[Alert]:
    over: set[str] | None = None
    for lease in leases:
        if lease.nonce_matches is False and lease.state is not LeaseState.RELEASED:
            text = "another attempt holds the lease than the ledger's newest"
            yield Alert("lease-nonce", Severity.CRITICAL, lease.trial, text)
        if lease.state is LeaseState.STALE:
            if over is None:
                over = {trial.id for study in studies for trial in study.trials if trial.state in OVER}
            if lease.trial in over:
                continue
            yield Alert("lease-stale", Severity.WARNING, lease.trial, "no heartbeat for 15 min: nobody holds it")
        elif lease.state is LeaseState.CLOCK_AHEAD:
            text = "the heartbeat is stamped in the future: that machine's clock is ahead"
            yield Alert("clock-ahead", Severity.WARNING, lease.trial, text)


def _of_reads(reads: Reads) -> Iterator[Alert]:
    for cell in reads.cells:
        if cell.state is ReadState.FAILED:
            text = shorten(f"read failed: {cell.detail or 'no reason given'}", MOST_TEXT)
            yield Alert("read-failed", Severity.WARNING, f"{cell.owner}/{cell.tag}", text, condition=cell.detail)
        elif cell.state is ReadState.OVERDUE:
            text = f"read overdue, launched {shown_age(cell.age_s)} ago"
            yield Alert("read-overdue", Severity.WARNING, f"{cell.owner}/{cell.tag}", text)


def _of_readout(readout: Readout | None, verdicts: Iterable[StageVerdict]) -> Iterator[Alert]:
    """A candidate is ready until every stage that is known of its size is decided, or one is failed."""
    verdicts = list(verdicts)
    for size, arm in readout.candidates if readout else ():
        stages = [verdict for verdict in verdicts if verdict.size == size]
        waiting = [verdict.stage for verdict in stages if not verdict.source]
        if arm and (waiting or not stages) and not any(verdict.passed is False for verdict in stages):
            text = f"{arm} is ready as the candidate of {size}"
            text += f"; to be confirmed: {', '.join(waiting)}" if waiting else ""
            yield Alert("candidate", Severity.INFO, size, shorten(text, MOST_TEXT), condition=arm)


def _of_findings(findings: Iterable[Finding]) -> Iterator[Alert]:
    for finding in findings:
        text = shorten(finding.reason, MOST_TEXT)
        yield Alert("damaged", Severity.WARNING, finding.path, text, condition=finding.reason)
