"""The thread between observing and painting: one Snapshot at a time, and no more than can be looked at."""

import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from typing_extensions import TypeVar

from kevtui.observe.snapshot import Snapshot

Picture = TypeVar("Picture", covariant=True, default=Snapshot)


class SnapshotSource(Protocol[Picture]):
    """Where Snapshots come from, or other immutable pictures of one moment."""

    @property
    def pace_s(self) -> float | None:
        """Seconds between two looks; None for the pace of what is watched as it happens."""
        ...

    def observe(self) -> Picture:
        """What is known now."""
        ...

    def wait(self, timeout_s: float) -> bool:
        """Block until something may have changed, at most `timeout_s`; true if so."""
        ...

    def close(self) -> None:
        """Let go of files and threads."""
        ...


IDLE_S = 5.0
"""Without any change a Snapshot is taken this often: ages grow, and no age is shown more finely."""

BURST = 3
"""So many changes are handed over at once before the pace below sets in: a single change is seen without delay."""

INTERVAL_S = 1.0
UNFOCUSED = 2.0
"""Nobody looks at a terminal without the focus: half the pace."""


RESTING_LOOK_S = 10.0
"""While another session is looked at, its changes are asked for this often: an alert may come that much later."""

RESTING_IDLE_S = 30.0
"""And without a change a Snapshot is taken this often: some alerts come from time alone."""


class Pace:
    """A token bucket: `BURST` at once, then one an interval."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._tokens = float(BURST)
        self._at = monotonic()
        self.factor = 1.0

    @property
    def interval_s(self) -> float:
        return INTERVAL_S * self.factor

    def delay_s(self) -> float:
        """Take a token; the seconds to wait until it is there."""
        now = self._monotonic()
        self._tokens = min(float(BURST), self._tokens + (now - self._at) / self.interval_s)
        self._at = now
        self._tokens -= 1.0
        return max(0.0, -self._tokens * self.interval_s)


LISTEN_S = 5.0
"""Between two looks at whether anything was heard."""

SILENT_AFTER = 4
"""So many looks in vain are a silence: longer than the slowest pace has between two Snapshots."""


class Silence:
    """How long a feed has brought nothing.

    Counted in looks and not by a clock: a program that was stopped for an hour has not listened for an hour.
    """

    def __init__(self) -> None:
        self._heard = 0
        self._looks = 0

    def look(self, heard: int) -> float:
        """Seconds of silence that are worth a word, else 0; `heard` is `Feed.heard`. Called every `LISTEN_S`."""
        self._looks = self._looks + 1 if heard == self._heard else 0
        self._heard = heard
        return self._looks * LISTEN_S if self._looks >= SILENT_AFTER else 0.0


class Feed(threading.Thread):
    """Opens the source, then observes and waits until stopped. The two callables must be safe to call from a thread."""

    def __init__(
        self,
        open_source: Callable[[], SnapshotSource[Any]],
        deliver: Callable[[Any], object],
        fail: Callable[[Exception], object],
    ) -> None:
        # A daemon, so that a source that hangs on a dead network volume cannot keep the program from ending.
        super().__init__(name="feed", daemon=True)
        self._open_source = open_source
        self._deliver = deliver
        self._fail = fail
        self._stopping = threading.Event()
        self._wanted = threading.Event()
        self._wanted.set()
        self._pace = Pace()
        self.heard = 0
        """How many Snapshots have come. A source that waits for a dead volume brings none."""

    def slow_down(self, slower: bool) -> None:
        self._pace.factor = UNFOCUSED if slower else 1.0

    def rest(self, resting: bool) -> None:
        """Ask for next to nothing while nobody looks; a Snapshot comes at once when somebody does again."""
        if resting:
            self._wanted.clear()
        else:
            self._wanted.set()

    def stop(self) -> None:
        self._stopping.set()
        self._wanted.set()

    def run(self) -> None:
        try:
            source = self._open_source()
            try:
                while not self._stopping.is_set():
                    snapshot = source.observe()
                    self.heard += 1
                    self._deliver(snapshot)
                    if not self._wanted.is_set():
                        self._rest(source)
                        continue
                    source.wait(IDLE_S * self._pace.factor)
                    self._stopping.wait(self._pace.delay_s() if source.pace_s is None else source.pace_s)
            finally:
                source.close()
        except Exception as error:
            # Handed over whole: the screen ends in good order before anything is said about it.
            if not self._stopping.is_set():
                self._fail(error)

    def _rest(self, source: SnapshotSource[Any]) -> None:
        """Return when somebody looks, when something has changed, or when a Snapshot is due."""
        looks = round(RESTING_IDLE_S / RESTING_LOOK_S)
        for _ in range(looks):
            if self._wanted.wait(RESTING_LOOK_S) or source.wait(0.0):
                return
