"""Reading the provider's meter into the session's state: what was spent, how old that is, and what it may not show.

The meter is read while the session's lock is held, so that no two launches rest on one reading.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from kev.budget import MAX_READING_AGE
from kev.clock import Clock
from kev.compute.errors import Throttled, Unavailable, Unreadable
from kev.compute.protocol import Compute, CostSummary
from kev.errors import Refused
from kev.ledger.units import BILLING_LAG_S, Unit, Units
from kev.records.base import MAX_DOLLARS
from kev.session import Reading, Session, change_locked_state, read_session, session_of_state, with_reading

FRESH_S = 30.0
"""A reading of this age is used again rather than asked for: trials of one study are spawned in a row."""

GAP_ALARM = Decimal("1.25")
"""Billed above metered by more than this factor is an alarm: then something costs money that the meter misses."""

GAP_FLOOR = Decimal(1)
"""Dollars below which a gap between the two is rounding."""


class UnknownSpend(Refused):
    """The provider answered, and its answer is no reading."""


@dataclass(frozen=True, slots=True)
class Meter:
    """The newest reading and the session it is part of."""

    session: Session
    reading: Reading
    age_s: float
    billed: Decimal | None = None
    note: str = ""
    """Why an older reading stands in, where it does."""
    fresh: bool = False
    """Whether it was taken just now."""

    @property
    def gap(self) -> str:
        """Metered and billed side by side; empty where the provider did not say what it bills."""
        return describe_gap(self.reading.metered, self.billed)

    @property
    def alarming(self) -> bool:
        return is_alarming(self.reading.metered, self.billed)


def describe_gap(metered: Decimal, billed: Decimal | None) -> str:
    """Metered and billed side by side, with their difference; empty where the provider did not say what it bills."""
    if billed is None:
        return ""
    return f"metered ${metered:f}, billed ${billed:f}, gap ${billed - metered:+f}"


def is_alarming(metered: Decimal, billed: Decimal | None) -> bool:
    """Whether more is billed than the meter can explain."""
    return billed is not None and billed > metered * GAP_ALARM and billed - metered > GAP_FLOOR


async def read_meter(state: Path, compute: Compute, clock: Clock, units: Units, *, young_s: float = FRESH_S) -> Meter:
    """The meter as it is now, appended to the session's state; the caller holds the session's lock.

    A reading that is at most `young_s` old is used again. A provider that cannot be reached leaves the last reading,
    for as long as that may be used. Raises Refused where the spend is unknown, and what reading the state raises.
    """
    session = read_session(state)
    last = session.readings[-1] if session.readings else None
    age = age_of(last, clock.now())
    if last is not None and age is not None and 0 <= age <= young_s:
        return Meter(session, last, age)
    try:
        summary = await compute.billing_summary()
        check_summary(summary, session)
    except (Unavailable, Throttled) as error:
        age = age_of(last, clock.now())  # to ask in vain may have taken long
        if last is not None and age is not None and 0 <= age <= MAX_READING_AGE:
            return Meter(session, last, age, note=f"{error}; the last reading stands in")
        allowed = f"{MAX_READING_AGE:,.0f} s are allowed"
        raise Refused(f"the spend is unknown: {error}; {_age_in_words(age)}, and {allowed}") from None
    except Unreadable as error:
        raise Refused(f"the spend is unknown: {error}; {_age_in_words(age)}, and nothing is launched on it") from None
    except UnknownSpend as refusal:
        raise UnknownSpend(f"{refusal}; {_age_in_words(age)}, and nothing is launched on it") from None
    at = clock.now()
    if last is not None and at <= last.at:
        at = last.at + timedelta(milliseconds=1)  # the clock was set back; the order of readings is that of asking
    unseen = _unseen_at_reset(session, last, summary.metered, at, units)
    new = change_locked_state(state, lambda old: with_reading(
        old, at, summary.metered, "billing summary", billed=summary.billed, unseen=unseen))  # fmt: skip
    fresh = session_of_state(state, new)
    return Meter(fresh, fresh.readings[-1], 0.0, summary.billed, fresh=True)


def age_of(reading: Reading | None, now: datetime) -> float | None:
    """Seconds since a reading was taken, below zero where this clock is behind it; None without one."""
    return (now - reading.at).total_seconds() if reading is not None else None


def _age_in_words(age_s: float | None) -> str:
    return "there is no reading" if age_s is None else f"the last reading is {age_s:,.0f} s old"


def check_summary(summary: CostSummary, session: Session) -> None:
    """Raises Refused for an answer that is no reading of this session's meter."""
    check_amounts(summary)
    if summary.simulated != session.simulated:
        kinds = ("simulated", "real") if summary.simulated else ("real", "simulated")
        raise Refused(f"{session.source}: the provider's money is {kinds[0]} and the session's is {kinds[1]}")


def check_amounts(summary: CostSummary) -> None:
    """Raises UnknownSpend for an answer that is no reading."""
    for what, amount in (("metered", summary.metered), ("billed", summary.billed)):
        if not isinstance(amount, Decimal) or not amount.is_finite() or not 0 <= amount < MAX_DOLLARS:
            raise UnknownSpend(f"the spend is unknown: the billing answer says {what} {str(amount)!r:.40}")


def _unseen_at_reset(
    session: Session, last: Reading | None, metered: Decimal, at: datetime, units: Units
) -> Decimal | None:
    """What may have been metered between the last reading and the end of its cycle; None if none has ended."""
    before = last.metered if last is not None else session.baseline
    if before is None or metered >= before:
        return None
    since = last.at if last is not None else datetime(1970, 1, 1, tzinfo=UTC)
    return most_spent_between(units.by_id.values(), since.timestamp(), at.timestamp())


def most_spent_between(units: Iterable[Unit], since: float, until: float) -> Decimal:
    """The most that can have been metered in that time, with the meter's own delay."""
    total = Decimal(0)
    for unit in units:
        for attempt in unit.counted:
            end = until if attempt.ended_at is None else attempt.ended_at
            seconds = min(end, until) - max(attempt.at, since - BILLING_LAG_S)
            if end >= since - BILLING_LAG_S:
                share = min(Decimal(1), Decimal(str(round(max(0.0, seconds) + 60.0, 3))) / unit.order.timeout)
                total += unit.order.attempt_usd * share
    return total
