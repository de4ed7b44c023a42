"""How many calls are under way at once, for endpoints that may take only one: fewer when they are busy, then more."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

SUCCESSES = 8
"""Calls served in a row before one more is let in; doubled each time that turns out to have been one too many."""

MOST_SUCCESSES = 1024


class Pace:
    """A gate for threads. `allowed` begins at `most` and never leaves 1 to `most`."""

    def __init__(self, most: int) -> None:
        if most < 1:
            raise ValueError("at least one call has to be allowed")
        self.most = most
        self.allowed = most
        self._needed = SUCCESSES
        self._served = 0
        self._under_way = 0
        self._changed = threading.Condition()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn, and have it for the block."""
        with self._changed:
            self._changed.wait_for(lambda: self._under_way < self.allowed)
            self._under_way += 1
        try:
            yield
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def note_busy(self) -> None:
        """The endpoint had no room for a call: let in half as many."""
        with self._changed:
            self.allowed = max(1, self.allowed // 2)
            self._needed = min(MOST_SUCCESSES, self._needed * 2)
            self._served = 0

    def note_served(self) -> None:
        """The endpoint answered a call."""
        with self._changed:
            self._served += 1
            if self._served >= self._needed and self.allowed < self.most:
                self.allowed += 1
                self._served = 0
                self._changed.notify_all()
