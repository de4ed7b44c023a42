"""The memory that containers use, for those that have a limit."""

import os
import subprocess
from collections import defaultdict
from pathlib import Path

from kev.emulator.container import Container

MIB = 1024 * 1024


def over_limit(containers: list[Container]) -> list[Container]:
    """Those whose processes together hold more than their function's memory limit."""
    limited = [each for each in containers if each.memory_limit_mib and each.process and each.process.pid]
    if not limited:
        return []
    used = resident_by_group()
    return [each for each in limited if each.process and used[each.process.pid] > each.memory_limit_mib * MIB]


def resident_by_group() -> dict[int, int]:
    """Resident bytes of all processes by process group. Shared pages count for each who shares them."""
    used: dict[int, int] = defaultdict(int)
    if Path("/proc/self/stat").exists():
        page = os.sysconf("SC_PAGE_SIZE")
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue  # gone meanwhile
                used[int(fields[2])] += int(fields[21]) * page
        return used
    listed = subprocess.run(["ps", "-axo", "pgid=,rss="], capture_output=True, text=True, check=False)
    for line in listed.stdout.splitlines():
        group, kib = line.split()
        used[int(group)] += int(kib) * 1024
    return used
