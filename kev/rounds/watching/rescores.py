"""Trials that were trained and never scored: what died was the container, and not the work. Each is scored once more.

The scores are a unit of their own, whose result is the trial's. An attempt that may be running is never scored beside.
"""

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from kev import files
from kev.ledger.units import Unit, rescore_id
from kev.rounds.engine import RUNS_VOLUME, Engine
from kev.rounds.resume import CONTINUABLE
from kev.rounds.specs import LoadedSpec
from kev.rounds.trial_orders import rescore_of
from kev.worker.training import TRAINING_METRICS

if TYPE_CHECKING:
    from kev.rounds.watching.passes import Watch


class Rescores:
    """What is scored again in the round."""

    def __init__(self, engine: Engine, loaded: LoadedSpec) -> None:
        self._engine, self._loaded = engine, loaded
        self._trained: dict[str, bool] = {}
        """Trial -> whether its training is whole on the volume; absent where nobody has looked."""

    def owns(self, unit: Unit) -> bool:
        """Whether a unit scores a trial of this round, whoever wanted it."""
        return unit.order.kind == "rescore" and unit.order.payload.get("study") in self._loaded.spec.studies

    async def launch(self, watch: "Watch") -> None:
        """Start the scoring of every trial that was trained and that no attempt is left for."""
        if not watch.continues:
            return  # what was cut off is left to a person
        for trial in self._open(watch):
            unit_id, order = rescore_of(trial.order, self._engine.provenance)
            with watch.hindrances(unit_id):
                if not await self._is_trained(trial):
                    continue
                await self._engine.gate.reserve(f"scores of {trial.order.remote}", [(unit_id, order)])
                await watch.start(unit_id)

    def hold(self, watch: "Watch", reason: str) -> None:
        """The engine itself has paused the session: what would be scored is refused for as long as it lasts."""
        for trial in self._open(watch):
            watch.is_blocked(_unit_id(trial), reason)

    def is_over(self, trial: Unit, watch: "Watch") -> bool:
        """Whether a trial without a result will get none."""
        if not (watch.continues and self._may_be_scored(trial)) or self._trained.get(trial.id) is False:
            return True
        unit_id = _unit_id(trial)
        unit = self._engine.ledger.read().by_id.get(unit_id)
        if unit is not None and (unit.counted or unit.settled):
            return unit.settled
        return unit_id in watch.blocked and watch.is_blocked(unit_id, "")

    def _open(self, watch: "Watch") -> list[Unit]:
        """Trials whose scoring was not begun."""
        by_id = self._engine.ledger.read().by_id
        found = []
        for trial in watch.units():
            if self._may_be_scored(trial):
                unit = by_id.get(_unit_id(trial))
                found += [trial] if unit is None or not (unit.counted or unit.settled) else []
        return found

    def _may_be_scored(self, trial: Unit) -> bool:
        current = trial.current
        if trial.order.kind != "trial" or not trial.settled or trial.outcome != "failed" or current is None:
            return False
        home = files.list_names(self._engine.root / trial.order.local)
        return current.outcome in CONTINUABLE and not {"result.json", "failed.json"} & set(home)

    async def _is_trained(self, trial: Unit) -> bool:
        """Raises a RemoteError."""
        if trial.id not in self._trained:
            entries = await self._engine.compute.listdir(RUNS_VOLUME, f"/{trial.order.remote}/checkpoint")
            self._trained[trial.id] = any(PurePosixPath(entry.path).name == TRAINING_METRICS for entry in entries)
        return self._trained[trial.id]


def _unit_id(trial: Unit) -> str:
    return rescore_id(trial.order.remote, 0)
