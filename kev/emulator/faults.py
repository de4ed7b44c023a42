"""Injects the faults of a plan into requests, and counts what was injected."""

import asyncio
from collections.abc import Iterator
from fnmatch import fnmatchcase

from kev.emulator.plan import ENDLESS, Fault, FaultPlan, Sequence
from kev.emulator.wire import GRPCError, Status, throttled

GROUPS = {
    "any": ("*",),
    "billing": ("WorkspaceBilling*",),
    "cancel": ("FunctionCallCancel",),
    "deploy": ("AppCreate", "AppPublish", "FunctionCreate", "FunctionPrecreate", "ImageGetOrCreate", "Mount*"),
    "list": ("AppList", "TaskList", "VolumeList*", "FunctionCallFetch", "FunctionCallList"),
    "logs": ("AppGetLogs", "AppFetchLogs", "AppCountLogs"),
    "poll": ("FunctionGetOutputs",),
    "spawn": ("FunctionMap",),
    "volume": ("Volume*",),
}
"""Words that stand for several procedures."""


class _Armed:
    """A fault of the plan with what is left of it."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.patterns = patterns_of(fault.rpc)
        self.skip = fault.skip
        self.left = fault.times

    def hits(self, rpc: str, from_container: bool) -> bool:
        if (from_container and not self.fault.containers) or not _matches(self.patterns, rpc) or self.left == 0:
            return False
        if self.skip:
            self.skip -= 1
            return False
        if self.left != ENDLESS:
            self.left -= 1
        return True


class Faults:
    """The plan at work. `add` arms one more fault while the emulator runs."""

    def __init__(self, plan: FaultPlan) -> None:
        self.plan = plan
        self.injected: list[tuple[str, str]] = []
        """Procedure and kind of every fault that was met, in order."""
        self._armed = [_Armed(fault) for fault in plan.fault if fault.rpc]
        named = {fault.name: fault for fault in plan.fault if fault.name} | {"ok": Fault(name="ok", kind="ok")}
        self._sequences = [(patterns_of(each.rpc), _steps(each, named)) for each in plan.sequence]

    def add(self, fault: Fault) -> None:
        self._armed.append(_Armed(fault))

    def clear(self) -> None:
        """Disarm every request fault."""
        self._armed.clear()
        self._sequences.clear()

    async def before(self, rpc: str, *, from_container: bool) -> bool:
        """Do to a request what the plan says. True if its reply shall be lost. Raises GRPCError."""
        fault = self._next(rpc, from_container)
        if fault is None or fault.kind == "ok":
            return False
        self.injected.append((rpc, fault.kind))
        match fault.kind:
            case "unavailable":
                raise GRPCError(Status.UNAVAILABLE, fault.message)
            case "throttle" | "refuse":
                raise throttled(fault.message, fault.retry_after_s)
            case "hang":
                await self._hang(fault.delay_s)
            case "slow":
                await asyncio.sleep(fault.delay_s or 0)
        return fault.kind == "lost-reply"

    async def before_message(self, rpc: str) -> None:
        """Slow down one message of a stream."""
        for armed in self._armed:
            if armed.fault.kind == "slow" and _matches(armed.patterns, rpc):
                await asyncio.sleep(armed.fault.delay_s or 0)

    def _next(self, rpc: str, from_container: bool) -> Fault | None:
        for patterns, steps in self._sequences:
            if not from_container and _matches(patterns, rpc) and (step := next(steps, None)):
                return step
        return next((armed.fault for armed in self._armed if armed.hits(rpc, from_container)), None)

    @staticmethod
    async def _hang(seconds: float | None) -> None:
        if seconds is None:
            await asyncio.Event().wait()  # until the caller gives up and the request is cancelled
        else:
            await asyncio.sleep(seconds)


def patterns_of(names: tuple[str, ...]) -> tuple[str, ...]:
    """Groups written out."""
    return tuple(pattern for name in names for pattern in GROUPS.get(name, (name,)))


def _steps(sequence: Sequence, named: dict[str, Fault]) -> Iterator[Fault]:
    return iter([named[step] for step in sequence.steps])


def _matches(patterns: tuple[str, ...], rpc: str) -> bool:
    return any(fnmatchcase(rpc, pattern) for pattern in patterns)
