"""The whole engine in one thread, from a seed: two operators, a watcher, a provider, a disk and their clocks.

Every await and every write is a point at which the world may kill the process, lose or delay a reply, tear a line or
fill the disk. After each point the invariants are looked at; in the end the faults stop, and everything must come to
rest.
"""

import random
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from fake_compute import EPOCH, Call, FakeClock, FakeCompute, Plan
from memory_disk import Killed, MemoryDisk

from kev import budget, control, files
from kev.compute.errors import RemoteError
from kev.compute.protocol import Phase
from kev.document import Document
from kev.errors import KevError, Refused
from kev.gate import Gate
from kev.ledger.book import Ledger
from kev.ledger.units import Attempt
from kev.records.ledger import Order
from kev.records.spec import RoundSpec
from kev.rounds.engine import Engine
from kev.rounds.launch import check_names, launch_orders
from kev.rounds.specs import LoadedSpec
from kev.rounds.trial_orders import Provenance, Wanted, trial_orders
from kev.rounds.watching.loop import watch

ROOT = Path("/lab")
RUNS = ROOT / "runs"
LEDGER = str(RUNS / "ledger.jsonl")
STATE = RUNS / "night-state.json"
INTERVAL_S = 900.0
READ_USD = budget.hourly_rate("H100") / 2
TEST = "/runs/x/checkpoint sha test"

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
LOADED = LoadedSpec(ROOT / "r7.json", ROOT, SPEC, Document(ROOT / "r7.json", {}, {}, ()))


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
    """The clock that one process sees."""

    world: FakeClock
    process: Process

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.world.time + self.process.skew)

    def monotonic(self) -> float:
        return self.world.time


