"""Times in files that others wrote, read as moments where they are moments.

A time without an offset is not a moment: it is kept, marked, and never guessed to be UTC or local.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from kev.records.base import LATEST_UNIX_SECONDS, utc_from_unix

LONGEST = 40
"""Characters of a text that is remembered: any time is shorter, and what a damaged file holds may be of any length."""

_LEAP_SECOND = re.compile(r"(:\d\d:)60(?=$|[.,Z+-])")


@dataclass(frozen=True, slots=True)
class Instant:
    """A time as written, and what it means."""

    text: str
    at: datetime | None = None
    """UTC-aware; None where `problem` says why."""
    problem: str | None = None


def read_instant(value: object) -> Instant:
    """`value` as a moment. Never raises: what cannot be one comes back with the reason.

    A number is Unix seconds; text is ISO 8601 with an offset; a leap second is the second after it.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return Instant(str(value), problem="not a time")
    if isinstance(value, str):
        return _read_text(value) if len(value) > LONGEST else _read_again(value)
    if not 0 <= value <= LATEST_UNIX_SECONDS:
        return Instant(str(value), problem="out of the range of Unix seconds")
    return Instant(str(value), at=utc_from_unix(value))


@lru_cache(maxsize=4096)
def _read_again(text: str) -> Instant:
    """`_read_text`, remembered: a state is read before every launch, and the times of its readings stay."""
    return _read_text(text)


def _read_text(text: str) -> Instant:
    plain, leap_seconds = _LEAP_SECOND.subn(r"\g<1>59", text.strip(), count=1)
    try:
        moment = datetime.fromisoformat(plain)
        if moment.tzinfo is None:
            return Instant(text, problem="has no time zone")
        return Instant(text, at=(moment + timedelta(seconds=leap_seconds)).astimezone(UTC))
    except (ValueError, OverflowError):
        return Instant(text, problem="not an ISO 8601 time")
