"""A notice that ends.

Textual 8.2 looks which notices are over, by the clock on the wall, and sets a timer for each that is not. One that ends
between the two gets a timer of less than nothing, which turns on itself for ever, and every key with it.
"""

import time
from dataclasses import dataclass, field

from textual.notifications import Notification

LEAST_S = 0.01
"""What a notice has left that is over already, until its timer says so."""


@dataclass
class Notice(Notification):
    """Told apart by its own clock, which nobody sets."""

    begun: float = field(default_factory=lambda: time.monotonic())

    @property
    def time_left(self) -> float:
        """Seconds, never so few that no timer can be set for them."""
        return max(LEAST_S, self._left_s)

    @property
    def has_expired(self) -> bool:
        return self._left_s <= 0

    @property
    def _left_s(self) -> float:
        return self.begun + self.timeout - time.monotonic()
