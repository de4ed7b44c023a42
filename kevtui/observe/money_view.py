"""Spend against the authorization: the session's figures, with what is committed reckoned from the ledgers."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal

from kev import budget
from kev.errors import Refused
from kev.session import Session
from kevtui.observe.derive import coarse
from kevtui.observe.snapshot import Money, Study

BURN_HOURS = 2.0
"""The burn rate is measured over the readings of this long before the newest, or over the last two."""

Spending = tuple[tuple[datetime, Decimal], ...]


def view_money(
    session: Session | None,
    studies: Iterable[Study],
    *,
    unreadable: int,
    reads: Mapping[str, Decimal | None],
    readings: Spending,
    gateway_spent: Decimal | None = None,
    now: datetime,
) -> Money:
    """The account at `now`.

    `unreadable`: ledgers that cannot be believed, each of which may cost money. `reads`: bounds of launched batches
    of reads that have not all landed, None where a bound is not known. `readings` as `spending` gives them.
    `gateway_spent`: what the usage records of reads add up to, where the session does not say.
    """
    studies = list(studies)
    bounds = [*_bounds(session, studies), *_read_bounds(session, reads), *[None] * unreadable]
    committed = budget.committed(bounds)
    if session is None:
        # A sum over nothing known is not a zero.
        launched = bool(bounds) or any(study.launched for study in studies)
        return Money(
            committed=committed.usd if launched else None,
            committed_complete=committed.complete,
            committed_note=_on_committed(committed, unreadable, studies),
            gateway_spent=gateway_spent,
        )
    known = session.spent
    account = budget.Account(session.authorization, session.reserve, known.usd if known else None, committed)
    at = session.readings[-1].at if session.readings else None
    age_s = (now - at).total_seconds() if at else None
    burn = burn_per_hour(readings)
    stale = age_s is not None and not 0 <= age_s <= budget.MAX_READING_AGE
    exhausted_in_s, on_exhaustion = _exhausted_in(account.headroom, burn, stale=stale)
    return Money(
        authorization=session.authorization,
        baseline=session.baseline,
        metered=session.metered,
        spent=account.spent,
        committed=committed.usd,
        reserve=session.reserve,
        headroom=account.headroom,
        committed_complete=committed.complete,
        committed_note=_on_committed(committed, unreadable, studies),
        reading_at=at,
        reading_age_s=None if age_s is not None and age_s < 0 else coarse(age_s),
        reading_stale=stale,
        source=session.source,
        simulated=session.simulated,
        burn_per_hour=burn,
        exhausted_in_s=exhausted_in_s,
        exhaustion_note=on_exhaustion,
        gateway_spent=gateway_spent if session.gateway_spent is None else session.gateway_spent,
        gateway_authorization=session.gateway_authorization,
        readings=readings,
    )


def spending(session: Session | None) -> Spending:
    """(moment, spent since the baseline) of every reading, oldest first, carried over billing cycles."""
    if session is None or session.baseline is None:
        return ()
    total, last = Decimal(0), session.baseline
    series = []
    for reading in session.readings:
        step = budget.spent(last, [reading.metered])
        total, last = total + (step.usd if step else Decimal(0)), reading.metered
        series.append((reading.at, total))
    return tuple(series)


def burn_per_hour(readings: Spending) -> Decimal | None:
    """US dollars per hour over the newest readings; None with fewer than two."""
    if len(readings) < 2:
        return None
    newest_at, newest = readings[-1]
    recent = [point for point in readings[:-1] if (newest_at - point[0]).total_seconds() <= BURN_HOURS * 3600]
    first_at, first = recent[0] if recent else readings[-2]
    hours = Decimal(str((newest_at - first_at).total_seconds())) / 3600
    return ((newest - first) / hours).quantize(budget.CENT) if hours > 0 else None


def bound_of_reads(gpu: object, timeouts_s: Sequence[float]) -> Decimal | None:
    """The most that read jobs with these timeouts can cost; None where the card has no known price."""
    try:
        return sum((budget.compute_bound(gpu, timeout_s, 1) for timeout_s in timeouts_s), Decimal(0))
    except Refused:
        return None


def _bounds(session: Session | None, studies: Iterable[Study]) -> Iterable[Decimal | None]:
    seen = set()
    for study in studies:
        seen.add(study.name)
        if not study.settled and study.launched:
            yield study.bound
    for work in session.studies if session else ():
        if work.name not in seen and not work.settled:
            yield work.bound


def _read_bounds(session: Session | None, reads: Mapping[str, Decimal | None]) -> Iterable[Decimal | None]:
    listed = {work.name for work in session.reads} if session else set()
    yield from (work.bound for work in (session.reads if session else ()) if not work.settled)
    yield from (bound for name, bound in reads.items() if name not in listed)


def _exhausted_in(headroom: Decimal | None, burn: Decimal | None, *, stale: bool) -> tuple[float | None, str]:
    """(seconds from the newest reading on, what that rests on), or (None, why it is not known)."""
    if burn is None:
        return None, "a rate takes two readings"
    if burn <= 0:
        return None, "nothing was spent between the last readings"
    if headroom is None:
        return None, "the headroom is not known"
    return max(0.0, float(headroom / burn) * 3600), "at the last known rate" if stale else "at this rate"


def _on_committed(committed: budget.Committed, unreadable: int, studies: Iterable[Study]) -> str:
    if unreadable:
        return "a ledger cannot be read"
    if not committed.complete:
        return "the bound of running work is not known"
    if committed.usd:
        return ""
    return "all settled" if any(study.settled for study in studies) else "nothing launched"
