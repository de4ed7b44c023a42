"""What a Snapshot says, one fact a line, under keys that last from one Snapshot to the next.

The wording is stable: scripts grep it. A line reads `<kind> <subject>: <words>`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kevtui import format as figures
from kevtui.observe.snapshot import Alert, Arm, Criterion, Lease, Money, ReadCell, Snapshot, Study, Trial


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that is so."""

    kind: str
    subject: str
    words: str
    token: object
    """The fact has changed when this has: ages and moving figures are in the words only."""
    state: str = ""
    """A word for what it is now, repeated as "was" when it changes."""
    paced: bool = False
    """True for what moves all the time, and is said now and then only."""

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.subject

    @property
    def line(self) -> str:
        return f"{self.kind} {self.subject}: {self.words}" if self.subject else f"{self.kind}: {self.words}"


def facts(snapshot: Snapshot) -> Iterator[Fact]:
    """Every fact of `snapshot`, in the order they are worth reading."""
    yield _session(snapshot)
    for finding in snapshot.findings:
        yield Fact("finding", finding.path, finding.reason, finding.reason)
    yield from map(_alert, alerts_apart(snapshot))
    yield _money(snapshot.money)
    yield Fact("watcher", "", str(snapshot.watcher.state), snapshot.watcher.state, str(snapshot.watcher.state))
    for study in snapshot.studies:
        yield _study(study)
        for trial in study.trials:
            yield _trial(trial)
            if trial.step is not None:
                yield _step(trial)
    yield from map(_lease, snapshot.leases)
    yield from map(_read, snapshot.reads.cells)
    if snapshot.readout is not None:
        for arm in snapshot.readout.arms:
            yield _arm(arm)
            yield from (_criterion(arm.name, criterion) for criterion in arm.criteria)
        for size, candidate in snapshot.readout.candidates:
            yield Fact("candidate", size, candidate or "none", candidate, candidate or "none")
    for verdict in snapshot.verdicts:
        words = {True: "passed", False: "failed", None: "no verdict yet"}[verdict.passed]
        yield Fact("verdict", f"{verdict.size}/{verdict.stage}", words, verdict.passed, words)
    for event in snapshot.events:
        at = "" if event.at is None else f" at {event.at:%Y-%m-%dT%H:%M:%SZ}"
        subject = " ".join(part for part in (str(event.severity), event.subject) if part)
        # An event happened once: its text is what tells it from the next one on the same subject.
        yield Fact("event", f"{subject}{at}", event.text, event.text)


def alerts_apart(snapshot: Snapshot) -> list[Alert]:
    """The alerts that do not only repeat a finding, which is told as such."""
    found = {(finding.path, finding.reason) for finding in snapshot.findings}
    return [alert for alert in snapshot.alerts if (alert.subject, alert.text) not in found]


def summary(snapshot: Snapshot) -> str:
    """Everything in one line."""
    money = snapshot.money
    complete = "" if money.committed_complete else " (incomplete)"
    arms = snapshot.readout.arms if snapshot.readout else ()
    candidates = snapshot.readout.candidates if snapshot.readout else ()
    parts = [
        f"spent {figures.money(money.spent)} of {figures.money(money.authorization)}, "
        f"committed at most {figures.money(money.committed)}{complete}, headroom {figures.money(money.headroom)}, "
        f"reading {figures.age(money.reading_age_s)} old",
        _count("trials", (trial.state for trial in snapshot.trials)),
        _count("leases", (lease.state for lease in snapshot.leases)),
        f"watcher {snapshot.watcher.state}",
        _count("reads", (cell.state for cell in snapshot.reads.cells)),
        f"arms {len(arms)}, passed {sum(arm.passed is True for arm in arms)}",
        "candidates " + (", ".join(f"{size} {arm or 'none'}" for size, arm in candidates) or "none"),
        f"findings {len(snapshot.findings)}",
        "alerts " + _standing(snapshot.alerts),
    ]
    return "summary: " + "; ".join(parts)


def _count(what: str, states: Iterable[str]) -> str:
    counted = Counter(str(state) for state in states)
    return f"{what} " + (", ".join(f"{number} {state}" for state, number in counted.items()) or "0")


def _standing(alerts: Iterable[Alert]) -> str:
    known = Counter(alert.acknowledged for alert in alerts)
    return f"{known[False]}" + (f", {known[True]} acknowledged" if known[True] else "")


