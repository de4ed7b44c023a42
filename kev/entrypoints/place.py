"""The launcher's side of the work: its checkout, its runs/, and the place where work runs."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from kev.clock import Clock, SystemClock
from kev.compute.leases import Claims
from kev.compute.protocol import Compute

RUNS_VOLUME = "kev-runs"


@dataclass(frozen=True, slots=True)
class Place:
    """What every entry point needs. `say` takes a line for the user."""

    root: Path
    compute: Compute
    claims: Claims
    app_name: str
    clock: Clock = field(default_factory=SystemClock)
    say: Callable[[str], None] = print
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits so many seconds of the clock."""

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    def now(self) -> float:
        """Unix seconds."""
        return self.clock.now().timestamp()
