"""Brings calls and containers together: queues, capacity, delivery, retries and rescheduling."""

import asyncio
import logging
import time
from collections import defaultdict, deque
from collections.abc import Coroutine
from typing import Any

from kev.clock import Clock
from kev.emulator.container import Container
from kev.emulator.entities import App, Attempt, Call, Function, Task
from kev.emulator.launch import Launcher
from kev.emulator.limits import Limits
from kev.emulator.money import SpendCap
from kev.emulator.narrator import Narrator
from kev.emulator.plan import Event
from kev.emulator.prices import gpu_of, hourly
from kev.emulator.process import Output
from kev.emulator.store import Store
from kev.emulator.termination import Terminator
from kev.emulator.timings import Timings
from kev.emulator.volume_views import VolumeViews
from kev.emulator.waiting import Bell
from kev.emulator.wire import new_id, pb

GENERIC = pb.GenericResult
EPHEMERAL_CRASHES = 3
"""After so many crashes a call of an app that is not deployed fails; a deployed app's is tried for ever."""

FINAL = {
    "cancelled": GENERIC.GENERIC_STATUS_TERMINATED,
    "app stopped": GENERIC.GENERIC_STATUS_TERMINATED,
}

log = logging.getLogger(__name__)


class Scheduler:
    """Owns the queues and the running containers."""

    def __init__(
        self, store: Store, clock: Clock, limits: Limits, cap: SpendCap, launcher: Launcher, views: VolumeViews,
        narrator: Narrator, terminator: Terminator, timings: Timings,
    ) -> None:  # fmt: skip
        self._store = store
        self._clock = clock
        self._limits = limits
        self._cap = cap
        self._launcher = launcher
        self._views = views
        self._narrator = narrator
        self._terminator = terminator
        self._timings = timings
        self._queues: dict[str, deque[Call]] = defaultdict(deque)
        self._arrivals: dict[str, Bell] = defaultdict(Bell)
        self._capacity = Bell()
        self._jobs: set[asyncio.Task[None]] = set()
        self._closing = False
        self.containers: dict[str, Container] = {}
        self.finished = Bell()
        """Rung when any call has a result."""

    # What clients cause.

    def submit(self, call: Call) -> None:
        """Queue a call for the next container of its function."""
        self._queues[call.function_id].append(call)
        self._arrivals[call.function_id].ring()
        self._provide(self._store.function(call.function_id))

    def retry(self, call: Call) -> None:
        """Take up a failed call once more."""
        call.status, call.result_bytes, call.finished, call.retries = 0, b"", 0, call.retries + 1
        self._return(call, 0)

    def cancel(self, call: Call, *, hard: bool) -> None:
        """Softly: the container is told and raises in the function. Hard: the container is ended."""
        if call.is_done:
            return
        call.cancelled = True
        self._store.save(call)
        container = self._holder(call)
        if container is None:
            self.finish(call, GENERIC(status=GENERIC.GENERIC_STATUS_TERMINATED))
        elif hard:
            self._terminator.stop(container, "cancelled")
        else:
            container.cancellations.append(call.input_id)
            container.bell.ring()

    def stop_app(self, app: App) -> None:
        """End every container of an app and everything it has queued."""
        for container in [each for each in self.containers.values() if each.task.app_id == app.id]:
            self._terminator.stop(container, "app stopped")
        for call in self._store.calls_of({each.id for each in self._store.functions.values() if each.app_id == app.id}):
            if not call.is_done and self._holder(call) is None:
                self.finish(call, GENERIC(status=GENERIC.GENERIC_STATUS_TERMINATED, exception="App stopped"))
        self._narrator.wake(app.id)

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

    async def next_call(self, container: Container, key: str) -> tuple[Call, Attempt] | None:
        """The next call for a container, or None when it shall exit. A repeated request gets the same call again."""
        if (again := container.calls.get(container.delivered.get(key, ""))) is not None:
            return again, self._store.attempts[_attempt_id(again)]
        queue = self._queues[container.function.id]
        end = time.monotonic() + (container.keep_warm_s or self._timings.keep_warm)
        while not container.ending:
            arrival, told = self._arrivals[container.function.id].listen(), container.bell.listen()
            while queue:
                call = queue.popleft()
                if not call.is_done:
                    return call, self._deliver(call, container, key)
            left = end - time.monotonic()
            if left <= 0 and not container.calls:
                container.end("idle")
                break
            waits = [asyncio.create_task(ear.wait(max(left, 0.05))) for ear in (arrival, told)]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in waits:
                    each.cancel()
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
        if result.status == GENERIC.GENERIC_STATUS_FAILURE and self._may_retry(call, policy):
            self._return_for_retry(call, policy)
        else:
            self.finish(call, result, item.data_format)

    def _deliver(self, call: Call, container: Container, key: str) -> Attempt:
        call.task_id, call.started = container.task.id, self._now()
        container.calls[call.input_id] = call
        container.has_worked = True
        if key:
            container.delivered = {key: call.input_id}
        attempt = Attempt(
            id=_attempt_id(call),
            task_id=container.task.id,
            call_id=call.id,
            input_id=call.input_id,
            started=call.started,
        )
        self._store.save(call)
        self._store.save(attempt)
        self._narrator.begin(attempt)
        self._terminator.watch(container, call.input_id, lambda: self._time_out(container, call))
        return attempt

    def finish(self, call: Call, result: pb.GenericResult, data_format: int = pb.DATA_FORMAT_PICKLE) -> None:
        """Give a call its result, once and for all."""
        if call.is_done:
            return
        call.status = result.status
        call.result_bytes, call.data_format = result.SerializeToString(), data_format
        call.finished = self._now()
        self._store.save(call)
        self.finished.ring()
        self._capacity.ring()

    # Ends of attempts.

    def _time_out(self, container: Container, call: Call) -> None:
        """The attempt is over now; the program gets its signals and may take another minute to go."""
        if container.calls.get(call.input_id) is not call:
            return
        container.timed_out.add(call.input_id)
        text = f"Task's current input {call.input_id} hit its timeout of {container.timeout_s}s"
        if not self._may_retry(call, container.function.definition.retry_policy):
            self.finish(call, GENERIC(status=GENERIC.GENERIC_STATUS_TIMEOUT, exception=text))
        self._narrator.say(container.task, text)
        self._terminator.time_out(container)

    @staticmethod
    def _may_retry(call: Call, policy: pb.FunctionRetryPolicy) -> bool:
        # A client that waits for the result retries by itself.
        waits = call.invocation in (
            pb.FUNCTION_CALL_INVOCATION_TYPE_SYNC,
            pb.FUNCTION_CALL_INVOCATION_TYPE_SYNC_LEGACY,
        )
        return not waits and not call.cancelled and call.retries < policy.retries

    def _return_for_retry(self, call: Call, policy: pb.FunctionRetryPolicy) -> None:
        delay = policy.initial_delay_ms / 1000 * (policy.backoff_coefficient or 1) ** call.retries
        if policy.max_delay_ms:
            delay = min(delay, policy.max_delay_ms / 1000)
        call.retries += 1
        self._return(call, delay)

    def _return(self, call: Call, delay: float) -> None:
        """Queue a call again after `delay` seconds."""
        call.task_id, call.started = "", 0
        self._store.save(call)
        if self._closing:
            return
        if delay:
            asyncio.get_running_loop().call_later(delay, self._resubmit, call)
        else:
            self._resubmit(call)

    def _resubmit(self, call: Call) -> None:
        if self._closing or call.is_done:
            return
        app = self._store.app(self._store.function(call.function_id).app_id)
        if call.cancelled or app.is_stopped:
            self.finish(call, GENERIC(status=GENERIC.GENERIC_STATUS_TERMINATED))
        else:
            self.submit(call)

    # Containers.

    def containers_of(self, function_id: str) -> list[Container]:
        return [each for each in self.containers.values() if each.function.id == function_id]

    def backlog(self, function_id: str) -> int:
        return sum(1 for call in self._queues[function_id] if not call.is_done)

    def _holder(self, call: Call) -> Container | None:
        container = self.containers.get(call.task_id)
        return container if container is not None and call.input_id in container.calls else None

    def _provide(self, function: Function) -> None:
        """Start as many containers as the queue needs and the function admits."""
        if self._closing:
            return
        living = [each for each in self.containers_of(function.id) if not each.ending]
        wanted = self.backlog(function.id) - sum(each.free_slots for each in living)
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
        self._background(self._run(container))

    async def _run(self, container: Container) -> None:
        has_gpus = False
        try:
            has_gpus = await self._wait_for_capacity(container)
            if has_gpus:
                await self._execute(container)
        finally:
            if has_gpus:
                self._limits.give_gpus(container.task.gpu_count)
            self._settle(container)
            await self._store.journal.sync()
            await asyncio.to_thread(self._launcher.clear, container.task)

    async def _wait_for_capacity(self, container: Container) -> bool:
        """True once the cards are ours; False if the container is no longer needed."""
        while True:
            capacity, told = self._capacity.listen(), container.bell.listen()
            if container.ending or self._closing or not self.backlog(container.function.id):
                return False
            if not self._cap.reached and self._limits.take_gpus(container.task.gpu_count):
                return True
            waits = [asyncio.create_task(ear.wait(self._timings.cap_check)) for ear in (capacity, told)]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in waits:
                    each.cancel()

    async def _execute(self, container: Container) -> None:
        task = container.task
        task.started = self._now()
        self._store.save(task)
        container.process = await self._launcher.start(
            task, container.function, lambda output: self._printed(container, output)
        )
        # From here on the container exists: it must be on record before it can do anything that outlives it.
        await self._store.journal.sync()
        if container.ending:
            self._terminator.stop(container, container.ending)
        commits = asyncio.create_task(self._commit_now_and_then(container))
        try:
            await container.process.wait()
        finally:
            commits.cancel()

    async def _commit_now_and_then(self, container: Container) -> None:
        while container.background_volumes:
            await asyncio.sleep(self._timings.background_commit)
            await self._views.commit_all(container.task.id, container.background_volumes)

    def _printed(self, container: Container, output: Output) -> None:
        self._narrator.print(container.task, output)
        self._terminator.printed(container, output.text)

    def _settle(self, container: Container) -> None:
        """The container is gone: decide what becomes of the calls it had, and of those that waited for it."""
        task, process = container.task, container.process
        task.finished = self._now()
        task.ended_by = container.ending or self._describe(container)
        self._store.save(task)
        del self.containers[task.id]
        self._views.close(task.id)
        self._terminator.forget(container)
        if process is not None and task.ended_by not in ("idle", "done"):
            self._narrator.say(task, f"Container {task.id} ended: {task.ended_by}")
        self._narrator.wake(task.app_id)
        for call in list(container.calls.values()):
            self._settle_call(container, call)
        if process is not None and not container.has_worked and not container.ending and process.exit_code:
            self._fail_queue(container)
        self._capacity.ring()
        self._provide(container.function)

    @staticmethod
    def _describe(container: Container) -> str:
        if container.process is None:
            return "not needed"
        if container.was_out_of_memory:
            return "out of memory"
        code = container.process.exit_code or 0
        if code == 0:
            return "done"
        return f"killed by signal {-code}" if code < 0 else f"exit code {code}"

    def _settle_call(self, container: Container, call: Call) -> None:
        outcome, policy = container.outcome, container.function.definition.retry_policy
        if call.is_done:
            return
        if call.cancelled or container.ending in FINAL:
            status = FINAL.get(container.ending, GENERIC.GENERIC_STATUS_TERMINATED)
            self.finish(call, GENERIC(status=status, exception=container.ending))
        elif call.input_id in container.timed_out:
            self._return_for_retry(call, policy)
        elif outcome is not None and outcome.status != GENERIC.GENERIC_STATUS_SUCCESS:
            # Without the pickled exception, which no client should have to load.
            failure = GENERIC(status=outcome.status, exception=outcome.exception, traceback=outcome.traceback)
            self.finish(call, failure)
        elif container.ending:
            self._return(call, 0)  # preempted or stopped: not the program's fault, and at once
        else:
            self._crashed(container, call)

    def _crashed(self, container: Container, call: Call) -> None:
        call.crashes += 1
        if self._store.app(container.task.app_id).is_ephemeral and call.crashes >= EPHEMERAL_CRASHES:
            out_of_memory = container.was_out_of_memory
            status = (
                GENERIC.GENERIC_STATUS_KERNEL_OOM_KILL if out_of_memory else GENERIC.GENERIC_STATUS_INTERNAL_FAILURE
            )
            self.finish(call, GENERIC(status=status, exception=f"Container ended: {container.task.ended_by}"))
            return
        timings = self._timings
        self._return(call, min(timings.crash_backoff * 2 ** (call.crashes - 1), timings.crash_backoff_most))

    def _fail_queue(self, container: Container) -> None:
        """A container that cannot even start would be started for ever: what waits for it fails instead."""
        told = container.outcome.exception if container.outcome is not None else container.task.ended_by
        result = GENERIC(status=GENERIC.GENERIC_STATUS_INIT_FAILURE, exception=f"Container failed to start: {told}")
        queue = self._queues[container.function.id]
        while queue:
            self.finish(queue.popleft(), result)

    # Start and end of the emulator itself.

    def resume(self, calls: list[Call]) -> None:
        """Take up calls that a former emulator left without a result."""
        for call in calls:
            self._return(call, 0)

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
        for container in self.containers.values():
            container.end("emulator stopped")
            self._terminator.kill(container)
        self._capacity.ring()
        while self._jobs:
            await asyncio.wait(self._jobs)

    def _background(self, job: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(job)
        self._jobs.add(task)
        task.add_done_callback(self._done)

    def _done(self, job: asyncio.Task[None]) -> None:
        self._jobs.discard(job)
        if not job.cancelled() and (error := job.exception()) is not None:
            log.error("a container's task failed", exc_info=error)

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _attempt_id(call: Call) -> str:
    return f"{call.id}/{call.task_id}"