def _session(snapshot: Snapshot) -> Fact:
    words = f"root {snapshot.root}"
    if snapshot.sample:
        words = f"SAMPLE, made up: no such session ran; {words}"
    if snapshot.polling:
        words += f"; {snapshot.polling}"
    return Fact("session", snapshot.title, words, words)


def _alert(alert: Alert) -> Fact:
    # The text may hold an age; the alert is the same as long as its severity and its condition are.
    known = "acknowledged, " if alert.acknowledged else ""
    token = (alert.severity, alert.condition, alert.acknowledged)
    state = f"{known}{alert.severity}"
    return Fact("alert", f"{alert.code} {alert.subject}".strip(), f"{state}: {alert.text}", token, state)


def _money(money: Money) -> Fact:
    words = (
        f"spent {figures.money(money.spent)}, committed at most {figures.money(money.committed)}, "
        f"reserve {figures.money(money.reserve)}, headroom {figures.money(money.headroom)}, "
        f"authorization {figures.money(money.authorization)}"
    )
    words += (
        ""
        if money.committed_complete
        else f"; committed is incomplete: {money.committed_note or 'a bound is not known'}"
    )
    words += "; the reading is stale" if money.reading_stale else ""
    return Fact("money", "", words + ("; simulated" if money.simulated else ""), words)


def _study(study: Study) -> Fact:
    words = ", ".join(
        part
        for part in (
            str(study.state),
            study.status_text and f'"{study.status_text}"',
            f"bound {figures.money(study.bound)}",
            "settled" if study.settled else "" if study.launched else "not launched",
        )
        if part
    )
    return Fact("study", study.name, words, words, str(study.state))


def _trial(trial: Trial) -> Fact:
    tries = "" if trial.attempts_used is None else f"try {trial.attempts_used} of {_number(trial.attempts_allowed)}"
    lasting = [str(trial.state), tries, trial.call and f"call {trial.call}", "finished" if trial.finished else ""]
    words = [*lasting, trial.note, trial.error]
    return Fact(
        "trial",
        trial.id,
        ", ".join(part for part in words if part),
        (*lasting, trial.error),
        str(trial.state),
    )


def _step(trial: Trial) -> Fact:
    words = f"{trial.step} of {_number(trial.steps)}"
    if trial.loss is not None:
        words += f", loss {trial.loss:.3f}"
    words += f", {trial.rate.steps_per_minute:.1f} steps/min" if trial.rate else ""
    if trial.projection is not None:
        remaining_s, finish_at = trial.projection.remaining_s, trial.projection.finish_at
        is_soon = remaining_s < figures.DAY_S
        words += f", ends about {figures.clock(finish_at)}" if is_soon else f", ends in {figures.age(remaining_s)}"
        words += ", past its timeout" if trial.projection.past_timeout else ""
    return Fact("step", trial.id, words, trial.step, paced=True)


def _lease(lease: Lease) -> Fact:
    words = str(lease.state)
    if lease.nonce_matches is False:
        words += ", nonce is not the ledger's"
    return Fact("lease", lease.trial, words, words, str(lease.state))


def _read(cell: ReadCell) -> Fact:
    words = ", ".join(part for part in (str(cell.state), cell.detail) if part)
    return Fact("read", f"{cell.owner}/{cell.tag}", words, (cell.state, cell.detail), str(cell.state))


def _arm(arm: Arm) -> Fact:
    words = {True: "passed", False: "not passed", None: "no verdict"}[arm.passed]
    said = [words, "complete" if arm.complete else "incomplete", arm.note]
    said += [f"missing {what}" for what in arm.missing]
    line = ", ".join(part for part in said if part)
    return Fact("arm", arm.name, line, line, words)


def _criterion(arm: str, criterion: Criterion) -> Fact:
    words = f"{criterion.verdict}, {_figure(criterion.value)} {criterion.op} {_figure(criterion.threshold)}"
    if criterion.lower is not None or criterion.upper is not None:
        words += f", interval [{_figure(criterion.lower)}, {_figure(criterion.upper)}]"
    return Fact("criterion", f"{arm}/{criterion.name}", words, words, str(criterion.verdict))


def _number(value: int | None) -> str:
    return figures.MISSING if value is None else str(value)


def _figure(value: float | None) -> str:
    return figures.MISSING if value is None else f"{value:.4f}"
