"""What this machine is doing, from what its kernel shows. Nothing is started to find out; what is not shown is None."""

import os
from pathlib import Path

from kevtui.bench.snapshot import Gpu, Machine

PROC, SYS = Path("/proc"), Path("/sys")
MOST_GPUS = 16


class MachineWatch:
    """Remembers the counters of the last look: how busy a processor is, is a difference of two."""

    def __init__(self, proc: Path = PROC, sys: Path = SYS) -> None:
        self._proc, self._sys = proc, sys
        self._before: tuple[int, int] | None = None

    def look(self) -> Machine:
        now = _cpu_counters(_text(self._proc / "stat"))
        before, self._before = self._before, now
        used, total = _memory(_text(self._proc / "meminfo"))
        return Machine(
            cores=os.cpu_count(),
            cpu_busy=_busy(before, now),
            load=_first_number(_text(self._proc / "loadavg")),
            memory_used=used,
            memory_total=total,
            gpus=tuple(self._gpus()),
        )

    def _gpus(self) -> list[Gpu]:
        found = []
        for place in _folder(self._proc / "driver" / "nvidia" / "gpus"):
            # Its driver tells how busy it is through a library only.
            model = _field(_text(place / "information"), "Model:")
            found.append(Gpu(model or place.name))
        for card in _folder(self._sys / "class" / "drm"):
            busy = _first_number(_text(card / "device" / "gpu_busy_percent"))
            if busy is not None:
                found.append(Gpu(card.name, min(1.0, max(0.0, busy / 100))))
        return found[:MOST_GPUS]


def _cpu_counters(text: str) -> tuple[int, int] | None:
    """(idle, all) ticks of all processors."""
    words = text.partition("\n")[0].split()
    if len(words) < 6 or words[0] != "cpu" or not all(word.isdecimal() for word in words[1:9]):
        return None
    ticks = [int(word) for word in words[1:9]]  # what follows is counted in user time already
    return ticks[3] + ticks[4], sum(ticks)


def _busy(before: tuple[int, int] | None, now: tuple[int, int] | None) -> float | None:
    if before is None or now is None or now[1] <= before[1]:
        return None
    return min(1.0, max(0.0, 1 - (now[0] - before[0]) / (now[1] - before[1])))


def _memory(text: str) -> tuple[int | None, int | None]:
    total, free = (_first_number(_field(text, name)) for name in ("MemTotal:", "MemAvailable:"))
    if total is None:
        return None, None
    return None if free is None else int(total - free) * 1024, int(total) * 1024


def _field(text: str, name: str) -> str:
    return next((line.removeprefix(name).strip() for line in text.splitlines() if line.startswith(name)), "")


def _first_number(text: str) -> float | None:
    try:
        return float(text.split()[0])
    except (IndexError, ValueError):
        return None


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.read(65536).decode(errors="replace")
    except OSError:
        return ""


def _folder(path: Path) -> list[Path]:
    try:
        return sorted(path.iterdir())[: 4 * MOST_GPUS]
    except OSError:
        return []
