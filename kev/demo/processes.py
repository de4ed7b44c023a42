"""The processes of one demo, found by its folder, which each of their command lines names; and their end.

A watcher outlives whoever started it on purpose, and its id may not be on record yet when its demo is killed. The
folder is of this demo alone, so nothing else can be meant.
"""

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
SUPERVISOR = "emulator/supervisor.py"
SUPERVISOR_S = 5.0
OURS = ("kev.rounds", "kev.emulator", SUPERVISOR, "make_tiny_base", "-m modal")
"""Words of which one stands in the command line of everything that a demo starts. A dashboard names the folder too."""


def processes_of(root: Path) -> dict[int, str]:
    """The command line of every process of the demo in `root`, by its id."""
    mark = str(root)
    return {
        process: line
        for process, line in _command_lines().items()
        if process != os.getpid() and mark in line and any(word in line for word in OURS)
    }


def end_all(root: Path, *, seconds: float = 15.0) -> bool:
    """Kill every process of the demo in `root` until none is left. False if some would not go in time.

    The supervisors of containers come last: they end their containers as soon as their emulator is gone.
    """
    begun = time.monotonic()
    while left := processes_of(root):
        waited = time.monotonic() - begun
        if waited > seconds:
            return False
        for process, line in left.items():
            if SUPERVISOR not in line or waited > SUPERVISOR_S:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(process, signal.SIGKILL)
        time.sleep(0.05)
    return True


def _command_lines() -> dict[int, str]:
    if (PROC / "self" / "cmdline").exists():
        found = {}
        for entry in PROC.iterdir():
            if entry.name.isdecimal():
                with suppress(OSError):  # it has gone since
                    found[int(entry.name)] = (
                        (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    )
        return found
    done = subprocess.run(["ps", "-axww", "-o", "pid=,command="], capture_output=True, text=True, check=False)
    pairs = (line.strip().partition(" ") for line in done.stdout.splitlines())
    return {int(number): line for number, _, line in pairs if number.isdecimal()}
