"""What containers ask and tell, and what clients ask about containers."""

from typing import Any

from kev.emulator.container import Container
from kev.emulator.dispatch import Caller
from kev.emulator.entities import Task
from kev.emulator.identity import DEFAULT_ENVIRONMENT
from kev.emulator.launch import layout
from kev.emulator.limits import Limits
from kev.emulator.scheduler import Scheduler
from kev.emulator.store import Store
from kev.emulator.termination import Terminator
from kev.emulator.timings import Timings
from kev.emulator.wire import GRPCError, Status, not_found, pb

HEARTBEAT_MARGIN_S = 0.25
"""A heartbeat is answered this much before its own deadline."""


class Containers:
    """Answers the container procedures."""

    def __init__(
        self, store: Store, scheduler: Scheduler, terminator: Terminator, limits: Limits, timings: Timings
    ) -> None:
        self._store = store
        self._scheduler = scheduler
        self._terminator = terminator
        self._limits = limits
        self._timings = timings

    # From inside.

    async def container_hello(self, _request: object, caller: Caller) -> None:
        self._container(caller)

    async def container_heartbeat(self, _request: object, caller: Caller) -> pb.ContainerHeartbeatResponse:
        """Held open until a cancellation is to be told, or the next heartbeat is due."""
        container = self._container(caller)
        ear = container.bell.listen()
        if not container.cancellations:
            await ear.wait(max(HEARTBEAT_MARGIN_S, self._timings.heartbeat - HEARTBEAT_MARGIN_S))
        told, container.cancellations = container.cancellations, []
        if not told:
            return pb.ContainerHeartbeatResponse()
        return pb.ContainerHeartbeatResponse(cancel_input_event=pb.CancelInputEvent(input_ids=told))

    async def function_get_inputs(self, _request: Any, caller: Caller) -> pb.FunctionGetInputsResponse:
        container = self._container(caller)
        call = await self._scheduler.next_call(container, caller.idempotency_key)
        if call is None:
            return pb.FunctionGetInputsResponse(inputs=[pb.FunctionGetInputsItem(kill_switch=True)])
        item = pb.FunctionGetInputsItem(
            input_id=call.input_id,
            input=self._store.inputs[call.input_id].item.input,
            function_call_id=call.id,
            retry_count=call.retries,
            function_call_invocation_type=call.invocation,  # type: ignore[arg-type]
        )
        return pb.FunctionGetInputsResponse(inputs=[item])

    async def function_put_outputs(self, request: pb.FunctionPutOutputsRequest, caller: Caller) -> None:
        container = self._container(caller)
        for item in request.outputs:
            self._scheduler.put_output(container, item)

    async def task_result(self, request: pb.TaskResultRequest, caller: Caller) -> None:
        self._container(caller).outcome = request.result

    async def app_get_layout(self, request: Any, _caller: Caller) -> pb.AppGetLayoutResponse:
        return pb.AppGetLayoutResponse(app_layout=layout(self._store, self._store.app(request.app_id)))

    # From outside.

    async def task_list(self, request: pb.TaskListRequest, _caller: Caller) -> pb.TaskListResponse:
        self._limits.admit("listing")
        environment = request.environment_name or DEFAULT_ENVIRONMENT
        listed = []
        for task in self._store.tasks.values():
            app = self._store.app(task.app_id)
            if task.is_live and app.environment == environment and request.app_id in ("", app.id):
                listed.append(
                    pb.TaskStats(
                        task_id=task.id,
                        app_id=app.id,
                        app_description=app.name,
                        started_at=task.started,
                        enqueued_at=task.enqueued,
                    )
                )
        return pb.TaskListResponse(tasks=listed)

    async def task_get_info(self, request: Any, _caller: Caller) -> pb.TaskGetInfoResponse:
        task = self._store.task(request.task_id)
        return pb.TaskGetInfoResponse(app_id=task.app_id, info=info(task))

    async def container_stop(self, request: pb.ContainerStopRequest, caller: Caller) -> pb.ContainerStopResponse:
        """Its call is rescheduled, not ended. Gracefully: it finishes what it works on."""
        container = self._scheduler.containers.get(request.task_id or caller.task_id)
        if container is None:
            raise not_found(f"Container '{request.task_id}' not found or not running.")
        if request.graceful:
            container.end("stopped")
        else:
            self._terminator.preempt(container, "stopped")
        return pb.ContainerStopResponse()

    def _container(self, caller: Caller) -> Container:
        if (container := self._scheduler.containers.get(caller.task_id)) is None:
            raise GRPCError(Status.PERMISSION_DENIED, "only a running container may ask this")
        return container


def info(task: Task) -> pb.TaskInfo:
    return pb.TaskInfo(
        id=task.id,
        started_at=task.started,
        finished_at=task.finished,
        enqueued_at=task.enqueued,
        gpu_type=task.gpu_type,
    )
