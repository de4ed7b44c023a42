"""From records to a report: the same records and the same moment give the same report."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from kev.meter import describe_gap, is_alarming
from kev.records.base import utc_from_unix
from kev.records.event import Event
from kev.rounds.status import state_of
from kev.session.standing import Standing
from kev.session_report.commands import command_for
from kev.session_report.records import Records, read_records
from kev.session_report.results import round_result
from kev.session_report.steps import next_steps
from kev.session_report.structure import Incident, Money, Pending, Row, SessionReport


def read_report(root: Path, state: Path, now: datetime) -> SessionReport:
    """The report of the session whose state file is `state`, as of `now`. Raises as `read_records` does."""
    return build_report(read_records(root, state, now), now)


def build_report(records: Records, now: datetime) -> SessionReport:
    """The report of a session as of `now`."""
    standing = records.standing
    pending = tuple(_pending(records))
    rounds = tuple(round_result(each) for each in records.rounds)
    return SessionReport(
        session=standing.session.name,
        simulated=standing.session.simulated,
        at=now,
        opened_at=standing.session.opened_at,
        closed_at=standing.session.closed_at,
        mode=standing.mode,
        money=_money(standing),
        pending=pending,
        incidents=tuple(incidents(records.events)),
        rounds=rounds,
        next_steps=next_steps(records, pending),
        findings=records.findings,
    )


def _money(standing: Standing) -> Money:
    session, account, reading = standing.session, standing.account, standing.reading
    spent = session.spent
    metered, billed = (reading.metered, reading.billed) if reading else (None, None)
    return Money(
        authorization=account.authorization,
        reserve=account.reserve,
        baseline=session.baseline,
        cycle=session.cycle,
        spent=account.spent,
        carried=spent.carried if spent else None,
        metered=metered,
        billed=billed,
        read_at=reading.at if reading else None,
        age_s=standing.age_s,
        gap=describe_gap(metered, billed) if metered is not None else "",
        alarming=metered is not None and is_alarming(metered, billed),
        running=tuple(Row(part.name, part.usd) for part in standing.parts if part.usd is None or part.usd),
        committed=account.committed.usd,
        committed_is_complete=account.committed.complete,
        headroom=account.headroom if account.committed.complete else None,
        gateway_authorization=session.gateway_authorization,
        gateway_spent=session.gateway_spent,
    )


def _pending(records: Records) -> Iterable[Pending]:
    session = records.standing.session.name
    specs = {each.spec.round: each for each in records.rounds}
    for unit in records.units.open():
        if unit.order.session not in (session, None):
            continue
        current = unit.current
        yield Pending(
            name=unit.id,
            state=state_of(unit),
            call=current.call if current else None,
            attempt=len(unit.counted),
            attempts=unit.order.attempts,
            since=utc_from_unix(current.at if current else unit.wanted_at),
            usd=unit.rest(),
            command=command_for(unit, specs.get(unit.order.round or -1), session),
        )
    for part in records.standing.parts:
        if part.is_work:  # of others, or only in the session's state
            yield Pending(part.name, "not known to have ended", None, 0, 0, None, part.usd,
                          f"modal run modal_app.py::pull --name {part.name}")  # fmt: skip


def incidents(events: Iterable[Event]) -> Iterable[Incident]:
    """What the journal does not call harmless, each said once with how often it happened, in order of the first."""
    found: dict[tuple[str, str, str], list[Event]] = {}
    for event in events:
        if event.severity != "info":
            found.setdefault((event.kind, event.subject, event.text), []).append(event)
    for (kind, subject, text), same in found.items():
        yield Incident(same[0].happened, same[-1].happened, len(same), kind, same[0].severity, subject, text)
