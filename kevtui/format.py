"""Figures as people read them. None is always shown as missing, never as zero."""

from datetime import datetime
from decimal import Decimal

MISSING = "–"
DAY_S = 86_400


def money(amount: Decimal | None) -> str:
    """US dollars to the cent: "$1,000.00", "−$3.20"."""
    if amount is None:
        return MISSING
    sign = "−" if amount < 0 else ""
    return f"{sign}${abs(amount):,.2f}"


def dollars(amount: Decimal | None) -> str:
    """US dollars without cents, for narrow places: "$292"."""
    if amount is None:
        return MISSING
    sign = "−" if amount < 0 else ""
    return f"{sign}${abs(amount):,.0f}"


def age(seconds: float | None) -> str:
    """A duration in its one natural unit: "12 s", "4 min", "3 h 10", "2 d". A negative one is a clock ahead."""
    if seconds is None:
        return MISSING
    if seconds < 0:
        return "clock ahead"
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds < 59.5 else "1 min"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes:02d}"
    days = round(seconds / DAY_S)
    return f"{days} d"


def clock(moment: datetime | None) -> str:
    """As "23:58Z"; the zone is always UTC and always said."""
    return MISSING if moment is None else f"{moment:%H:%M}Z"


def ending(moment: datetime, remaining_s: float) -> str:
    """When something ends: "23:58", or "in 8 d" where the hour would be taken for one of today's."""
    if remaining_s < DAY_S:
        return f"{moment:%H:%M}"
    return f"in {age(remaining_s)}" if remaining_s < 1000 * DAY_S else "in years"


def percent(share: float | None) -> str:
    return MISSING if share is None else f"{100 * share:.1f} %"
