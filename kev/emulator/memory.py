"""The memory that containers use, for those that have a limit."""

import os
import subprocess
from collections import defaultdict
from pathlib import Path

from kev.emulator.container import Container
from kev.emulator.process import HAS_PROC

MIB = 1024 * 1024


def over_limit(containers: list[Container]) -> list[Container]:
    """Those whose processes together hold more than their function's memory limit."""
    limited = {each.process.pid: each for each in containers if each.memory_limit_mib and each.process}
    limited.pop(0, None)  # not started yet
    if not limited:
        return []
    used = {pid: resident_of(pid) for pid in limited} if HAS_PROC else resident_by_group()
    return [each for pid, each in limited.items() if used[pid] > each.memory_limit_mib * MIB]


def resident_of(pid: int) -> int:
    """Resident bytes of a process and its descendants, on Linux. Shared pages count for each who shares them."""
    page, total, left = os.sysconf("SC_PAGE_SIZE"), 0, [pid]
    while left:
        place = Path(f"/proc/{left.pop()}")
        try:
            total += int((place / "statm").read_text().split()[1]) * page
            for thread in (place / "task").iterdir():
                left += [int(child) for child in (thread / "children").read_text().split()]
        except OSError:
            continue  # gone meanwhile
    return total


def resident_by_group() -> dict[int, int]:
    """Resident bytes of all processes by process group, where there is no /proc."""
    used: dict[int, int] = defaultdict(int)
    listed = subprocess.run(["ps", "-axo", "pgid=,rss="], capture_output=True, text=True, check=False)
    for line in listed.stdout.splitlines():
        group, kib = line.split()
        used[int(group)] += int(kib) * 1024
    return used
