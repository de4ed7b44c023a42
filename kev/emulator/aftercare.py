"""What becomes of the calls of a container that is gone."""

from kev.emulator.container import Container
from kev.emulator.entities import Call
from kev.emulator.narrator import Narrator
from kev.emulator.queues import CallQueues
from kev.emulator.store import Store
from kev.emulator.timings import Timings
from kev.emulator.wire import KERNEL_OOM_KILL, pb

GENERIC = pb.GenericResult

EPHEMERAL_CRASHES = 3
"""After so many crashes a call of an app that is not deployed fails; a deployed app's is tried for ever."""

CANCELLED = "cancelled"
STOPPED_APP = "app stopped"
IDLE = "idle"
DONE = "done"
NOT_STARTED = "it ended before it took a call"


class Aftercare:
    """Ends each call, or sends it back to its queue."""

    def __init__(self, store: Store, queues: CallQueues, narrator: Narrator, timings: Timings) -> None:
        self._store = store
        self._queues = queues
        self._narrator = narrator
        self._timings = timings

    def settle(self, container: Container) -> None:
        """Decide about the calls a container had, and about those that wait for one that could never start."""
        task, process = container.task, container.process
        if process is not None and task.ended_by not in (IDLE, DONE):
            unfinished = next((call for call in container.calls.values() if not call.is_done), None)
            self._narrator.say(task, f"Container {task.id} ended: {task.ended_by}", unfinished)
        for call in list(container.calls.values()):
            self._settle_call(container, call)
        if container.defect or (process is not None and not container.has_worked and not container.ending):
            self._settle_start(container)

    def _settle_call(self, container: Container, call: Call) -> None:
        outcome, policy = container.outcome, container.function.definition.retry_policy
        if call.is_done:
            return
        if call.cancelled or container.ending in (CANCELLED, STOPPED_APP):
            self._queues.terminate(call, container.ending)
        elif call.input_id in container.timed_out:
            self._queues.retry(call, policy)
        elif outcome is not None and outcome.status != GENERIC.GENERIC_STATUS_SUCCESS:
            # Without the pickled exception, which no client should have to load.
            failure = GENERIC(status=outcome.status, exception=outcome.exception, traceback=outcome.traceback)
            self._queues.finish(call, failure)
        elif container.ending:
            self._queues.come_back(call, 0)  # preempted or stopped: not the program's fault, and at once
        else:
            self._crashed(container, call)

    def _crashed(self, container: Container, call: Call) -> None:
        call.crashes += 1
        if self._store.app(container.task.app_id).is_ephemeral and call.crashes >= EPHEMERAL_CRASHES:
            status = KERNEL_OOM_KILL if container.was_out_of_memory else GENERIC.GENERIC_STATUS_INTERNAL_FAILURE
            why = f"Container ended: {container.task.ended_by}"
            self._queues.finish(call, GENERIC(status=status, exception=why))  # type: ignore[arg-type]
            return
        timings = self._timings
        self._queues.come_back(call, min(timings.crash_backoff * 2 ** (call.crashes - 1), timings.crash_backoff_most))

    def _settle_start(self, container: Container) -> None:
        """One that cannot even start would be started for ever: what waits for it fails, unless it was killed.

        The exit code says little: the entry point reports an exception at import, or in an enter method, and ends with
        0. Nobody but the emulator ends a container in order before its first call, and then `ending` says so.
        """
        code = container.process.exit_code if container.process is not None else None
        if code is not None and code < 0 and not container.defect:
            if (call := self._queues.take(container.function.id)) is not None:
                self._crashed(container, call)
            return
        outcome = container.outcome
        told = outcome.exception if outcome is not None and outcome.exception else container.task.ended_by
        # Without the pickled exception, which no client should have to load.
        result = GENERIC(
            status=GENERIC.GENERIC_STATUS_INIT_FAILURE,
            exception=f"Container failed to start: {told}",
            traceback=outcome.traceback if outcome is not None else "",
        )
        while (call := self._queues.take(container.function.id)) is not None:
            call.task_id = container.task.id
            self._queues.finish(call, result)


def describe_end(container: Container) -> str:
    """Why a container is gone, in a few words."""
    if container.defect:
        return f"could not be run: {container.defect}"
    if container.ending:
        return container.ending
    if container.process is None:
        return "not needed"
    if container.was_out_of_memory:
        return "out of memory"
    code = container.process.exit_code or 0
    if code == 0:
        return DONE if container.has_worked else NOT_STARTED
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"
