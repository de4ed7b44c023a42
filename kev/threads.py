"""How many threads a process computes with: as many as it was given cores, and never more.

Threads of torch wait by spinning. Two processes of two threads on two cores keep each other from working and are a
hundred times slower than two of one thread. The number also decides the order of floating-point sums, so equal bits
are promised at an equal number only, and the number is recorded with every result that promises them.
"""

import math
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from kev.errors import UsageError

OMP = "OMP_NUM_THREADS"
LIBRARIES = (OMP, "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""Read once by the libraries when they load, and by every process started from this one."""

CGROUP_LIMIT = Path("/sys/fs/cgroup/cpu.max")


@dataclass(frozen=True, slots=True)
class Threads:
    """What a process computes with: `threads` for each, of `cores` that `processes` share."""

    threads: int
    cores: int
    processes: int

    def record(self) -> dict[str, int]:
        """The values that a result keeps."""
        return asdict(self)


def cores_given(*, limit: str | None = None) -> int:
    """The cores this process may use: those it may be scheduled on, and no more than its container's quota.

    `limit` stands in for the content of the control group's `cpu.max`: microseconds of a period, or `max`.
    """
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if limit is None:
        with suppress(OSError, UnicodeDecodeError):
            limit = CGROUP_LIMIT.read_text()
    quota = _quota(limit or "")
    return max(1, min(available, quota) if quota else available)


def threads_for(
    cores: int | None = None, *, processes: int = 1, environment: Mapping[str, str] = os.environ
) -> Threads:
    """The threads of one of `processes` that share `cores`.

    Without `cores`, OMP_NUM_THREADS counts where it is set, as the wish of whoever started the process; otherwise all
    cores that may be used are shared. Raises UsageError for a number below 1.
    """
    if (cores is not None and cores < 1) or processes < 1:
        raise UsageError(f"{cores} cores for {processes} processes: both are at least 1")
    total = cores or cores_given()
    asked = None if cores else _asked(environment)
    return Threads(asked or max(1, total // processes), total, processes)


def use_cores(cores: int | None = None, *, processes: int = 1) -> Threads:
    """Give this process, and those it starts, the threads of `threads_for`, and return what it was given.

    To be called before torch is loaded; works after that too.
    """
    given = threads_for(cores, processes=processes)
    os.environ.update(dict.fromkeys(LIBRARIES, str(given.threads)))
    if "torch" in sys.modules:
        import torch

        torch.set_num_threads(given.threads)
    return given


def _asked(environment: Mapping[str, str]) -> int | None:
    # OpenMP allows a list, one number for each level of nesting; the first is what counts here.
    first = environment.get(OMP, "").partition(",")[0].strip()
    return int(first) if first.isascii() and first.isdigit() and int(first) > 0 else None


def _quota(limit: str) -> int | None:
    """Whole cores of a `cpu.max`, at least 1; None where there is no quota."""
    match limit.split():
        case [quota, period] if quota.isdigit() and period.isdigit() and int(period):
            return max(1, math.floor(int(quota) / int(period)))
        case _:
            return None
