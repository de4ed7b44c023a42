"""A clock that a test moves."""

from datetime import UTC, datetime, timedelta

BEGAN = datetime(2027, 2, 3, 4, 5, 6, tzinfo=UTC)


class HandClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.wall = BEGAN
        self.seconds = 100.0

    def now(self) -> datetime:
        return self.wall

    def monotonic(self) -> float:
        return self.seconds

    def pass_time(self, seconds: float) -> None:
        self.seconds += seconds
        self.wall += timedelta(seconds=seconds)

    def wall_back(self, seconds: float) -> None:
        """Set the wall clock back, as somebody who wants more time would."""
        self.wall -= timedelta(seconds=seconds)
