"""Brings calls and containers together: queues, capacity, delivery, retries and rescheduling."""

import logging
import time

from kev.clock import Clock
from kev.emulator.aftercare import CANCELLED, STOPPED_APP, Aftercare, describe_end
from kev.emulator.container import Container
from kev.emulator.entities import App, Attempt, Call, Function, Task
from kev.emulator.limits import Limits
from kev.emulator.money import SpendCap
from kev.emulator.narrator import Narrator
from kev.emulator.plan import Event
from kev.emulator.prices import gpu_of, hourly
from kev.emulator.queues import CallQueues, may_retry
from kev.emulator.running import Runner
from kev.emulator.store import Store
from kev.emulator.termination import Terminator
from kev.emulator.timings import Timings
from kev.emulator.waiting import Bell, Jobs, first_of
from kev.emulator.wire import new_id, pb

GENERIC = pb.GenericResult

log = logging.getLogger(__name__)


class Scheduler:
    """Owns the queues and the running containers."""

    def __init__(
        self, store: Store, clock: Clock, limits: Limits, cap: SpendCap, runner: Runner, narrator: Narrator,
        terminator: Terminator, timings: Timings,
    ) -> None:  # fmt: skip
        self._store = store
        self._clock = clock
        self._limits = limits
        self._cap = cap
        self._runner = runner
        self._narrator = narrator
        self._terminator = terminator
        self._timings = timings
        self.queues = CallQueues(store, clock, lambda function_id: self._provide(store.function(function_id)))
        self._aftercare = Aftercare(store, self.queues, narrator, timings)
        self._capacity = Bell()
        self._jobs = Jobs()
        self._closing = False
        self.containers: dict[str, Container] = {}

    # What clients cause.

    def retry(self, call: Call) -> None:
        """Take up a failed call once more."""
        call.status, call.result_bytes, call.finished, call.retries = 0, b"", 0, call.retries + 1
        self.queues.come_back(call, 0)

    def cancel(self, call: Call, *, hard: bool) -> None:
        """Softly: the container is told and raises in the function. Hard: the container is ended."""
        if call.is_done:
            return
        call.cancelled = True
        self._store.save(call)
        container = self._holder(call)
        if container is None:
            self.queues.terminate(call)
            self._capacity.ring()
        elif hard:
            self._terminator.stop(container, CANCELLED)
        else:
            container.cancellations.append(call.input_id)
            container.bell.ring()

    def stop_app(self, app: App) -> None:
        """End every container of an app and everything it has queued."""
        for container in [each for each in self.containers.values() if each.task.app_id == app.id]:
            self._terminator.stop(container, STOPPED_APP)
        for call in self._store.calls_of({each.id for each in self._store.functions.values() if each.app_id == app.id}):
            if not call.is_done and self._holder(call) is None:
                self.queues.terminate(call, "App stopped")
        self._narrator.wake(app.id)
        self._capacity.ring()

    def retire(self, app: App) -> None:
        """A new version is published: containers of the old one finish what they have and take nothing more."""
        for container in self.containers.values():
            if container.task.app_id == app.id:
                container.end("replaced by a new version")
        for function_id in app.functions.values():
            if function_id in self._store.functions:
                self._provide(self._store.function(function_id))

    def disrupt(self, call: Call, event: Event) -> bool:
        """Let something happen to the container that works on `call`; False if none does."""
        container = self._holder(call)
        if container is not None:
            self._terminator.cause(container, event)
        return container is not None

    # What containers cause.

    async def next_call(self, container: Container, key: str) -> Call | None:
        """The next call for a container, or None when it shall exit. A repeated request gets the same call again."""
        if (again := container.calls.get(container.delivered.get(key, ""))) is not None:
            return again
        container.is_up.set()
        end = time.monotonic() + (container.keep_warm_s or self._timings.keep_warm)
        while not container.ending:
            arrival, told = self.queues.arrivals(container.function.id).listen(), container.bell.listen()
            if (call := self.queues.take(container.function.id)) is not None:
                self._deliver(call, container, key)
                return call
            left = end - time.monotonic()
            if left <= 0 and not container.calls:
                container.end("idle")
                break
            await first_of(arrival, told, seconds=max(left, 0.05))
        return None

    def put_output(self, container: Container, item: pb.FunctionPutOutputsItem) -> None:
        """Take a result, unless that attempt is over already."""
        call = container.calls.get(item.input_id)
        if call is None or item.input_id in container.timed_out:
            return
        del container.calls[item.input_id]
        self._terminator.unwatch(container, item.input_id)
        result = item.result
        policy = container.function.definition.retry_policy
        if result.status == GENERIC.GENERIC_STATUS_FAILURE and may_retry(call, policy):
            self.queues.retry(call, policy)
        else:
            self.queues.finish(call, result, item.data_format)

    def _deliver(self, call: Call, container: Container, key: str) -> None:
        call.task_id, call.started = container.task.id, self._now()
        container.calls[call.input_id] = call
        container.has_worked = True
        if key:
            container.delivered = {key: call.input_id}
        attempt = Attempt(
            id=f"{call.id}/{container.task.id}/{call.retries}",
            task_id=container.task.id,
            call_id=call.id,
            input_id=call.input_id,
            started=call.started,
        )
        self._store.save(call)
        self._store.save(attempt)
        self._narrator.begin(attempt)
        self._terminator.watch(container, call.input_id, lambda: self._time_out(container, call))

    # Ends of attempts.

    def _time_out(self, container: Container, call: Call) -> None:
        """The attempt is over now; the program gets its signals and may take another minute to go."""
        if container.calls.get(call.input_id) is not call:
            return
        container.timed_out.add(call.input_id)
        text = f"Task's current input {call.input_id} hit its timeout of {container.timeout_s}s"
        if not may_retry(call, container.function.definition.retry_policy):
            self.queues.finish(call, GENERIC(status=GENERIC.GENERIC_STATUS_TIMEOUT, exception=text))
        self._narrator.say(container.task, text, call)
        self._terminator.time_out(container)

    # Containers.

    def containers_of(self, function_id: str) -> list[Container]:
        return [each for each in self.containers.values() if each.function.id == function_id]

    def _holder(self, call: Call) -> Container | None:
        container = self.containers.get(call.task_id)
        return container if container is not None and call.input_id in container.calls else None

    def _provide(self, function: Function) -> None:
        """Start as many containers as the queue needs and the function admits."""
        if self._closing:
            return
        living = [each for each in self.containers_of(function.id) if not each.ending]
        wanted = self.queues.backlog(function.id) - sum(each.free_slots for each in living)
        most = function.definition.concurrency_limit or wanted + len(living)
        slots = max(1, function.definition.max_concurrent_inputs)
        for _ in range(min(-(-wanted // slots), most - len(living))):
            self._begin(function)

    def _begin(self, function: Function) -> None:
        gpu_type, gpu_count = gpu_of(function.definition)
        task = Task(
            id=new_id("ta"),
            app_id=function.app_id,
            function_id=function.id,
            enqueued=self._now(),
            gpu_type=gpu_type,
            gpu_count=gpu_count,
            hourly=hourly(function.definition),
        )
        self._store.save(task)
        container = Container(task, function)
        self.containers[task.id] = container
        self._jobs.start(self._run(container))

    async def _run(self, container: Container) -> None:
        has_gpus = False
        try:
            has_gpus = await self._wait_for_capacity(container)
            if has_gpus:
                await self._runner.run(container, lambda: bool(self.queues.backlog(container.function.id)))
        except Exception as error:
            log.exception("container %s could not be run", container.task.id)
            container.defect = str(error) or repr(error)
        finally:
            if has_gpus:
                self._limits.give_gpus(container.task.gpu_count)
            self._settle(container)
            await self._store.journal.sync()
            await self._runner.clear(container)

    async def _wait_for_capacity(self, container: Container) -> bool:
        """True once the cards are ours; False if the container is no longer needed."""
        while True:
            capacity, told = self._capacity.listen(), container.bell.listen()
            if container.ending or self._closing or not self.queues.backlog(container.function.id):
                return False
            if not self._cap.reached and self._limits.take_gpus(container.task.gpu_count):
                return True
            await first_of(capacity, told, seconds=self._timings.cap_check if self._cap.reached else None)

    def _settle(self, container: Container) -> None:
        """The container is gone: close its books, and let others take its place."""
        task = container.task
        task.finished, task.ended_by = self._now(), describe_end(container)
        self._store.save(task)
        del self.containers[task.id]
        self._terminator.forget(container)
        self._aftercare.settle(container)
        self._narrator.wake(task.app_id)
        self._capacity.ring()
        self._provide(container.function)

    # Start and end of the emulator itself.

    def resume(self, calls: list[Call]) -> None:
        """Take up calls that a former emulator left without a result."""
        for call in calls:
            self.queues.come_back(call, 0)

    def look_at_money(self) -> None:
        """End what runs once the spend cap says so, and let go what waits once it does not."""
        if self._cap.reached and self._cap.plan.at_cap == "stop":
            for container in list(self.containers.values()):
                if container.process is not None and not container.ending:
                    self._terminator.stop(container, "workspace spend limit reached")
        self._capacity.ring()

    async def close(self) -> None:
        """Kill every container and wait until none is left. Their calls stay open for the next start."""
        self._closing = True
        self.queues.close()
        for container in self.containers.values():
            container.end("emulator stopped")
            self._terminator.kill(container)
        self._capacity.ring()
        await self._jobs.wait()

    def _now(self) -> float:
        return self._clock.now().timestamp()
