"""The checkpoints that a round mixes from others: made once what they are made of is there, and at most twice.

The first try is one unit, and the one retry after a failure another; each writes only what is not on the volume yet.
"""

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from kev import files
from kev.errors import Refused
from kev.ledger.places import parts_of
from kev.ledger.units import Unit, Units
from kev.records.ledger import Order
from kev.rounds.blend_orders import VOLUME, is_same_blend, registered_orders
from kev.rounds.engine import RUNS_VOLUME, Engine
from kev.rounds.read_orders import next_try, retry_id
from kev.rounds.specs import LoadedSpec
from kev.worker.orders import BLEND_RECORD

if TYPE_CHECKING:
    from kev.rounds.watching.passes import Watch


class Blends:
    """The blend that the spec registers, if any."""

    def __init__(self, engine: Engine, loaded: LoadedSpec) -> None:
        self._engine, self._loaded = engine, loaded
        self._orders = dict(registered_orders(loaded.spec, engine.provenance))
        self.ids = frozenset(each for unit_id in self._orders for each in (unit_id, retry_id(unit_id)))
        """The units that make it, whoever wanted them."""
        self._made: set[str] = set()
        """Directories of the volume whose record was seen there."""

    async def launch(self, watch: "Watch") -> None:
        """Start what is missing of it, once what it is made of is there."""
        for unit_id, order in self._orders.items():
            if next_try(self._engine.ledger.read(), unit_id, order) is None:
                continue
            with watch.hindrances(unit_id):
                self._check_name(unit_id, order)
                missing = await self._missing(order)
                if not missing or not await self._is_ready(order, unit_id, watch):
                    continue
                rest = order.model_copy(update={"payload": {**order.payload, "alphas": missing}})
                wanted = next_try(self._engine.ledger.read(), unit_id, rest)
                if wanted is not None:
                    await self._engine.gate.reserve(f"round {self._loaded.spec.round}, blend {order.name}", [wanted])
                    await watch.start(wanted[0])

    def makes(self, run: str) -> bool:
        """Whether a checkpoint, named as a spec does, is made by this round."""
        return self._part_of(run) is not None

    def is_made(self, run: str) -> bool:
        """Whether it is known to be on the volume, whole."""
        part = self._part_of(run)
        if part in self._made:
            return True
        by_id = self._engine.ledger.read().by_id
        done = [unit for unit_id in self.ids if (unit := by_id.get(unit_id)) is not None and unit.outcome == "done"]
        return any(part in dict(parts_of(unit.order)) for unit in done)

    def is_over(self, watch: "Watch") -> bool:
        """Whether nothing more is done to make it."""
        units = self._engine.ledger.read()
        return all(
            (unit_id in watch.blocked and watch.is_blocked(unit_id, ""))
            or self._lost_input(order, watch) is not None
            or (next_try(units, unit_id, order) is None and all(unit.settled for unit in self._units(units, unit_id)))
            for unit_id, order in self._orders.items()
        )

    def _check_name(self, unit_id: str, order: Order) -> None:
        unit = self._engine.ledger.read().by_id.get(unit_id)
        if unit is not None and unit.counted and not is_same_blend(unit.order, order):
            raise Refused(f"{unit_id}: the ledger has another of that name; a name is used once")

    async def _missing(self, order: Order) -> list[str]:
        """The shares whose checkpoint is not on the volume. Raises a RemoteError."""
        missing = []
        for alpha, (remote, _) in zip(order.payload["alphas"], parts_of(order), strict=True):
            if remote not in self._made:
                entries = await self._engine.compute.listdir(RUNS_VOLUME, f"/{remote}")
                if any(PurePosixPath(entry.path).name == BLEND_RECORD for entry in entries):
                    self._made.add(remote)
            missing += [alpha] if remote not in self._made else []
        return missing

    async def _is_ready(self, order: Order, unit_id: str, watch: "Watch") -> bool:
        """Whether what it is made of is there. Raises Refused for what no trial of this round makes and is not."""
        lost = self._lost_input(order, watch)
        if lost is not None:
            if unit_id not in watch.warned:
                watch.warned.add(unit_id)
                text = f"is not made: {lost.id} is {lost.outcome}"
                self._engine.gate.note("given-up", text, subject=unit_id, severity="warning")
                watch.show_wait(unit_id, text)
            return False
        for path in _inputs(order):
            trial = self._engine.ledger.read().trial_at(path)
            if trial is None:
                if not await self._engine.compute.listdir(RUNS_VOLUME, "/" + path.removeprefix(VOLUME)):
                    raise Refused(f"{path} is not on the volume yet")
            elif not self._has_landed(trial):
                watch.show_wait(unit_id, f"waits for {path}")
                return False
        return True

    def _lost_input(self, order: Order, watch: "Watch") -> Unit | None:
        """The trial that it is made of and that will not be, if any."""
        units = self._engine.ledger.read()
        trials = [trial for path in _inputs(order) if (trial := units.trial_at(path)) is not None]
        lost = (trial for trial in trials if trial.settled and not self._has_landed(trial))
        return next((trial for trial in lost if watch.rescores.is_over(trial, watch)), None)

    def _has_landed(self, trial: Unit) -> bool:
        return trial.outcome == "done" or "result.json" in files.list_names(self._engine.root / trial.order.local)

    @staticmethod
    def _units(units: Units, unit_id: str) -> list[Unit]:
        return [unit for each in (unit_id, retry_id(unit_id)) if (unit := units.by_id.get(each)) is not None]

    def _part_of(self, run: str) -> str | None:
        part = run.removeprefix(VOLUME).removesuffix("/checkpoint")
        return part if any(part in dict(parts_of(order)) for order in self._orders.values()) else None


def _inputs(order: Order) -> list[str]:
    """What it is made of, as far as that is on the volume."""
    return [path for path in (order.payload["sft"], order.payload["toward"]) if path.startswith(VOLUME)]