@dataclass
class World:
    """One night, decided by its seed."""

    seed: int
    faults: bool = True
    trace: list[str] = field(default_factory=list)
    restarts: int = 0
    points: int = 0
    acknowledged: set[str] = field(default_factory=set)
    attempts: list[Attempt] = field(default_factory=list)
    """Every attempt that was on record in the end."""

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        draw = self.random
        self.clock = FakeClock()
        self.disk = MemoryDisk()
        self.disk.fate = self.disk_fate
        self.compute = FakeCompute(self.clock, self.deliver, plan=self.plan, hourly=self.hourly, point=self.point)
        self.compute.lag = draw.choice([0.0, 600.0, 1800.0])
        self.compute.before = Decimal(500)
        self.compute.list_lag = draw.choice([0.0, 60.0, 600.0])
        self.hunger = draw.choice([0, 0, 10])
        """How many more reads someone would like to pay for; then trials use up all that they may cost."""
        self.authorization = Decimal(draw.choice([36, 37, 40, 45, 60, 200]))
        self.ceiling = self.authorization - budget.reserve(self.authorization)
        self.rate = draw.choice([0.0, 1.0, 1.0, 2.0])
        """How often faults happen."""
        self.away_until = 0.0
        self.full_until = 0.0
        self.reset_at = draw.choice([None, None, draw.uniform(0, 20_000)])
        self.queue = draw.choice([0.0, 0.0, 300.0, 2000.0])
        self.whole = b""
        self.finished = 0
        self.put("night-state.json", {"session": "night", "simulated": True, "baseline_usd": 500,
                                      "authorization_usd": int(self.authorization)})  # fmt: skip
        self.disk.put(str(ROOT / "plan.json"), files.dump_json([FULL]))
        self.disk.put(str(ROOT / "delta.json"), files.dump_json([{"base": "lamps/Base"}]))
        self.processes = [Process("launch-a", self.launch, 0.7), Process("watch", self.watch, 1.0, wake=300.0)]
        if draw.random() < 0.3:
            self.processes.append(Process("launch-b", self.launch, 0.3, wake=draw.choice([0.0, draw.uniform(0, 400)])))
        if draw.random() < 0.2:
            self.processes.append(Process("watch-b", self.watch, 0.3, wake=draw.uniform(0, 2000)))
        if draw.random() < 0.3:
            self.processes += [Process(f"test-{n}", self.read_test, 0.5, wake=draw.uniform(0, 900)) for n in range(2)]
        if self.hunger:
            self.processes.append(Process("hungry", self.spend, 0.9, wake=draw.uniform(200, 9000)))
        for process in self.processes:
            process.skew = draw.uniform(-45, 45)

    # What people run.

    def engine(self, process: Process) -> Engine:
        async def sleep(seconds: float) -> None:
            await Point("sleep", max(seconds, 1.0))

        async def gather(coroutines: Any) -> list[Any]:
            try:
                return [await each for each in coroutines]
            finally:
                for each in coroutines:
                    each.close()

        nonces = iter(range(1_000_000))
        gate = Gate(STATE, Ledger(RUNS), self.compute, SkewedClock(self.clock, process), sleep, self.said, process.name,
                    new_nonce=lambda: f"{process.id}-{next(nonces)}")  # fmt: skip
        return Engine(ROOT, gate, self.compute.count_claims, Provenance("sources", None, "night"), gather)

    async def launch(self, process: Process) -> bool:
        engine = self.engine(process)
        wanted = trial_orders(SPEC, ROOT, engine.provenance)
        await check_names(engine, wanted)
        done = await launch_orders(engine, wanted, "round 7", 60)
        self.acknowledged |= set(done.calls.values())
        return True

    async def watch(self, process: Process) -> bool:
        return await watch(self.engine(process), LOADED, self.finish, interval_s=INTERVAL_S, stagger_s=10)

    async def read_test(self, process: Process) -> bool:
        engine = self.engine(process)
        order = Order(kind="read", name=f"r7c-{process.name}", function="run_bench", timeout=1800,
                      payload={"run": "/runs/x/checkpoint", "suite": "TEST", "name": f"r7c-{process.name}"},
                      gpu="H100", attempt_usd=READ_USD, remote=f"bench/r7c-{process.name}",
                      local=f"runs/r7c-{process.name}", once=TEST, session="night", round=7)  # fmt: skip
        wanted: list[Wanted] = [(f"read/runs/r7c-{process.name}", order)]
        done = await launch_orders(engine, wanted, "the test", 10)
        self.acknowledged |= set(done.calls.values())
        return True

    async def spend(self, process: Process) -> bool:
        """Whatever is left is spent on reads that take as long as they may."""
        engine = self.engine(process)
        for number in range(self.hunger):
            name = f"r7x-{number}"
            order = Order(kind="read", name=name, function="run_bench", timeout=1800, gpu="H100",
                          payload={"run": "x", "suite": "HUNGRY", "name": name}, attempt_usd=READ_USD,
                          remote=f"bench/{name}", local=f"runs/{name}", session="night", round=7)  # fmt: skip
            with suppress(Refused, RemoteError):
                await launch_orders(engine, [(f"read/runs/{name}", order)], name, 1)
            await engine.gate.sleep(self.random.choice([5.0, 1200.0]))
        return True

    def finish(self, _: LoadedSpec) -> bool:
        self.finished += 1
        return True

    # What the world does.

    def run(self, fault_points: int = 90, quiet_points: int = 2500) -> None:
        """The night, and the day after it. Raises AssertionError where an invariant does not hold."""
        for _ in range(fault_points):
            if not self.step():
                break
        self.faults, self.away_until, self.full_until = False, 0.0, 0.0
        for process in self.processes:
            process.over = process.over and process.name not in ("watch",)
        for _ in range(quiet_points):
            if not self.step():
                break
            if self.points % 50 == 0:
                self.lift_pause()
        self.check_rest()

    def step(self) -> bool:
        """Let one process go on to its next point. False when nobody has anything left to do."""
        waiting = [process for process in self.processes if not process.over]
        if not waiting:
            return False
        process = min(waiting, key=lambda each: each.wake)
        self.clock.time = max(self.clock.time, process.wake)
        self.points += 1
        if self.reset_at is not None and self.clock.time >= self.reset_at:
            self.compute.cycle_starts.append(self.clock.time)
            self.reset_at = None
        self.resume(process)
        self.check()
        return True

    def resume(self, process: Process) -> None:
        draw = self.random
        self.disk.process = process.id
        if process.coroutine is None:
            process.begun += 1
            self.disk.process = process.id
            process.coroutine, process.fate = process.make(process), ""
        try:
            point = process.coroutine.send(None if process.fate == "" else process.fate)
        except StopIteration as done:
            process.coroutine, process.problem = None, "" if done.value else "incomplete"
            # What is started after a watch ended is the next watch's.
            process.over = process.name != "watch" or all(each.over for each in self.processes if each is not process)
            process.wake = self.clock.time + INTERVAL_S
            return
        except Killed:
            self.die(process)
            return
        except KevError as error:
            process.coroutine, process.problem = None, str(error)
            self.end(process, draw.uniform(30, 900))
            return
        if self.faults and draw.random() < 0.012 * self.rate:
            self.die(process)
            return
        process.fate = self.fate_of(point)
        late = draw.uniform(5, 1500) if self.faults and point.name == "spawned" and draw.random() < 0.1 else 0.0
        process.wake = self.clock.time + (point.seconds or draw.uniform(0.05, 2.0)) + late
        if self.faults and draw.random() < 0.01:
            process.skew = draw.uniform(-45, 45)

    def die(self, process: Process) -> None:
        """kill -9 between two instructions."""
        self.restarts += 1
        self.disk.kill(process.id)
        coroutine, process.coroutine = process.coroutine, None
        if coroutine is not None:
            with suppress(Killed, RuntimeError):
                coroutine.close()
        self.end(process, self.random.uniform(5, 1200))

    def end(self, process: Process, pause: float) -> None:
        again = 1.0 if process.name == "watch" else process.again
        process.over = self.random.random() >= again or process.begun > 40
        process.wake = self.clock.time + pause
        if process.name == "watch" and "never launched" in process.problem:
            launchers = [each for each in self.processes if each.name.startswith("launch")]
            process.over = all(each.over for each in launchers)

    def fate_of(self, point: Point) -> str:
        draw = self.random
        if not self.faults or point.name == "sleep":
            return "ok"
        if self.clock.time < self.away_until:
            return "unavailable"
        chance = draw.random() / (self.rate or 1e-9)
        if chance < 0.002:
            self.away_until = self.clock.time + draw.choice([600.0, 7200.0, 86_400.0])
            return "unavailable"
        if chance < 0.03:
            return "unavailable"
        if chance < 0.05:
            return "throttled"
        if point.name == "spawn":
            return "limit" if chance < 0.055 else "duplicate" if chance < 0.085 else "ok"
        if point.name == "spawned":
            return "lost" if chance < 0.15 else "ok"
        return "ok"

    def disk_fate(self, kind: str, name: str) -> str:
        draw = self.random
        if not self.faults:
            return "ok"
        if self.clock.time < self.full_until:
            return "full"
        chance = draw.random() / (self.rate or 1e-9)
        if chance < 0.001:
            self.full_until = self.clock.time + draw.uniform(60, 3000)
            return "full"
        return "before" if chance < 0.003 else "torn" if chance < 0.006 else "after" if chance < 0.008 else "ok"

    async def point(self, name: str) -> str:
        return await Point(name)

    def plan(self, function: str, payload: dict[str, Any]) -> Plan:
        draw = self.random
        queue = draw.uniform(0, self.queue)
        kind = draw.random()
        if self.hunger:
            queue = 0.0
            if payload.get("suite") == "HUNGRY":
                return Plan(seconds=9000)
            kind = kind if kind > 0.6 else 0.0
        if "study" in payload:
            if kind < 0.25:
                payload["ends_lease"] = draw.random() < 0.5
                return Plan(seconds=9000, queue=queue)
            ending = Phase.FAILED if kind < 0.3 else Phase.LOST if kind < 0.36 else Phase.SUCCEEDED
            return Plan(seconds=draw.uniform(100, 3000), ending=ending, queue=queue)
        if kind < 0.1:
            return Plan(seconds=60, result={"name": payload["name"], "failed": {"type": "E", "message": "m"}})
        return Plan(seconds=draw.uniform(30, 600) if kind < 0.97 else 9000.0, queue=queue)

    @staticmethod
    def hourly(function: str, _payload: dict[str, Any], gpu: str | None, _timeout: float) -> Decimal:
        return budget.hourly_rate(gpu, function == "run_full_trial")

    def deliver(self, path: Path, data: bytes) -> None:
        self.disk.put(str(path), data)

    def said(self, line: str) -> None:
        self.trace.append(f"{self.clock.time:9.0f} {self.disk.process}: {line}")

    def lift_pause(self) -> None:
        self.disk.process = "a person"
        if control.read_control(STATE).mode != "running":
            at = datetime.now(UTC).timestamp() * 0 + (EPOCH + timedelta(seconds=self.clock.time)).timestamp()
            control.set_control(STATE, "running", who="a person", at=at, reason="")

    def put(self, name: str, value: Any) -> None:
        self.disk.put(str(RUNS / name), files.dump_json(value))

    # What must always hold.

    def check(self) -> None:
        active = self.compute.active()
        cost = self.compute.true_cost() + self.compute.worst_to_come()
        assert cost < self.ceiling, f"${cost} is out of ${self.ceiling}"
        working = [call for call in active if not call.duplicate]
        trials = [(call.payload["study"], call.payload["index"]) for call in working if "study" in call.payload]
        assert len(trials) == len(set(trials)), f"two live attempts of one trial: {trials}"
        data = self.disk.files.get(LEDGER, b"")
        if data is not self.whole:
            assert data.startswith(self.whole), "the ledger lost a line that was acknowledged"
            self.whole = data[: data.rfind(b"\n") + 1]

    def check_spawns(self) -> None:
        once = [name for name, call in self._first_calls() if call.payload.get("suite") == "TEST"]
        assert len(once) <= 1, f"a test was read twice: {once}"
        assert len(self.compute.spawned) == len(set(self.compute.spawned)), "one attempt was spawned twice"

    def check_rest(self) -> None:
        """After the faults: what was launched has come to rest, and nothing that was acknowledged is forgotten."""
        self.check_spawns()
        self.disk.process = "a reader"
        units = Ledger(RUNS).read()
        self.attempts = [attempt for unit in units.by_id.values() for attempt in unit.attempts]
        assert self.acknowledged <= units.calls(), "a call that was reported is not on record"
        watcher = self.processes[1]
        launched = bool(units.of_name("r7"))
        assert not launched or watcher.over, f"the watcher goes on for ever: {self.waits()}"
        if not launched or self.finished == 0:
            assert not launched, f"no read-out: {watcher.problem}"
            return
        for unit in units.by_id.values():
            assert unit.settled or unit.order.kind == "sources", f"{unit.id} never came to rest"
            assert len(unit.counted) <= unit.order.attempts
            if unit.outcome == "done" and unit.order.kind == "trial":
                assert "result.json" in self.disk.list_names(ROOT / unit.order.local)
        assert not [call for call in self.compute.active() if not call.duplicate], "something still runs"

    def waits(self) -> str:
        return "; ".join(self.trace[-5:])

    def _first_calls(self) -> list[tuple[str, Call]]:
        return [(call.run_id, call) for call in self.compute.calls.values() if not call.duplicate]
