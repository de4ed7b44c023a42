"""Commits what a trial writes while it runs: a container that is killed loses what was not committed."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from kev import files
from kev.errors import KevError
from kev.train.points import LATEST, SNAPSHOT
from kev.worker.container import Volume

POLL_SECONDS = 15.0
"""Between looks for something that must not be lost."""

LOG_SECONDS = 60.0
"""The log and the step metrics wait no longer than this to be seen by others."""

LAST_TRIES = 3
PAUSE_SECONDS = 2.0


@dataclass
class Committer:
    """A thread that commits `volume` after every new resume point and snapshot of the trial in `directory`."""

    volume: Volume
    directory: Path
    show: Callable[[str], None]
    poll_seconds: float = POLL_SECONDS
    log_seconds: float = LOG_SECONDS
    _seen: tuple[bytes, frozenset[str]] | None = None
    _committed_at: float = field(default_factory=time.monotonic)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._seen = self._points()
        self._thread = threading.Thread(target=self._watch, name="committer", daemon=True)
        self._thread.start()

    def finish(self, *, commit: bool = True) -> None:
        """Stop watching, and commit everything unless told not to. Raises what the last commit did if none succeeds."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        if not commit:
            return
        for tries_left in reversed(range(LAST_TRIES)):
            try:
                self.volume.commit()
            except Exception as error:  # the platform's own errors are of many kinds
                self.show(f"!!! [volume] commit failed: {type(error).__name__}: {error}")
                if not tries_left:
                    raise
                time.sleep(PAUSE_SECONDS)
            else:
                return

    def _watch(self) -> None:
        while not self._stop.wait(self.poll_seconds):
            points = self._points()
            if points != self._seen or time.monotonic() - self._committed_at >= self.log_seconds:
                self._commit(points)

    def _commit(self, points: tuple[bytes, frozenset[str]]) -> None:
        began = time.monotonic()
        try:
            self.volume.commit()
        except Exception as error:  # what was to be committed still is: the next look tries again
            self.show(f"!!! [volume] commit failed, trying again: {type(error).__name__}: {error}")
            return
        self._committed_at = time.monotonic()
        self._say(points, self._committed_at - began)
        self._seen = points

    def _say(self, points: tuple[bytes, frozenset[str]], seconds: float) -> None:
        latest, snapshots = points
        before = self._seen or (b"", frozenset())
        if latest and latest != before[0]:
            point = files.parse_json(latest)
            what = f"resume point {point['step']} ({point['dir']})"
            self.show(f"[volume] committed {what} to the runs volume in {seconds:.0f} s")
        for name in sorted(snapshots - before[1]):
            self.show(f"[volume] committed snapshot {name} to the runs volume in {seconds:.0f} s")

    def _points(self) -> tuple[bytes, frozenset[str]]:
        """The newest resume point, and the names of complete snapshots: what must not be lost."""
        try:
            latest = files.read_bytes(self.directory / "checkpoint" / "resume" / LATEST)
        except KevError:
            latest = b""
        found = (self.directory / "snapshots").glob(f"step-*/checkpoint/{SNAPSHOT}")
        return latest, frozenset(path.parent.parent.name for path in found)
