"""What is done to a container from outside: time-outs, stops, preemption, crashes, lack of memory, slowness."""

import asyncio
import signal
from collections.abc import Callable
from fnmatch import fnmatchcase

from kev.emulator.container import Container
from kev.emulator.plan import ENDLESS, ContainerEvent, Event
from kev.emulator.timings import Timings

SLOW_RUNS_S, SLOW_RESTS_S = 0.02, 0.98
"""A slow container runs this long, is stopped for that long, and so on until it is ended."""

SLOW = "slow"
"""In the place of an input's id: the timers of a container's slowness."""


class _ArmedEvent:
    def __init__(self, event: ContainerEvent) -> None:
        self.event = event
        self.left = event.times

    def matches(self, container: Container) -> bool:
        return self.left != 0 and fnmatchcase(container.function.name, self.event.function)

    def take(self) -> bool:
        if self.left == 0:
            return False
        if self.left != ENDLESS:
            self.left -= 1
        return True


class Terminator:
    """Sends the signals, in the provider's order and with its delays."""

    def __init__(self, timings: Timings, events: tuple[ContainerEvent, ...]) -> None:
        self._timings = timings
        self._events = [_ArmedEvent(event) for event in events]
        self._timers: dict[tuple[str, str], list[asyncio.TimerHandle]] = {}
        """By task, and by input where they concern one call."""
        self._time_outs: dict[tuple[str, str], Callable[[], None]] = {}

    def arm(self, event: ContainerEvent) -> None:
        """Add an event to those of the plan."""
        self._events.append(_ArmedEvent(event))

    def watch(self, container: Container, input_id: str, on_time_out: Callable[[], None]) -> None:
        """Begin the time-out of one attempt, and the plan's events that count from its start."""
        self._time_outs[container.task.id, input_id] = on_time_out
        if container.timeout_s:
            self._later(container, container.timeout_s, on_time_out, input_id=input_id)
        for armed in self._events:
            if armed.event.after_s is not None and armed.matches(container) and armed.take():
                self._later(container, armed.event.after_s, self.cause, container, armed.event.event, input_id=input_id)

    def printed(self, container: Container, text: str) -> None:
        """Let the plan's events happen that wait for a line."""
        for armed in self._events:
            wanted = armed.event.at_log
            if wanted is not None and wanted in text and armed.matches(container) and armed.take():
                self.cause(container, armed.event.event)

    def time_out(self, container: Container) -> None:
        """SIGUSR1 raises in the function; SIGINT and SIGKILL follow for those who swallow it."""
        container.end("timeout")
        self._let_run(container)
        container.signal(signal.SIGUSR1)
        self._later(container, self._timings.interrupt_after, container.signal, signal.SIGINT)
        self._later(container, self._timings.kill_after, container.signal, signal.SIGKILL)

    def preempt(self, container: Container, why: str = "preempted") -> None:
        """SIGINT, then SIGKILL; the call goes to another container."""
        container.end(why)
        self._let_run(container)
        container.signal(signal.SIGINT)
        self._later(container, self._timings.interrupt_after, container.signal, signal.SIGKILL)

    def stop(self, container: Container, why: str) -> None:
        container.end(why)
        self._let_run(container)
        container.signal(signal.SIGTERM)
        self._later(container, self._timings.stop_grace, container.signal, signal.SIGKILL)

    def kill(self, container: Container) -> None:
        container.signal(signal.SIGKILL)

    def run_out_of_memory(self, container: Container) -> None:
        container.was_out_of_memory = True
        container.signal(signal.SIGKILL)

    def unwatch(self, container: Container, input_id: str) -> None:
        """The attempt is over: drop its timers."""
        self._time_outs.pop((container.task.id, input_id), None)
        for timer in self._timers.pop((container.task.id, input_id), []):
            timer.cancel()

    def forget(self, container: Container) -> None:
        """The container is gone: drop all its timers."""
        for key in [key for key in self._timers if key[0] == container.task.id]:
            for timer in self._timers.pop(key):
                timer.cancel()
        for key in [key for key in self._time_outs if key[0] == container.task.id]:
            del self._time_outs[key]

    def cause(self, container: Container, event: Event) -> None:
        """Let `event` happen to a container now."""
        match event:
            case "preempt":
                self.preempt(container)
            case "crash":
                self.kill(container)
            case "oom":
                self.run_out_of_memory(container)
            case "stop":
                self.stop(container, "stopped")
            case "timeout":
                for key in [key for key in self._time_outs if key[0] == container.task.id]:
                    self._time_outs.pop(key)()
            case "slow":
                self._rest(container)

    def _rest(self, container: Container) -> None:
        self._timers.pop((container.task.id, SLOW), None)
        if not container.ending:
            container.signal(signal.SIGSTOP)
            self._later(container, SLOW_RESTS_S, self._run, container, input_id=SLOW)

    def _run(self, container: Container) -> None:
        self._timers.pop((container.task.id, SLOW), None)
        container.signal(signal.SIGCONT)
        self._later(container, SLOW_RUNS_S, self._rest, container, input_id=SLOW)

    def _let_run(self, container: Container) -> None:
        """A stopped program would not take the signals that follow."""
        if (container.task.id, SLOW) in self._timers:
            self.unwatch(container, SLOW)
            container.signal(signal.SIGCONT)

    def _later(
        self, container: Container, seconds: float, action: Callable[..., None], *arguments: object, input_id: str = ""
    ) -> None:
        timer = asyncio.get_running_loop().call_later(seconds, action, *arguments)
        self._timers.setdefault((container.task.id, input_id), []).append(timer)
