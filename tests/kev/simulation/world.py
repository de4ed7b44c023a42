"""The whole engine in one thread, from a seed: its operators, a provider, a disk and their clocks.

Every await and every write is a point at which the world may kill the process, lose, delay or repeat a reply, tear a
line or fill the disk; in between it spoils files, corrects clocks and begins a billing cycle. After each step the
invariants are looked at; in the end the faults stop, and everything must come to rest.

Each kind of chance has a stream of its own, so that a new kind of fault leaves the other draws of a seed alone.
"""

import random
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from fake_compute import FakeClock, FakeCompute, Plan
from invariants import Broken, Invariants
from memory_disk import Killed, MemoryDisk
from people import BLENDED, BOUND, FULL, HUNGRY, INTERVAL_S, People, Point, Process
from places import CONTROL, LEDGER, ROOT, STATE

from kev import budget, files
from kev.compute.protocol import Phase
from kev.errors import KevError
from kev.ledger.units import Attempt

RESERVE = 3
PASSING = (
    "is not below the headroom", "nothing new is started", "the spend is unknown", "nothing is started on it",
)  # fmt: skip
"""Why reads are refused that may be made later."""


@dataclass
class World:
    """One night, decided by its seed."""

    seed: int
    faults: bool = True
    trace: list[str] = field(default_factory=list)
    restarts: int = 0
    points: int = 0
    attempts: list[Attempt] = field(default_factory=list)
    """Every attempt that was on record in the end."""

    def __post_init__(self) -> None:
        draw = self.stream("world")
        self.trained = self.stream("trained")
        self.net, self.wreck, self.work = self.stream("net"), self.stream("wreck"), self.stream("work")
        self.clock = FakeClock()
        # This machine may be hours off; what runs on it is corrected separately, within a minute and a half.
        self.clock.skew = draw.choice([0.0, 0.0, 7_000.0, -7_000.0])
        self.disk = MemoryDisk()
        self.disk.fate = self.disk_fate
        self.compute = FakeCompute(self.clock, self.deliver, plan=self.plan, hourly=self.hourly, point=self.point)
        self.longest_lag = draw.choice([0.0, 1800.0, 3000.0])
        self.compute.before = Decimal(500)
        self.compute.list_lag = draw.choice([0.0, 60.0, 600.0])
        hunger = draw.choice([0, 0, 5])
        self.rate = draw.choice([0.0, 1.0, 1.0, 2.0])
        """How often faults happen."""
        self.originals: dict[str, bytes] = {}
        self.away_until = self.full_until = self.unknown_until = 0.0
        self.reset_at = draw.choice(
            [None, draw.uniform(500, 6_000)] if hunger else [None, None, draw.uniform(0, 20_000)]
        )
        self.stray_at = draw.choice([None, None, None, draw.uniform(0, 9000)])
        self.queue = draw.choice([0.0, 0.0, 300.0, 2000.0])
        self.put("plan.json", [FULL])
        self.put("delta.json", [{"base": "lamps/Base"}])
        self.people = People(self.clock, self.compute, self.said, self.stream("people"), hunger, set())
        if self.stream("blend").random() < 0.3:
            self.people.spec = BLENDED
        self.authorize(draw)
        self.processes = self.people.hire()

    def authorize(self, draw: random.Random) -> None:
        """A session whose authorization is scarce, or exactly what must be refused, or exactly what may be spent."""
        amount: Any = draw.choice([34, 37, 39, 42, 57, 197, "the bound", "just above"])
        if isinstance(amount, str):
            amount = BOUND if amount == "the bound" else BOUND + Decimal("0.01")
        self.ceiling = Decimal(amount)
        self.must = Invariants(self.disk, self.compute, self.ceiling)
        self.compute.began = self.must.began
        self.put("runs/night-state.json", {"session": "night", "simulated": True, "baseline_usd": 500,
                 "authorization_usd": float(self.ceiling + RESERVE), "reserve_usd": RESERVE})  # fmt: skip

    def stream(self, purpose: str) -> random.Random:
        return random.Random(f"{self.seed}/{purpose}")

    # What happens.

    def run(self, fault_points: int = 50, quiet_points: int = 2500) -> None:
        """The night, and the day after it. Raises Broken where an invariant does not hold."""
        for _ in range(fault_points):
            if not self.step():
                break
        self.calm()
        for _ in range(quiet_points):
            if not self.step():
                break
            if self.points % 50 == 0:
                self.lift_pause()
        self.check_rest()

    def calm(self) -> None:
        """The faults stop: whoever is not needed goes home, and a person puts back what was spoiled."""
        self.faults = False
        self.away_until = self.full_until = self.unknown_until = 0.0
        for name in self.must.damaged:
            self.disk.put(name, self.originals[name])
        self.must.damaged.clear()
        for process in self.processes:
            if process.name == "watch":
                process.over = False
            elif not process.name.startswith(("launch", "hungry")) and not process.over:
                self.die(process)
                process.over = True

    def step(self) -> bool:
        """Let one process go on to its next point. False when nobody has anything left to do."""
        waiting = [process for process in self.processes if not process.over]
        if not waiting:
            return False
        process = min(waiting, key=lambda each: each.wake)
        self.clock.time = max(self.clock.time, process.wake)
        self.points += 1
        self.let_time_pass()
        self.resume(process)
        self.must.check()
        return True

    def let_time_pass(self) -> None:
        """What happens by itself."""
        now = self.clock.time
        if self.reset_at is not None and now >= self.reset_at:
            self.compute.cycle_starts.append(now)
            self.reset_at = None
        if self.stray_at is not None and now >= self.stray_at:
            self.stray_at = None
            self.compute.run("run_trial", {}, "stray", None, 5000)
        if self.faults and self.wreck.random() < 0.004 * self.rate:
            self.spoil()

    def spoil(self) -> None:
        """Something else cuts a file short, or empties it."""
        views = sorted(name for name in self.disk.files if name.endswith((".spawn.json", ".read.json", ".watch.json")))
        name = self.wreck.choice([*views, STATE, LEDGER, LEDGER, CONTROL])
        if name not in self.disk.files:
            return
        data = self.disk.files[name]
        if name in self.must.damaged or not data:
            return
        spoilt = b"" if name == LEDGER or self.wreck.random() < 0.5 else data[: len(data) // 2]
        self.disk.put(name, spoilt)
        if name != CONTROL:  # whoever pauses or goes on may write that one
            self.originals[name] = data
            self.must.damaged[name] = spoilt

    def resume(self, process: Process) -> None:
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
            self.said(f"ends: {error}")
            self.end(process, self.wreck.uniform(30, 900))
            return
        if self.faults and self.wreck.random() < 0.012 * self.rate:
            self.die(process)
            return
        process.fate = self.fate_of(point)
        process.wake = self.clock.time + (point.seconds or self.net.uniform(0.05, 2.0)) + self.delay(point.name)
        if self.faults and self.wreck.random() < 0.01:
            process.skew = self.wreck.uniform(-45, 45)

    def delay(self, name: str) -> float:
        """How much later than usual a reply comes."""
        if not self.faults or self.net.random() >= (0.06 if name == "spawn" else 0.02) * self.rate:
            return 0.0
        return self.net.uniform(5, 3000 if name == "spawn" else 1000)

    def die(self, process: Process) -> None:
        """kill -9 between two instructions."""
        self.restarts += 1
        self.said("is killed")
        self.disk.kill(process.id)
        coroutine, process.coroutine = process.coroutine, None
        if coroutine is not None:
            with suppress(Killed, RuntimeError):
                coroutine.close()
        self.end(process, self.wreck.uniform(5, 1200))

    def end(self, process: Process, pause: float) -> None:
        again = 1.0 if process.name == "watch" else process.again
        process.over = self.wreck.random() >= again or process.begun > 40
        process.wake = self.clock.time + pause
        if process.name == "watch" and "never launched" in process.problem:
            launchers = [each for each in self.processes if each.name.startswith("launch")]
            process.over = all(each.over for each in launchers)

    def fate_of(self, point: Point) -> str:
        draw = self.net
        if not self.faults or point.name == "sleep":
            return "ok"
        if point.name == "billing":
            self.compute.lag = draw.uniform(0, self.longest_lag)
            if draw.random() < 0.01 * self.rate:
                self.unknown_until = self.clock.time + 6000
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
        if point.name == "billing":
            return "unknown" if self.clock.time < self.unknown_until else "ok"
        return self.own_fate(point.name, chance)

    @staticmethod
    def own_fate(name: str, chance: float) -> str:
        """What can befall one kind of request only."""
        match name:
            case "spawn":
                return "limit" if chance < 0.055 else "duplicate" if chance < 0.085 else "ok"
            case "spawned":
                return "lost" if chance < 0.15 else "ok"
            case "cancelled" | "pulled":
                return "lost" if chance < 0.1 else "ok"
            case "poll":
                return "missing" if chance < 0.08 else "ok"
        return "ok"

    def disk_fate(self, kind: str, name: str) -> str:
        draw = self.wreck
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
        """How long a call takes, and how it ends."""
        draw = self.work
        queue, kind, stop = draw.uniform(0, self.queue), draw.random(), draw.choice([0.0, 30.0, 900.0])
        if not payload.keys() - {"run_id"}:
            return Plan(seconds=5000)
        if self.people.hunger:
            queue = 0.0
            if payload.get("suite") == HUNGRY:
                return Plan(seconds=9000, stop_delay=stop)
            kind = kind if kind > 0.6 else 0.0
        if "prefix" in payload or "directory" in payload:
            ending = Phase.FAILED if kind < 0.2 else Phase.LOST if kind < 0.25 else Phase.SUCCEEDED
            return Plan(seconds=draw.uniform(60, 5000), ending=ending, queue=queue, stop_delay=stop)
        if "index" in payload:
            if kind < 0.25:
                payload["ends_lease"] = draw.random() < 0.5
                if self.trained.random() < 0.4:
                    payload["trained"] = True
                return Plan(seconds=9000, queue=queue, stop_delay=stop)
            ending = Phase.FAILED if kind < 0.3 else Phase.LOST if kind < 0.36 else Phase.SUCCEEDED
            return Plan(seconds=draw.uniform(100, 3000), ending=ending, queue=queue, stop_delay=stop)
        if kind < 0.1:
            return Plan(seconds=60, result={"name": payload["name"], "failed": {"type": "E", "message": "m"}})
        return Plan(seconds=draw.uniform(30, 600) if kind < 0.97 else 9000.0, queue=queue, stop_delay=stop)

    @staticmethod
    def hourly(function: str, _payload: dict[str, Any], gpu: str | None, _timeout: float) -> Decimal:
        if function == "run_interpolate":
            return budget.hourly_rate_of(budget.INTERPOLATION)
        return budget.hourly_rate(gpu, function == "run_full_trial") if gpu else Decimal(0)

    def deliver(self, path: Path, data: bytes) -> None:
        self.disk.put(str(path), data)

    def said(self, line: str) -> None:
        self.trace.append(f"{self.clock.time:9.0f} {self.disk.process}: {line}")

    def lift_pause(self) -> None:
        self.disk.process = "a person"
        if self.must.mode != "running":
            self.people.set_mode("running")
            self.must.mode = "running"

    def put(self, name: str, value: Any) -> None:
        self.disk.put(str(ROOT / name), files.dump_json(value))

    # What must hold in the end.

    def check_rest(self) -> None:
        """After the faults: what was launched has come to rest, and nothing that was acknowledged is forgotten."""
        self.disk.process = "a reader"
        units = self.must.units
        self.attempts = [attempt for unit in units.by_id.values() for attempt in unit.attempts]
        hold(self.people.reported <= units.calls(), "a call that was reported is not on record")
        strays = {call.id for call in self.compute.calls.values() if call.run_id == "stray"}
        hold(not strays & units.calls(), "a stranger's call was adopted")
        watcher = self.processes[1]
        launched = bool(units.of_name("r7"))
        hold(not launched or watcher.over, f"the watcher goes on for ever: {'; '.join(self.trace[-5:])}")
        if not launched or not self.people.finished:
            hold(not launched, f"no read-out: {watcher.problem}")
            return
        for unit in units.by_id.values():
            hold(unit.settled, f"{unit.id} never came to rest")
            if unit.outcome == "done" and unit.order.kind == "trial":
                hold(
                    "result.json" in self.disk.list_names(ROOT / unit.order.local), f"{unit.id} is done without result"
                )
        running = [call.run_id for call in self.compute.active() if not call.duplicate and call.run_id != "stray"]
        hold(not running, f"something still runs: {running}")
        self.check_again()

    def check_again(self) -> None:
        """A watch of what has come to rest ends at once, and changes nothing.

        There may be headroom by now, the meter may be read again, the pause be lifted or a damaged file put back, for
        want of which reads and scores were skipped. Then it makes these, and nothing else, as far as it may now; the
        watch after it goes on with what was skipped again.
        """
        seen, paused = 0, self.must.mode != "running"
        self.lift_pause()  # whoever paused may have been killed before, and a person's pause is waited out
        for _ in range(6):
            skipped = paused or any(reason in line for line in self.trace[seen:] for reason in PASSING)
            paused = False
            seen = len(self.trace)
            began = self.watch_again(600 if skipped else 60)
            if not began:
                return
            later = all(name.startswith(("read/", "blend/", "rescore/")) for name in began)
            hold(skipped and later, f"a watch of a finished round began {began}")
        hold(False, "every watch of a finished round begins something")

    def watch_again(self, points: int) -> list[str]:
        """Watch once more, for so many points at most. Returns what that began."""
        ledger, spawned = self.disk.files[LEDGER], len(self.compute.spawned)
        watcher = self.processes[1]
        watcher.over, watcher.wake = False, self.clock.time
        for _ in range(points):
            if watcher.over:
                break
            self.resume(watcher)
            self.clock.time = watcher.wake
            self.must.check()
        hold(watcher.over, "a second watch of a finished round does not end")
        began = self.compute.spawned[spawned:]
        hold(bool(began) or self.disk.files[LEDGER] == ledger, "a second watch changed the ledger and began nothing")
        return began


def hold(holds: bool, otherwise: str) -> None:
    """Raises Broken."""
    if not holds:
        raise Broken(otherwise)
