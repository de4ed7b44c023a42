"""The arms of a round under watch: which are ready to be read, what of it is missing, and which are through."""

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from kev import files
from kev.errors import Refused
from kev.rounds.engine import RUNS_VOLUME, Engine
from kev.rounds.once import checkpoint_of
from kev.rounds.read_orders import VOLUME, arm_reads, has_landed, next_try, retry_id
from kev.rounds.specs import LoadedSpec
from kev.rounds.trial_orders import Wanted
from kev.train.points import SNAPSHOT

if TYPE_CHECKING:
    from kev.rounds.watching.passes import Watch

SNAPSHOTS = "snapshots"
"""In a trial's directory; each is whole once its record is there, which is written last."""


class Arms:
    """Every arm of the spec: those with a trial, and those that only have a checkpoint."""

    def __init__(self, engine: Engine, loaded: LoadedSpec) -> None:
        self._engine, self._loaded = engine, loaded
        self._reads = {arm: arm_reads(loaded.spec, loaded.root, arm, engine.provenance) for arm in loaded.spec.arms}
        self._there: set[str] = set()
        """Checkpoints that were seen on the volume."""

    async def launch(self, watch: "Watch") -> None:
        """Start what is missing of every arm that is ready."""
        for arm in self._reads:
            wanted = self.missing(arm)
            if not wanted:
                continue
            with watch.hindrances(arm):
                if not await self._is_ready(arm, watch):
                    continue
                await self._engine.gate.reserve(f"round {self._loaded.spec.round}, reads of {arm}", wanted)
                for unit_id, _ in wanted:
                    await watch.start(unit_id)
                watch.show_wait(arm, "")

    def hold(self, watch: "Watch", reason: str) -> None:
        """The engine itself has paused the session: arms that could be read are refused for as long as it lasts."""
        for arm, spec in self._loaded.spec.arms.items():
            if (spec.trial is None or self._has_result(spec.trial)) and self.missing(arm):
                watch.show_wait(arm, f"not read: {reason}")
                watch.is_blocked(arm, reason)

    def missing(self, arm: str) -> list[Wanted]:
        """The reads of an arm that are to be started: not here, not on record, or failed and to be tried once more."""
        units = self._engine.ledger.read()
        wanted = []
        for unit_id, order in self._reads[arm]:
            if not has_landed(self._loaded.root, order.local):
                found = next_try(units, unit_id, order)
                wanted += [found] if found is not None else []
        return wanted

    def is_through(self, arm: str, watch: "Watch") -> bool:
        """Whether nothing more is to be done for an arm: read, or not to be read any more."""
        if arm in watch.blocked and watch.is_blocked(arm, ""):
            return True
        trial, run = self._loaded.spec.arms[arm].trial, self._run_of(arm)
        if trial is not None and not self._has_result(trial):
            unit = self._engine.ledger.read().trial_at(trial)
            return unit is not None and unit.settled and watch.rescores.is_over(unit, watch)
        if watch.blends.makes(run) and not watch.blends.is_made(run) and watch.blends.is_over(watch):
            return True
        units = self._engine.ledger.read()
        return not self.missing(arm) and not any(
            each is not None and not each.settled
            for unit_id, order in self._reads[arm]
            for each in (units.by_id.get(unit_id), units.by_id.get(retry_id(unit_id)))
            if not has_landed(self._loaded.root, order.local)
        )

    async def _is_ready(self, arm: str, watch: "Watch") -> bool:
        """Whether its checkpoint is there, whole. Raises Refused where nothing of this round is about to make it."""
        spec, run = self._loaded.spec.arms[arm], self._run_of(arm)
        if spec.trial is not None and spec.checkpoint is None:
            return self._has_result(spec.trial)
        if watch.blends.makes(run):
            return watch.blends.is_made(run)
        if not run.startswith(VOLUME) or run in self._there:
            return True  # of another repository, or seen before
        entries = await self._engine.compute.listdir(RUNS_VOLUME, "/" + run.removeprefix(VOLUME))
        names = {PurePosixPath(entry.path).name for entry in entries}
        if names and (SNAPSHOTS not in PurePosixPath(run).parts or SNAPSHOT in names):
            self._there.add(run)
            return True
        trial = self._engine.ledger.read().trial_at(run)
        if trial is not None and not trial.settled:
            watch.show_wait(arm, f"waits for {run}")
            return False
        raise Refused(f"{run} is not on the volume yet")

    def _run_of(self, arm: str) -> str:
        spec = self._loaded.spec.arms[arm]
        return checkpoint_of(spec.trial, spec.checkpoint) or ""

    def _has_result(self, trial: str) -> bool:
        return "result.json" in files.list_names(self._loaded.root / trial)
