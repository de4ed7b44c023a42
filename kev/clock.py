"""The two clocks, never mixed: UTC for what is written down, monotonic for how long something lasted."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Passed to whatever needs the time, so that a test can hold it still."""

    def now(self) -> datetime:
        """The moment, UTC-aware."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed point; unmoved by adjustments of the wall clock."""
        ...


class SystemClock:
    """This machine's clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        # CLOCK_BOOTTIME would count a suspended machine; a lease that was silent while we slept was not seen
        # to be silent, so time asleep must not age it.
        return time.monotonic()
