"""How far the running trials are, brought home while they run: their logs, their step metrics and their leases.

Nothing is decided by these copies, and what cannot be had now is had on a later pass. The whole trial is pulled at its
end, over them.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from kev import files
from kev.compute.leases import FILE_NAME
from kev.compute.protocol import EntryKind
from kev.errors import KevError
from kev.ledger.units import Unit
from kev.rounds.engine import LEASE_VOLUME, RUNS_VOLUME, Engine

FOLLOWED = ("train.log", "metrics.jsonl")
LEASES = Path("volumes") / LEASE_VOLUME
"""In the checkout: where the dashboard looks for a local copy of the lease volume."""

MOST_BYTES = 16 * 1024 * 1024
"""A file is read from its beginning, so one that has grown beyond this is left until the trial is pulled."""


@dataclass
class Follower:
    """Remembers how long each file was, so that only what has grown is read."""

    engine: Engine
    _sizes: dict[Path, int] = field(default_factory=dict)
    _alive: frozenset[str] = frozenset()
    """Units whose call was alive on the last pass."""

    async def follow(self, units: list[Unit]) -> None:
        """Bring home what is new of every trial whose call is alive. Never raises for want of it.

        Of one whose call has just ended, the lease comes once more: it says whether its holder let go.
        """
        trials = {unit.id: unit for unit in units if unit.order.kind == "trial"}
        alive = frozenset(name for name, unit in trials.items() if unit.live is not None and unit.live.call)
        ended, self._alive = sorted(self._alive - alive), alive
        await self.engine.gather([self._follow(trials[name]) for name in sorted(alive)])
        await self.engine.gather([self._lease(trials[name]) for name in ended if name in trials])

    async def _follow(self, unit: Unit) -> None:
        await self._lease(unit)
        with suppress(KevError, OSError):
            for entry in await self.engine.compute.listdir(RUNS_VOLUME, f"/{unit.order.remote}"):
                name = entry.path.rpartition("/")[2]
                local = self.engine.root / unit.order.local / name
                if (
                    entry.kind is EntryKind.FILE
                    and name in FOLLOWED
                    and entry.size <= MOST_BYTES
                    and entry.size != self._sizes.get(local)
                ):
                    await self._copy(entry.path, local)
                    self._sizes[local] = entry.size

    async def _copy(self, remote: str, local: Path) -> None:
        found = await self.engine.compute.read(RUNS_VOLUME, f"/{remote}", limit=MOST_BYTES)
        if found is None:
            return
        # Whole lines only: the next piece is appended, and whoever reads along need not begin again.
        whole = found[: found.rfind(b"\n") + 1]
        here = files.read_bytes(local, limit=MOST_BYTES) if local.name in files.list_names(local.parent) else b""
        if here and whole.startswith(here):
            if len(whole) > len(here):
                files.append(local, whole[len(here) :])
        elif whole:
            files.write_atomic(local, whole)

    async def _lease(self, unit: Unit) -> None:
        if unit.order.lease is None:
            return
        with suppress(KevError, OSError):
            found = await self.engine.compute.read(LEASE_VOLUME, f"/{unit.order.lease}/{FILE_NAME}", limit=65_536)
            if found:
                files.write_atomic(self.engine.root / LEASES / unit.order.lease / FILE_NAME, found)
