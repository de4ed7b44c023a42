"""A launched round and what its watcher did; the real watch, with a provider that lives in the test."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from fake_compute import Plan
from memory_disk import Killed
from round_lab import RoundLab

from kev.rounds.launch import launch, launch_orders
from kev.rounds.specs import LoadedSpec
from kev.rounds.trial_orders import trial_orders
from kev.rounds.watching.loop import watch

FULL, DELTA = "trial/r201-full/trial-0", "trial/r201-delta/trial-0"
BLEND = "r201-blend/2b-w50/interpolation.json"


def no_trial_fails(function: str, payload: dict[str, Any]) -> Plan:
    return Plan(seconds=1800 if "index" in payload else 300)


class Night:
    """A launched round, and what its watcher did."""

    def __init__(self, lab: RoundLab, plan: Callable[[str, dict[str, Any]], Plan] = no_trial_fails) -> None:
        self.lab, self.finished = lab, 0
        lab.compute.plan = plan
        lab.compute.volume[BLEND] = b"x"
        lab.compute.hourly = lambda *_: Decimal(1)

    async def launch(self) -> None:
        await launch(self.lab.engine(), self.lab.loaded, stagger_s=0)

    async def launch_changed(self, spec: dict[str, Any]) -> None:
        """Launch a spec that is another than the registered one, as `launch` would not."""
        self.lab.spec_path.write_text(json.dumps(spec))
        engine, loaded = self.lab.engine(), self.lab.loaded
        wanted = trial_orders(loaded.spec, loaded.root, engine.provenance)
        await launch_orders(engine, wanted, f"round {loaded.spec.round}", 0)

    def finish(self, _: LoadedSpec) -> bool:
        self.finished += 1
        return True

    async def watch(self, **options: Any) -> bool:
        return await watch(self.lab.engine(), self.lab.loaded, self.finish, stagger_s=1, **options)

    async def watch_though_killed(self, every: int, times: int) -> None:
        """Watch to the end, with a watcher that is killed at each `every`-th await, so many times, and begun again."""
        kills = asked = 0

        async def die(_: str) -> str:
            nonlocal asked, kills
            asked += 1
            if asked % every == 0 and kills < times:
                kills += 1
                raise Killed
            return "ok"

        self.lab.compute.point = die
        complete = False
        while not complete:
            try:
                complete = await self.watch()
            except Killed:
                self.lab.clock.time += 30
        assert kills == times, "the round ended before the last kill"

    def unit(self, name: str) -> Any:
        return self.lab.engine().ledger.read().by_id[name]

    def spawned(self, start: str) -> list[str]:
        return [name for name in self.lab.compute.spawned if name.startswith(start)]


def times_out(seconds: float, ends_lease: bool = False) -> Callable[[str, dict[str, Any]], Plan]:
    def plan(function: str, payload: dict[str, Any]) -> Plan:
        if payload.get("study") == "r201-full":
            payload["ends_lease"] = ends_lease
            return Plan(seconds=seconds if payload["attempt"] < 3 else 600)
        return no_trial_fails(function, payload)

    return plan
