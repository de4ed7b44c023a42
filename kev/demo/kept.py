"""The two processes that a demo keeps alive: its emulator and its watcher. Whatever kills them, they come back."""

import json
import os
import select
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from kev import files
from kev.demo import plan
from kev.demo.place import REPOSITORY, Place
from kev.emulator.process import is_running
from kev.errors import KevError, NotFound
from kev.records.base import read_record
from kev.records.watcher import WatcherRecord

START_S = 60.0
"""More than a loaded machine needs to bring the emulator up."""

EXPORT = "export "
TRIES = 5

BETWEEN_STARTS_S = 3.0
"""Between two tries to start a watcher: one that was just killed may have left another that has not reported yet."""


class KeptEmulator:
    """The emulator in a process of its own, which ends with this one: it holds the other end of its input."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._process: subprocess.Popen[bytes] | None = None
        self.environment: dict[str, str] = {}
        self._is_up = False
        self.restarts = -1

    def start(self) -> None:
        """Begin to start it; `tend` waits for it."""
        place = self._place
        command = [sys.executable, "-m", "kev.emulator", "up", "--root", str(place.emulator), "--attended"]
        if self.restarts < 0:  # what a plan does once, it would do again in a new process
            command += ["--faults", str(place.faults)]
        with files.open_log(place.root / "emulator.log") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True,
                cwd=REPOSITORY, env=own_environment(REPOSITORY),
            )  # fmt: skip
        self._is_up = False
        self.restarts += 1

    def tend(self) -> None:
        """Return once it answers; one that has ended is started again. Raises KevError if it does not come up."""
        for _ in range(TRIES):
            if self._process is None or self._process.poll() is not None:
                self.start()
            if self._is_up or self._has_come_up():
                return
        raise KevError(f"the emulator did not start; see {self._place.root / 'emulator.log'}")

    def _has_come_up(self) -> bool:
        assert self._process is not None
        found = self._read_environment(self._process)
        if found is None:
            self._process.kill()
            self._process.wait()
            return False
        self.environment, self._is_up = found, True
        return True

    def _read_environment(self, process: subprocess.Popen[bytes]) -> dict[str, str] | None:
        """What it prints once it serves; None if it ended before, or was not up in time."""
        assert process.stdout is not None
        until, said = time.monotonic() + START_S, b""
        while not said.endswith(b"Ctrl-C\n"):
            left = until - time.monotonic()
            ready = select.select([process.stdout], [], [], max(0.0, left))[0]
            piece = os.read(process.stdout.fileno(), 65_536) if ready else b""
            if not piece:
                return None
            said += piece
        lines = [line.removeprefix(EXPORT) for line in said.decode().splitlines() if line.startswith(EXPORT)]
        return {name: shlex.split(value)[0] for name, _, value in (line.partition("=") for line in lines)}


class KeptWatcher:
    """The watcher of the round, started as a person would, and started again if it was killed."""

    def __init__(self, place: Place, interval_s: float, *, continues: bool = True) -> None:
        self._place, self._interval_s, self._continues = place, interval_s, continues
        self._starting: subprocess.Popen[str] | None = None
        self._process = 0
        self._left = 0
        """The watcher that is done with its work."""
        self._next = 0.0
        self.starts = 0
        self.is_done = False

    def tend(self, environment: Mapping[str, str]) -> None:
        """Begin a start, or see how it went; never waits."""
        if self._starting is not None:
            if self._starting.poll() is None:
                return
            out = self._starting.communicate()[0]
            if self._starting.returncode == 0:
                self._process = int(json.loads(out.splitlines()[-1])["process"])
            self._starting = None
        if self.is_done or (self._process and is_running(self._process)):
            return
        record = self.record()
        if record is not None and record.process != self._left:
            if record.state == "done":
                self.is_done = True
                return
            if is_running(record.process):
                # Whoever detached it was killed before it could say so.
                self._process = record.process
                return
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + BETWEEN_STARTS_S
            self._start(environment)

    def begin_again(self) -> None:
        """There is new work for a watcher."""
        record = self.record()
        self._left = record.process if record is not None else 0
        self._process, self.is_done = 0, False

    def record(self) -> WatcherRecord | None:
        try:
            return read_record(self._place.runs / f"{self._place.session}-watcher.json", WatcherRecord)
        except NotFound:
            return None

    def _start(self, environment: Mapping[str, str]) -> None:
        self.starts += 1
        command = rounds(self._place, "watch", "--interval", str(self._interval_s), "--stagger", "0", "--detach",
                         "--json", *([] if self._continues else ["--no-continue"]))  # fmt: skip
        self._starting = subprocess.Popen(
            command, cwd=self._place.work, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, start_new_session=True,
        )  # fmt: skip


def rounds(place: Place, command: str, *options: str) -> list[str]:
    """`python -m kev.rounds COMMAND` on the demo's round."""
    return [sys.executable, "-m", "kev.rounds", command, str(place.spec), "--root", str(place.work), "--session",
            place.session, *options]  # fmt: skip


def own_environment(work: Path) -> dict[str, str]:
    """That of every process of a demo: the sources of its own checkout, and nothing asked of any network."""
    fixed = {"PYTHONPATH": str(work), "KEV_APP_NAME": plan.APP, "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1",
             "TOKENIZERS_PARALLELISM": "false", "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "200"}  # fmt: skip
    return {**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"), **fixed}
