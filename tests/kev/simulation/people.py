"""What people run in a simulated night: launches, watches, reads of a test, cancellations, continuations, pauses."""

import random
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from fake_compute import EPOCH, FakeClock, FakeCompute
from places import ROOT, RUNS, STATE_PATH, TEST

from kev import budget, control
from kev.compute.errors import RemoteError
from kev.document import Document
from kev.errors import Refused
from kev.gate import Gate
from kev.ledger.book import Ledger, NotRecorded
from kev.records.ledger import Order
from kev.records.spec import RoundSpec
from kev.rounds.cancel import cancel
from kev.rounds.engine import Engine
from kev.rounds.launch import check_names, launch_orders
from kev.rounds.resume import resume
from kev.rounds.specs import LoadedSpec
from kev.rounds.trial_orders import Provenance, round_up, trial_orders
from kev.rounds.watching.loop import watch

INTERVAL_S = 900.0
HUNGRY = "HUNGRY"

FULL = {"base": "lamps/Base", "full_ft": 1, "weights_dtype": "bf16"}
SPEC = RoundSpec.model_validate({
    "round": 7, "registered": "PLAN.md", "gpu": "H100",
    "studies": {"r7": {"plan": "plan.json", "suite": "evals/a", "transfer": "evals/b", "gpu": "H100", "timeout": 3600,
                       "budget": 120},
                "r7-delta": {"plan": "delta.json", "suite": "evals/a", "transfer": "evals/b", "gpu": "H100",
                             "timeout": 3600, "budget": 20}},
    "reads": {"hard": {"suite": "evals/hard"}},
    "parents": {"p": {"trial": "runs/p/00-trial-0", "reads": "runs/p-{tag}"}},
    "arms": {"2b-a": {"trial": "runs/r7/00-trial-0", "parent": "p"},
             "2b-b": {"trial": "runs/r7-delta/00-trial-0", "parent": "p"}},
    "rule": {"panels": {"hard": {"reads": ["hard"], "metrics": ["acc"]}}, "criteria": {}},
})  # fmt: skip
BLENDED = RoundSpec.model_validate(SPEC.model_dump(exclude_unset=True) | {
    "construction": {"blend": {
        "sft": "/runs/r7/00-trial-0/checkpoint", "toward": "/runs/r7-delta/00-trial-0/checkpoint", "alphas": "0.5",
        "prefix": "2b", "study": "r7-blend", "timeout": 3600}},
    "arms": SPEC.model_dump(exclude_unset=True)["arms"] | {
        "2b-c": {"checkpoint": "/runs/r7-blend/2b-w50/checkpoint", "parent": "p"}},
})  # fmt: skip
"""The same round, with an arm that is mixed of the other two."""
BOUND = 3 * round_up(budget.compute_bound("H100", 3600, 1, True) / 3) + round_up(budget.compute_bound("H100", 3600, 1))
"""What the round's trials may cost."""


class Point:
    """Where a process gives way: a request to the provider, or a sleep."""

    def __init__(self, name: str, seconds: float = 0.0) -> None:
        self.name, self.seconds = name, seconds

    def __await__(self) -> Generator["Point", str, str]:
        fate = yield self
        return fate


@dataclass
class Process:
    """A command that someone runs, and runs again when it dies."""

    name: str
    make: Callable[["Process"], Coroutine[Any, Any, bool]]
    again: float
    """How likely it is run again after it died."""
    skew: float = 0.0
    wake: float = 0.0
    coroutine: Coroutine[Any, Any, bool] | None = None
    fate: str = "ok"
    begun: int = 0
    over: bool = False
    problem: str = ""

    @property
    def id(self) -> str:
        return f"{self.name}#{self.begun}"


@dataclass
class SkewedClock:
    """The clock that one process sees: its machine's, as it was last corrected."""

    world: FakeClock
    process: Process

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.world.time + self.world.skew + self.process.skew)

    def monotonic(self) -> float:
        return self.world.time


async def sleep(seconds: float) -> None:
    await Point("sleep", max(seconds, 1.0))


async def gather(coroutines: Any) -> list[Any]:
    try:
        return [await each for each in coroutines]
    finally:
        for each in coroutines:
            each.close()


