"""One container at run time: its process, the calls it works on, and what it has been told."""

import asyncio

from kev.emulator.entities import Call, Function, Task
from kev.emulator.process import Process
from kev.emulator.waiting import Bell
from kev.emulator.wire import pb


class Container:
    """State that lives as long as the process; what must outlive it is in `task`."""

    def __init__(self, task: Task, function: Function) -> None:
        self.task = task
        self.function = function
        definition = function.definition
        self.slots = 1 if definition.single_use_containers else max(1, definition.max_concurrent_inputs)
        self.is_single_use = definition.single_use_containers or definition.max_inputs == 1
        self.timeout_s = definition.timeout_secs
        self.keep_warm_s: float | None = definition.task_idle_timeout_secs or None
        self.memory_limit_mib = definition.resources.memory_mb_max
        self.background_volumes = [
            mount.volume_id
            for mount in definition.volume_mounts
            if mount.allow_background_commits and not mount.read_only
        ]
        self.process: Process | None = None
        self.is_up = asyncio.Event()
        """Set when it asks for its first call."""
        self.calls: dict[str, Call] = {}
        """What it works on, by input id."""
        self.has_worked = False
        self.timed_out: set[str] = set()
        """Input ids whose attempt is over although the program may still run."""
        self.delivered: dict[str, str] = {}
        """Input id by the key of the request that fetched it, for a request that is repeated."""
        self.ending = ""
        """Why it takes no more calls."""
        self.was_out_of_memory = False
        self.defect = ""
        """Why the emulator could not run it."""
        self.cancellations: list[str] = []
        self.outcome: pb.GenericResult | None = None
        """What it reported of itself when it failed outside any call."""
        self.bell = Bell()

    @property
    def free_slots(self) -> int:
        if self.ending or (self.is_single_use and self.has_worked):
            return 0
        return max(0, self.slots - len(self.calls))

    def end(self, why: str) -> None:
        """Take no more calls; the first reason stands."""
        self.ending = self.ending or why
        self.bell.ring()

    def signal(self, number: int) -> None:
        if self.process is not None:
            self.process.signal(number)
