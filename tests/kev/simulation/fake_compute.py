"""A provider that lives in the test: calls run on its clock, cost money, hold leases, and fill a volume."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from kev.compute.errors import NotDeployed, SpendLimitReached, Throttled, Unavailable, Unreadable
from kev.compute.protocol import (
    AppState,
    CallRef,
    CallState,
    CallSummary,
    Container,
    CostSummary,
    Entry,
    EntryKind,
    Identity,
    JsonObject,
    LogLine,
    Phase,
    PullReport,
)
from kev.errors import NotFound
from kev.worker.orders import blend_directory

EPOCH = datetime(2026, 11, 30, 20, 0, tzinfo=UTC)

ANSWERS = {"spawn": "spawned", "cancel": "cancelled", "pull": "pulled"}
"""Requests whose answer may be lost, and the point at which it is."""


class FakeClock:
    """A clock that stands until it is moved; `skew` is how wrong this machine has it."""

    def __init__(self) -> None:
        self.time = 0.0
        self.skew = 0.0

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.time + self.skew)

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


@dataclass
class Call:
    """One call. `end` is when it ends by itself, `ending` how."""

    id: str
    function: str
    run_id: str
    payload: dict[str, Any]
    timeout: float
    started: float
    end: float
    ending: Phase
    hourly: Decimal
    cancelled_at: float | None = None
    stop_delay: float = 0.0
    result: Any = None
    duplicate: bool = False
    spawned: float = 0.0

    def __post_init__(self) -> None:
        self.rate = float(self.hourly) / 3600

    @property
    def stops(self) -> float:
        stop = min(self.end, self.started + self.timeout)
        return stop if self.cancelled_at is None else min(stop, self.cancelled_at + self.stop_delay)

    def phase(self, now: float) -> Phase:
        if now < self.stops:
            return Phase.ACTIVE
        if self.cancelled_at is not None and self.stops < min(self.end, self.started + self.timeout):
            return Phase.CANCELLED
        return self.ending if self.end <= self.started + self.timeout else Phase.TIMED_OUT

    def cost(self, now: float) -> float:
        """US dollars until then."""
        return self.rate * max(0.0, min(now, self.stops) - self.started)

    @property
    def worst(self) -> float:
        return self.rate * self.timeout


@dataclass
class Plan:
    """What becomes of a call once it is spawned."""

    seconds: float = 600.0
    ending: Phase = Phase.SUCCEEDED
    result: Any = None
    queue: float = 0.0
    stop_delay: float = 0.0
    """How long it goes on after it was cancelled."""


@dataclass
class FakeCompute:
    """See `kev.compute.protocol.Compute`. `point` is asked at every await, and says what happens to the request."""

    clock: FakeClock
    deliver: Callable[[Path, bytes], None]
    """Puts a pulled file where it belongs."""
    plan: Callable[[str, dict[str, Any]], Plan] = lambda _function, _payload: Plan()
    hourly: Callable[[str, dict[str, Any], str | None, float], Decimal] = lambda *_: Decimal(1)
    point: Callable[[str], Awaitable[str]] | None = None
    calls: dict[str, Call] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    deployed: bool = True
    list_lag: float = 0.0
    """Seconds after which a call appears in the list of calls."""
    lag: float = 0.0
    """Seconds by which the meter is late."""
    cycle_starts: list[float] = field(default_factory=lambda: [-1e9])
    before: Decimal = Decimal("500")
    """What the meter stood at when the world began."""
    billed_factor: Decimal = Decimal(1)
    metered_override: Any = "as it is"
    volume: dict[str, bytes] = field(default_factory=dict)
    spawned: list[str] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)
    """Calls that the provider says it does not know."""
    began: Callable[[Call], None] = lambda _call: None
    """Told of each call as it begins."""
    horizon: float = -1e9
    """Until when the meter has seen what was spent."""

    async def _at(self, name: str) -> str:
        fate = "ok" if self.point is None else await self.point(name)
        if fate == "unavailable":
            raise Unavailable(f"{name}: no answer")
        if fate == "throttled":
            raise Throttled(f"{name}: too many requests", retry_after_s=5, may_have_happened=name == "spawn")
        return fate

    async def _answer_of(self, name: str) -> None:
        """What was asked for is done; its answer may be lost on the way."""
        if self.point is not None and await self.point(ANSWERS[name]) == "lost":
            raise Unavailable(f"{name}: the answer was lost", may_have_happened=True)

    async def ping(self) -> Identity:
        await self._at("ping")
        return Identity("lab", "main", "test", True)

    async def app(self) -> AppState | None:
        await self._at("app")
        return AppState("ap-1", "lamps", 1, None, ("run_trial",)) if self.deployed else None

    async def spawn(
        self, function: str, payload: JsonObject, *, run_id: str, gpu: str | None = None, timeout_s: int | None = None,
        memory_mb: int | None = None,
    ) -> CallRef:  # fmt: skip
        fate = "ok" if self.point is None else await self.point("spawn")
        if fate == "unavailable":
            raise Unavailable("spawn: no answer", may_have_happened=True)
        if fate == "throttled":
            raise Throttled("spawn: too many requests", retry_after_s=5, may_have_happened=True)
        if fate == "limit":
            raise SpendLimitReached("spawn: workspace has reached its spend limit")
        if not self.deployed:
            raise NotDeployed("spawn: no such app")
        call = self.run(function, {**payload, "run_id": run_id}, run_id, gpu, float(timeout_s or 3600))
        if fate == "duplicate":
            self.run(function, {**payload, "run_id": run_id}, run_id, gpu, 1.0, duplicate=True)
        await self._answer_of("spawn")
        return CallRef(call.id, function, run_id)

    def run(
        self, function: str, payload: dict[str, Any], run_id: str, gpu: str | None, timeout: float, *,
        duplicate: bool = False,
    ) -> Call:  # fmt: skip
        """Begin a call."""
        plan = Plan(seconds=1) if function == "remote_source_hashes" else self.plan(function, payload)
        started = self.clock.time + plan.queue
        call = Call(
            id=f"fc-{len(self.calls):04d}",
            function=function,
            run_id=run_id,
            payload=payload,
            timeout=timeout,
            started=started,
            end=started + plan.seconds,
            ending=plan.ending,
            hourly=self.hourly(function, payload, gpu, timeout),
            result=plan.result,
            stop_delay=plan.stop_delay,
            duplicate=duplicate,
            spawned=self.clock.time,
        )
        self.calls[call.id] = call
        if not duplicate:
            self.spawned.append(run_id)
        self.began(call)
        return call

    async def poll(self, ref: CallRef, *, wait_s: float = 0) -> CallState:
        fate = await self._at("poll")
        call = self.calls.get(ref.id)
        if call is None or ref.id in self.missing or fate == "missing":
            return CallState(Phase.MISSING, EPOCH, error=f"{ref.id}: no such call")
        if wait_s:
            self.clock.time += min(wait_s, max(0.0, call.stops - self.clock.time))
        phase = call.phase(self.clock.time)
        result = call.result
        if phase is Phase.SUCCEEDED and result is None:
            result = self.hashes if call.function == "remote_source_hashes" else self._answer(call)
        error = "" if phase in (Phase.ACTIVE, Phase.SUCCEEDED) else f"ended: {phase}"
        return CallState(phase, self.clock.now(), result=result if phase is Phase.SUCCEEDED else None, error=error)

    @staticmethod
    def _answer(call: Call) -> dict[str, Any]:
        if "index" in call.payload:
            return {"label": f"trial-{call.payload['index']}", "objective": 0.5}
        if "prefix" in call.payload:
            return {"study": call.payload["study"], "name": call.payload["prefix"], "made": []}
        return {"name": call.payload.get("name"), "acc": 0.5}

    async def cancel(self, ref: CallRef, *, hard: bool = False) -> None:
        await self._at("cancel")
        call = self.calls.get(ref.id)
        if call is not None and call.cancelled_at is None:
            call.cancelled_at = self.clock.time
        await self._answer_of("cancel")

    async def settle(self, ref: CallRef, *, soft_s: float, hard_s: float) -> CallState:
        await self.cancel(ref)
        return await self.poll(ref)

    async def recent_calls(self, function: str, *, since: datetime) -> list[CallSummary]:
        await self._at("recent_calls")
        now, from_time = self.clock.time, (since - EPOCH).total_seconds()
        return [
            CallSummary(call.id, call.phase(now), "", None, None, "", None)
            for call in self.calls.values()
            if call.function == function and call.spawned >= from_time - 1 and call.spawned <= now - self.list_lag
        ]

    async def listdir(self, volume: str, path: str, *, recursive: bool = False) -> list[Entry]:
        await self._at("listdir")
        prefix = path.strip("/") + "/"
        found = {name: data for name, data in self.committed().items() if name.startswith(prefix)}
        return [Entry(name, EntryKind.FILE, len(data), 0) for name, data in found.items()]

    async def read(self, volume: str, path: str, *, limit: int) -> bytes | None:
        await self._at("read")
        if volume == "kev-leases":
            return self.lease(path.strip("/").removesuffix("/attempt.json"))
        return self.committed().get(path.strip("/"))

    async def pull(
        self, volume: str, path: str, dest: Path, *, weights: bool = False, on_progress: Any = None
    ) -> PullReport:
        await self._at("pull")
        prefix = path.strip("/") + "/"
        fetched = []
        found = self.committed()
        if not any(name.startswith(prefix) for name in found):
            raise NotFound(f"{volume}:{path}: nothing there to pull")
        for name, data in found.items():
            if name.startswith(prefix):
                self.deliver(dest / name.removeprefix(prefix), data)
                fetched.append(name)
                await self._answer_of("pull")
        return PullReport(fetched=tuple(fetched))

    async def log_tail(self, ref: CallRef, n: int) -> list[LogLine]:
        await self._at("log_tail")
        return []

    async def containers(self) -> list[Container]:
        await self._at("containers")
        return []

    async def billing_summary(self) -> CostSummary:
        fate = await self._at("billing")
        if fate == "unreadable":
            raise Unreadable("billing: no amount")
        if fate == "unknown":
            return CostSummary(EPOCH, EPOCH, Decimal("nan"), Decimal(0), {}, {}, True)
        metered: Any = self.metered() if self.metered_override == "as it is" else self.metered_override
        billed = metered * self.billed_factor if isinstance(metered, Decimal) and metered.is_finite() else metered
        return CostSummary(EPOCH, EPOCH, metered, billed, {}, {}, True)

    # What the world knows, whoever asks.

    def metered(self) -> Decimal:
        """The meter as it shows now: late, from zero in each cycle, and never falling within one."""
        now = self.clock.time
        start = max(moment for moment in self.cycle_starts if moment <= now)
        self.horizon = until = max(start, self.horizon, now - self.lag)
        total = sum(call.cost(until) - call.cost(start) for call in self.calls.values())
        return Decimal(str(round(total, 6))) + (self.before if start < 0 else Decimal(0))

    def true_cost(self) -> Decimal:
        return Decimal(str(round(sum(call.cost(self.clock.time) for call in self.calls.values()), 6)))

    def active(self) -> list[Call]:
        return [call for call in self.calls.values() if self.clock.time < call.stops]

    def lease(self, trial: str) -> bytes | None:
        """attempt.json: the newest call of the trial that has started."""
        now = self.clock.time
        held = [call for call in self._trial_calls(trial) if call.started <= now and not call.duplicate]
        if not held:
            return None
        call = held[-1]
        over = now >= call.stops
        heartbeat = EPOCH.timestamp() + 3_000 + (call.stops if over else call.started + (now - call.started) // 60 * 60)
        clean = over and call.phase(now) in (Phase.SUCCEEDED, Phase.FAILED)
        lease = {
            "nonce": call.payload.get("nonce", "none"), "attempt": call.payload.get("attempt"), "call_id": call.id,
            "started": EPOCH.timestamp() + 3_000 + call.started, "heartbeat": heartbeat,
            "ended": heartbeat if clean or call.payload.get("ends_lease") else None, "previous": None,
        }  # fmt: skip
        return json.dumps(lease).encode()

    async def count_claims(self, trial: str) -> tuple[int, bool]:
        await self._at("claims")
        held = [call for call in self._trial_calls(trial) if call.started <= self.clock.time and not call.duplicate]
        lease = self.lease(trial)
        return len(held), lease is not None and json.loads(lease)["ended"] is not None

    def committed(self) -> dict[str, bytes]:
        """What finished calls have written to the runs volume."""
        found = dict(self.volume)
        now = self.clock.time
        for call in self.calls.values():
            if "trained" in call.payload and not call.duplicate and now >= call.stops:
                found[f"{trial_of(call.payload)}/checkpoint/training_metrics.json"] = b"{}\n"
            if call.duplicate or call.phase(now) is not Phase.SUCCEEDED or (isinstance(call.result, dict) and
                                                                            "refused" in call.result):  # fmt: skip
                continue
            failed = isinstance(call.result, dict) and "failed" in call.result
            name = trial_of(call.payload)
            if name is not None:
                found[f"{name}/{'failed.json' if failed else 'result.json'}"] = (
                    b'{"error": "x"}\n' if failed else b"{}\n"
                )
            elif call.function == "run_bench" and not failed:
                found[f"bench/{call.payload['name']}/rows.json"] = b"[]\n"
            elif call.function == "run_resume" and not failed:
                found[f"{call.payload['study']}/{call.payload['directory']}/result.json"] = b"{}\n"
            elif call.function == "run_interpolate" and not failed:
                for alpha in call.payload["alphas"]:
                    place = blend_directory(call.payload["study"], call.payload["prefix"], alpha)
                    found |= {f"{place}/{name}": b"{}\n" for name in ("checkpoint/head.pt", "interpolation.json")}
            elif call.function == "run_locked_test" and not failed:
                for part in ("decision", "transfer"):
                    found[f"locked/{call.payload['name']}/{part}/rows.json"] = b"[]\n"
        return found

    def _trial_calls(self, trial: str) -> list[Call]:
        return [call for call in self.calls.values() if trial_of(call.payload) == trial]


def trial_of(payload: JsonObject) -> str | None:
    """`<study>/<NN>-<label>`, or None for what is no trial."""
    return f"{payload['study']}/{payload['index']:02d}-trial-{payload['index']}" if "index" in payload else None
