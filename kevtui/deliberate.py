"""Whether a key press was meant, told by when keys arrive: a key that is held, a paste and a double press come fast."""

import math

QUIET_S = 0.3
"""A key that may do something comes after at least this long without another one."""

SETTLE_S = 0.15
"""And nothing follows it for this long: the first character of a paste is followed by the second at once."""


class Typing:
    """The keys of one terminal. Times are monotonic seconds."""

    def __init__(self, quiet_s: float = QUIET_S, settle_s: float = SETTLE_S) -> None:
        self.quiet_s, self.settle_s = quiet_s, settle_s
        self.count = 0
        """Keys and pastes so far."""
        self._last = self._before = -math.inf

    def pressed(self, at: float) -> None:
        """A key or a paste arrived."""
        self._before, self._last = self._last, at
        self.count += 1

    def quiet_for(self, now: float) -> float:
        """Seconds since the newest key."""
        return now - self._last

    def is_fresh(self, since: float = -math.inf) -> bool:
        """Whether the newest key came after `since`, and after enough quiet."""
        return self._last > since and self._last - self._before >= self.quiet_s
