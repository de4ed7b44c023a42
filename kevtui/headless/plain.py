"""A Snapshot as lines: one for every change, and at least one a minute that sums everything up.

Every line begins with its moment in UTC. The lines go on until they are interrupted, even when everything is settled:
a read-out, a relaunch or a confirmation may still come, and whoever wants one picture has `--once`.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from typing import Final, Protocol, TypeVar

from kev.clock import Clock
from kev.text import shorten, visible
from kevtui.headless.facts import Fact, facts, summary
from kevtui.headless.output import Output
from kevtui.observe.snapshot import Snapshot

SUMMARY_EVERY_S: Final = 60.0
PACE_S: Final = 10.0
"""Between two lines on the steps of one trial: a trainer that logs each second would drown every other line."""

LOOK_EVERY_S: Final = 5.0
"""Between two looks when no file changes: leases grow stale and watchers die without touching a file."""

LONGEST: Final = 4000
ENDINGS: Final = {"finding": "cleared", "alert": "cleared"}


class Picture(Protocol):
    """What every kind of Snapshot has."""

    @property
    def taken_at(self) -> datetime: ...


AnyPicture = TypeVar("AnyPicture", bound=Picture)
AnyPicture_co = TypeVar("AnyPicture_co", bound=Picture, covariant=True)


class Source(Protocol[AnyPicture_co]):
    """What the lines are told from; `kevtui.observe.observer.Observer` is one."""

    def observe(self) -> AnyPicture_co: ...

    def wait(self, timeout_s: float) -> bool:
        """Return when something changed, or after `timeout_s`."""
        ...


class Teller:
    """Remembers what the reader was told, and tells what is new."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], Fact] = {}
        self._paced_at: dict[tuple[str, str], float] = {}
        self._summed_at: float | None = None

    def tell(self, snapshot: Snapshot, monotonic: float) -> list[str]:
        """The lines for `snapshot`, seen at `monotonic` seconds: everything at first, then what changed."""
        return self.say(facts(snapshot), lambda: summary(snapshot), snapshot.taken_at, monotonic)

    def say(self, known: Iterable[Fact], summed: Callable[[], str], taken_at: datetime, monotonic: float) -> list[str]:
        """As `tell`, for the facts `known` of any kind of picture and the line that sums it up."""
        lines = []
        now = {fact.key: fact for fact in known}
        for key, fact in now.items():
            before = self._told.get(key)
            if before is not None and before.token == fact.token:
                continue
            if fact.paced and monotonic - self._paced_at.get(key, -PACE_S) < PACE_S:
                continue
            self._told[key] = fact
            if fact.paced:
                self._paced_at[key] = monotonic
            was = f" (was {before.state})" if before and before.state != fact.state else ""
            lines.append(fact.line + was)
        for key in self._told.keys() - now.keys():
            gone = self._told.pop(key)
            self._paced_at.pop(key, None)
            if gone.kind != "event":  # a journal is read from its end, so old events leave the Snapshot
                lines.append(f"{gone.kind} {gone.subject}: {ENDINGS.get(gone.kind, 'no longer there')}")
        if self._summed_at is None or monotonic - self._summed_at >= SUMMARY_EVERY_S:
            self._summed_at = monotonic
            lines.append(summed())
        return [_stamped(line, taken_at) for line in lines]

    def wait_s(self, monotonic: float) -> float:
        """Seconds until the next look, so that the minute's summary is not late."""
        if self._summed_at is None:
            return 0.0
        return max(0.0, min(LOOK_EVERY_S, self._summed_at + SUMMARY_EVERY_S - monotonic))


def follow(
    source: Source[Snapshot], output: Output, clock: Clock, over: Callable[[], bool] = lambda: False
) -> Snapshot:
    """Write lines until `over` says so or ctrl-C; the last Snapshot. Raises OutputEnded and OutputLost."""
    return follow_facts(source, facts, summary, output, clock, over)


def follow_facts(
    source: Source[AnyPicture],
    facts_of: Callable[[AnyPicture], Iterable[Fact]],
    summary_of: Callable[[AnyPicture], str],
    output: Output,
    clock: Clock,
    over: Callable[[], bool] = lambda: False,
) -> AnyPicture:
    """As `follow`, for any kind of picture and what is to be told of it."""
    teller = Teller()
    snapshot = None
    try:
        while True:
            # Asked before looking, so that what changed last is still told.
            last = over()
            snapshot = source.observe()
            known, summed = facts_of(snapshot), partial(summary_of, snapshot)
            for line in teller.say(known, summed, snapshot.taken_at, clock.monotonic()):
                output.write(line + "\n")
            if last:
                output.write(_stamped(summary_of(snapshot), snapshot.taken_at) + "\n")
                return snapshot
            output.look_for_reader()
            source.wait(teller.wait_s(clock.monotonic()))
    except KeyboardInterrupt:
        if snapshot is None:
            raise
        return snapshot


def _stamped(line: str, at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ} {shorten(visible(line), LONGEST)}"
