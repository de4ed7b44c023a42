"""Which answers of an endpoint are worth another try, and how long to wait for it.

A busy or restarting endpoint is asked again; one that says the request is wrong is not, since it would say so again.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

BUSY = frozenset({429, 503, 529})
"""Not now: the request was not served."""

GATEWAY = frozenset({502, 504})
"""No telling: something in between lost the endpoint, which may have served the request."""

REFUSED = frozenset({400, 413, 422})
"""This request, never: it counts as not covered."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Waits between tries of one request: doubling, drawn at random below that, never shorter than Retry-After asks.

    `total` seconds of failed tries and waits are spent on a request at most.
    """

    first: float = 1.0
    longest: float = 30.0
    total: float = 300.0
    chance: Callable[[], float] = random.random

    def wait(self, tries: int, retry_after: float | None) -> float:
        """Seconds before the next try, after `tries` of them."""
        ceiling = min(self.longest, self.first * 2.0 ** min(tries - 1, 30))
        # At least half of it: threads that were refused together must not come back together, nor at once.
        drawn = ceiling * (0.5 + 0.5 * self.chance())
        return max(drawn, retry_after or 0.0)


def is_worth_retrying(status: int) -> bool:
    """Whether an HTTP status may be another one the next time."""
    return status in BUSY or status in GATEWAY


def parse_retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds that a Retry-After header asks for: a number of them, or a date; None for anything else."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit() and len(text) < 10:
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
