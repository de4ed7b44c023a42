"""The processes that an agent started, wherever they went: below a process, or by a mark in their environment.

A process leaves its group and its session by one call each, so neither says whose it is. What Linux shows under /proc
does: who started whom, and the environment that a process began with. Elsewhere nothing is found.
"""

import os
import signal
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
PAUSE = 0.05
PATIENCE = 10.0
"""Seconds for the kernel to bring down what was killed; what is left then waits for a device, and dies after it."""
_DEAD = (b"Z", b"X", b"x")


def descendants(root: int) -> set[int]:
    """The processes below `root` that live, without `root` itself."""
    children: dict[int, list[int]] = {}
    living = set()
    for pid in _processes():
        found = _state_and_parent(pid)
        if found is None:
            continue
        children.setdefault(found[1], []).append(pid)
        if found[0] not in _DEAD:
            living.add(pid)
    below: set[int] = set()
    level = [root]
    while level:
        level = [child for parent in level for child in children.get(parent, ()) if child not in below]
        below.update(level)
    return below & living


def marked(variable: str, value: str) -> set[int]:
    """The processes that live and began with `variable` as `value` in their environment, but for this one."""
    wanted = f"{variable}={value}".encode()
    found = set()
    for pid in _processes():
        with suppress(OSError):
            if pid != os.getpid() and wanted in (PROC / str(pid) / "environ").read_bytes().split(b"\0"):
                state = _state_and_parent(pid)
                if state is not None and state[0] not in _DEAD:
                    found.add(pid)
    return found


def stop(find: Callable[[], Collection[int]], grace: float) -> bool:
    """Ask what `find` finds to end, and after `grace` seconds make it. Whether nothing is left."""
    send(find(), signal.SIGTERM)
    if _wait(find, grace):
        return True
    until = time.monotonic() + PATIENCE
    while found := find():
        # Frozen first, so that nothing is started while the others are killed.
        send(found, signal.SIGSTOP)
        send(found, signal.SIGKILL)
        if time.monotonic() > until:
            return False
        time.sleep(PAUSE)
    return True


def send(pids: Collection[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _wait(find: Callable[[], Collection[int]], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while find():
        if time.monotonic() >= until:
            return False
        time.sleep(PAUSE)
    return True


def _processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir(PROC) if name.isdigit()]  # noqa: PTH208
    except OSError:
        return []


def _state_and_parent(pid: int) -> tuple[bytes, int] | None:
    try:
        # The name of a program, in parentheses, may hold any byte: what follows the last one is fields.
        fields = (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
        return fields[0], int(fields[1])
    except (OSError, IndexError, ValueError):
        return None
