"""Plays a night as a source of Snapshots: at a speed, paused, or moved from event to event."""

import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from kevtui.observe.observer import renewed
from kevtui.observe.snapshot import Snapshot
from kevtui.replay.history import History
from kevtui.replay.past import moment

SPEEDS = (1, 2, 5, 10, 30, 60, 120, 300, 1000)
FRAME_S = 0.25
REST = 4.0
"""Playing pauses this many times as long as a moment takes to be made: a long night is played in fewer pictures."""

QUIET = timedelta(hours=1)
LEAD = timedelta(minutes=1)
"""A stretch of `QUIET` or more in which nothing was written is passed over, up to `LEAD` before its end."""


class Player:
    """A SnapshotSource. `observe` and `wait` belong to one thread; everything else may be called from any."""

    pace_s: Final = 0.05
    """Steps by hand are shown as they are made."""

    def __init__(
        self,
        open_history: Callable[[], History],
        *,
        start: Callable[[History], datetime] = lambda history: history.begins_at,
        speed: float = 60.0,
        playing: bool = True,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`open_history` reads the files; it is called by the first `observe`, and so is `start`."""
        self._open_history, self._start = open_history, start
        self._monotonic = monotonic
        self._wake = threading.Condition()
        self._history: History | None = None
        self._at: datetime | None = None
        self._since = 0.0
        self._speed = min(1000.0, max(1.0, speed))
        self._playing = playing
        self._moved = False
        self._closed = False
        self._last: Snapshot | None = None
        self._shown: Snapshot | None = None
        """The moment that was made last: while time stands still it is not made again."""
        self._frame_s = FRAME_S
        self._reread = ""
        """The word of a jump that found nothing later, until the files are read again."""

    # ---- a source

    def observe(self) -> Snapshot:
        if self._history is None or self._reread:
            self._open()
        assert self._history is not None
        history = self._history
        with self._wake:
            at = self._advance()
            speed, playing = self._speed, self._playing
            self._moved = False
        if self._shown is None or self._shown.taken_at != at:
            began = self._monotonic()
            self._shown = moment(history, at)
            self._frame_s = max(FRAME_S, REST * (self._monotonic() - began))
        assert self._shown.replay is not None
        snapshot = replace(self._shown, replay=replace(self._shown.replay, speed=speed, playing=playing))
        self._last = renewed(self._last, snapshot)
        return self._last

    def _open(self) -> None:
        """Read the files, for the first time or again: a night that is not over goes on meanwhile."""
        history = self._open_history()
        _ = history.happenings, history.moves  # found here, so that no key waits for it
        with self._wake:
            self._history, self._shown = history, None
            if self._at is None:
                self._at = _within(history, self._start(history))
                self._since = self._monotonic()
            elif self._reread:
                self._jump(self._at, forward=True, incidents=self._reread == "incident")
            self._reread = ""

    def wait(self, timeout_s: float) -> bool:
        with self._wake:
            limit = min(timeout_s, self._frame_s) if self._playing else timeout_s
            self._wake.wait_for(lambda: self._moved or self._closed, limit)
            return self._moved or self._playing

    def close(self) -> None:
        with self._wake:
            self._closed = True
            self._wake.notify_all()

    # ---- controls; nothing happens before the night was read

    def command(self, name: str) -> None:
        """One of `pause`, `faster`, `slower`, `event`, `event_back`, `incident`, `incident_back`, `scrub SECONDS`."""
        word, _, rest = name.partition(" ")
        with self._wake:
            if self._history is None:
                return
            at = self._advance()
            match word:
                case "pause":
                    self._playing = not self._playing and at < self._history.ends_at
                case "faster":
                    self._speed = next((speed for speed in SPEEDS if speed > self._speed), SPEEDS[-1])
                case "slower":
                    self._speed = next((speed for speed in reversed(SPEEDS) if speed < self._speed), SPEEDS[0])
                case "event" | "incident":
                    found = self._jump(at, forward=True, incidents=word == "incident")
                    self._reread = "" if found else word
                case "event_back" | "incident_back":
                    self._jump(at, forward=False, incidents=word == "incident_back")
                case "scrub":
                    self._at = _within(self._history, _shifted(at, float(rest)))
            self._moved = True
            self._wake.notify_all()

    def _jump(self, at: datetime, *, forward: bool, incidents: bool) -> bool:
        assert self._history is not None
        stops = [each.at for each in self._history.happenings if each.is_incident or not incidents]
        index = bisect_right(stops, at) if forward else bisect_left(stops, at) - 1
        # Who steps wants to look: time stands still until it is told to go on.
        self._playing = False
        if found := 0 <= index < len(stops):
            self._at = stops[index]
        return found

    def _advance(self) -> datetime:
        assert self._history is not None
        assert self._at is not None
        now = self._monotonic()
        passed, self._since = now - self._since, now
        if self._playing:
            self._at = _within(self._history, self._played(_shifted(self._at, passed * self._speed)))
            self._playing = self._at < self._history.ends_at
        return self._at

    def _played(self, at: datetime) -> datetime:
        """`at`, or where the playing goes on if nothing is to be seen around it."""
        assert self._history is not None
        moves = self._history.moves
        index = bisect_right(moves, at)
        if not 0 < index < len(moves) or moves[index] - moves[index - 1] < QUIET or at - moves[index - 1] < LEAD:
            return at
        return max(at, moves[index] - LEAD)


def _shifted(at: datetime, seconds: float) -> datetime:
    try:
        return at + timedelta(seconds=seconds)
    except OverflowError:
        return at


def _within(history: History, at: datetime) -> datetime:
    return min(max(at, history.begins_at), history.ends_at)