@dataclass
class People:
    """Everyone who uses the session, and what they saw."""

    clock: FakeClock
    compute: FakeCompute
    say: Callable[[str], None]
    draw: random.Random
    hunger: int
    """How many more reads someone would like to pay for."""
    reported: set[str]
    """Calls that someone was told of."""
    spec: RoundSpec = SPEC
    finished: int = 0
    nonces: Iterator[int] = field(default_factory=count)

    def hire(self) -> list[Process]:
        """The operators of this night; the first launches, the second watches."""
        draw, found = self.draw, [Process("launch-a", self.launch, 0.7), Process("watch", self.watch, 1.0, wake=300.0)]
        if draw.random() < 0.3:
            found.append(Process("launch-b", self.launch, 0.3, wake=draw.choice([0.0, draw.uniform(0, 400)])))
        if draw.random() < 0.2:
            found.append(Process("watch-b", self.watch, 0.3, wake=draw.uniform(0, 2000)))
        if draw.random() < 0.3:
            found += [Process(f"test-{n}", self.read_test, 0.5, wake=draw.uniform(0, 900)) for n in range(2)]
        if self.hunger:
            found.append(Process("hungry", self.spend, 0.9, wake=draw.choice([90, 90, draw.uniform(200, 9000)])))
        if draw.random() < 0.15:
            found.append(Process("cancel", self.cancel, 0.5, wake=draw.uniform(100, 9000)))
        if draw.random() < 0.3:
            found.append(Process("resume", self.resume, 0.9, wake=draw.uniform(3000, 12_000)))
        if draw.random() < 0.15:
            found.append(Process("pause", self.pause, 0.5, wake=draw.uniform(0, 9000)))
        for process in found:
            process.skew = draw.uniform(-45, 45)
        return found

    def engine(self, process: Process) -> Engine:
        gate = Gate(STATE_PATH, Ledger(RUNS), self.compute, SkewedClock(self.clock, process), sleep, self.say,
                    process.name, new_nonce=lambda: f"{process.id}-{next(self.nonces)}")  # fmt: skip
        return Engine(ROOT, gate, self.compute.count_claims, Provenance("sources", None, "night"), gather)

    async def launch(self, process: Process) -> bool:
        engine = self.engine(process)
        wanted = trial_orders(SPEC, ROOT, engine.provenance)
        await check_names(engine, wanted)
        self.reported |= set((await launch_orders(engine, wanted, "round 7", 60)).calls.values())
        return True

    async def watch(self, process: Process) -> bool:
        loaded = LoadedSpec(ROOT / "r7.json", ROOT, self.spec, Document(ROOT / "r7.json", {}, {}, ()))
        return await watch(self.engine(process), loaded, self.finish, interval_s=INTERVAL_S, stagger_s=10)

    def finish(self, _: LoadedSpec) -> bool:
        self.finished += 1
        return True

    async def read_test(self, process: Process) -> bool:
        await self._read(self.engine(process), f"r7c-{process.name}", "TEST", once=TEST)
        return True

    async def spend(self, process: Process) -> bool:
        """Whatever is left is spent on reads that take as long as they may."""
        engine = self.engine(process)
        for number in range(self.hunger):
            with suppress(Refused, RemoteError):
                await self._read(engine, f"r7x-{number}", HUNGRY)
            await sleep(self.draw.choice([2.0, 1000.0, 1900.0, 4000.0]))
        return True

    async def _read(self, engine: Engine, name: str, suite: str, once: str | None = None) -> None:
        gpu = "H100:4" if suite == HUNGRY else "H100"
        order = Order(kind="read", name=name, function="run_bench", timeout=1800, gpu=gpu, once=once,
                      payload={"run": "/runs/x/checkpoint", "suite": suite, "name": name},
                      attempt_usd=round_up(budget.compute_bound(gpu, 1800, 1)),
                      remote=f"bench/{name}", local=f"runs/{name}", session="night", round=7)  # fmt: skip
        done = await launch_orders(engine, [(f"read/runs/{name}", order)], name, 1)
        self.reported |= set(done.calls.values())

    async def cancel(self, process: Process) -> bool:
        engine = self.engine(process)
        open_units = list(engine.ledger.read().open())
        if open_units:
            await cancel(engine, self.draw.choice(open_units).id, "no longer wanted")
        return True

    async def resume(self, process: Process) -> bool:
        """Somebody who does not wait for the watch."""
        engine = self.engine(process)
        units = [unit for unit in engine.ledger.read().by_id.values() if unit.order.kind == "trial"]
        if units:
            unit = self.draw.choice(units)
            beyond = unit.order.name if self.draw.random() < 0.5 else None
            self.reported.add(await resume(engine, unit.id, beyond_bound=beyond))
        return True

    async def pause(self, process: Process) -> bool:
        engine, mode = self.engine(process), self.draw.choice(["soft", "hard"])
        self.set_mode(mode)
        await engine.gate.sleep(self.draw.uniform(60, 4000))
        self.set_mode("running")
        return True

    def set_mode(self, mode: str) -> None:
        """What `pause` and `unpause` do."""
        at = (EPOCH + timedelta(seconds=self.clock.time + self.clock.skew)).timestamp()
        try:
            control.set_control(STATE_PATH, mode, who="a person", at=at, reason="")
        except OSError as error:
            raise NotRecorded(str(error)) from None
