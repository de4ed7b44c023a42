"""What a killed emulator left behind: containers that may still run, and records of when the others ended.

Supervisors end their containers as soon as their emulator is gone. What they could not end, because they were killed
too, is ended here; nothing is adopted, so that no call is ever worked on twice at once.
"""

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kev import files
from kev.emulator.entities import Call, Task
from kev.emulator.launch import ENTRY_POINT
from kev.emulator.process import POLL_S, SUPERVISOR, birth_of, is_running
from kev.emulator.store import Store
from kev.errors import KevError

PATIENCE_S = 5.0
"""How long a supervisor has to write down the end of its container before it is killed itself."""


@dataclass(frozen=True, slots=True)
class Left:
    """A process on record, as the supervisor wrote it down."""

    pid: int
    born: str

    def is_alive(self) -> bool:
        """Whether this very process still runs: an id that went to another program is not it."""
        if not is_running(self.pid):
            return False
        if self.born:
            return birth_of(self.pid) == self.born
        listed = subprocess.run(["ps", "-o", "args=", "-p", str(self.pid)], capture_output=True, text=True, check=False)
        return ENTRY_POINT in listed.stdout or SUPERVISOR.name in listed.stdout


def end_what_is_left(tasks: Path) -> list[str]:
    """Kill every container on record under `tasks` that still runs; returns the task ids of those."""
    ended = []
    for directory in sorted(tasks.iterdir()) if tasks.exists() else []:
        record = _read(directory / "process.json")
        if record is None or (directory / "exit.json").exists():
            continue
        child = Left(record["pid"], record["born"])
        supervisor = Left(record["supervisor"], record["supervisor_born"])
        if child.is_alive():
            ended.append(directory.name)
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
        deadline = time.monotonic() + PATIENCE_S
        while (child.is_alive() or supervisor.is_alive()) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        if supervisor.is_alive():
            with suppress(ProcessLookupError):
                os.kill(supervisor.pid, signal.SIGKILL)
    return ended


def settle_tasks(store: Store, tasks: Path, now: float) -> list[Task]:
    """Close the containers that were running when the emulator died, at the moment they really ended."""
    settled = [task for task in store.tasks.values() if task.is_live]
    for task in settled:
        directory = tasks / task.id
        report = _read(directory / "exit.json")
        if report is not None:
            task.finished = report["at"]
        elif (directory / "output.jsonl").exists():
            task.finished = max(task.started, (directory / "output.jsonl").stat().st_mtime)
        else:
            task.finished = task.started or now
        task.ended_by = "emulator killed"
        store.save(task)
    return settled


def open_calls(store: Store) -> list[Call]:
    """Calls without a result, in the order in which they were made."""
    return sorted((call for call in store.calls.values() if not call.is_done), key=lambda call: call.created)


def remove_unknown(store: Store, tasks: Path) -> None:
    """Forget the directories of containers that never came on record: they had no call."""
    for directory in tasks.iterdir() if tasks.exists() else []:
        if directory.name not in store.tasks:
            shutil.rmtree(directory, ignore_errors=True)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        value = files.read_json(path)
    except KevError:
        return None
    return value if isinstance(value, dict) else None
