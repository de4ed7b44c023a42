"""Calls: accepting one, telling how it stands, cancelling it, and listing what was called."""

import time
from collections import Counter
from typing import Any

from kev.clock import Clock
from kev.emulator.dispatch import Caller
from kev.emulator.entities import Call, Input
from kev.emulator.money import SpendCap
from kev.emulator.scheduler import Scheduler
from kev.emulator.store import Store
from kev.emulator.wire import (
    INPUT_KERNEL_OOM_KILL,
    KERNEL_OOM_KILL,
    CallCounts,
    GRPCError,
    Status,
    new_id,
    pb,
    seconds_of,
    timestamp,
)

GENERIC = pb.GenericResult

INPUT_STATUS = {
    GENERIC.GENERIC_STATUS_SUCCESS: pb.FUNCTION_CALL_INPUT_STATUS_SUCCESS,
    GENERIC.GENERIC_STATUS_FAILURE: pb.FUNCTION_CALL_INPUT_STATUS_FAILURE,
    GENERIC.GENERIC_STATUS_TERMINATED: pb.FUNCTION_CALL_INPUT_STATUS_TERMINATED,
    GENERIC.GENERIC_STATUS_TIMEOUT: pb.FUNCTION_CALL_INPUT_STATUS_TIMEOUT,
    GENERIC.GENERIC_STATUS_INIT_FAILURE: pb.FUNCTION_CALL_INPUT_STATUS_INIT_FAILURE,
    GENERIC.GENERIC_STATUS_INTERNAL_FAILURE: pb.FUNCTION_CALL_INPUT_STATUS_INTERNAL_FAILURE,
    KERNEL_OOM_KILL: INPUT_KERNEL_OOM_KILL,
}

CATEGORY = {
    GENERIC.GENERIC_STATUS_SUCCESS: "succeeded_inputs",
    GENERIC.GENERIC_STATUS_TIMEOUT: "timeout_inputs",
    GENERIC.GENERIC_STATUS_TERMINATED: "cancelled_inputs",
}


class Calls:
    """The call table as a client sees it."""

    def __init__(
        self, store: Store, clock: Clock, scheduler: Scheduler, cap: SpendCap, result_retention_s: float
    ) -> None:
        self._store = store
        self._clock = clock
        self._scheduler = scheduler
        self._cap = cap
        self._retention_s = result_retention_s
        self._by_key = {call.idempotency_key: call.id for call in store.calls.values() if call.idempotency_key}

    async def function_map(self, request: pb.FunctionMapRequest, caller: Caller) -> pb.FunctionMapResponse:
        """Accept a call. A request that is sent again because its reply was lost finds the call it made."""
        function = self._store.function(request.function_id)
        if self._store.app(function.app_id).is_stopped:
            raise GRPCError(Status.FAILED_PRECONDITION, "App is stopped")
        if len(request.pipelined_inputs) != 1:
            raise GRPCError(Status.UNIMPLEMENTED, "maps over many inputs are not emulated; spawn each one")
        call = self._store.calls.get(self._by_key.get(caller.idempotency_key, ""))
        if call is None:
            self._cap.check()
            call = self._accept(function.id, request, caller)
        item = request.pipelined_inputs[0]
        reply = pb.FunctionPutInputsResponseItem(idx=item.idx, input_id=call.input_id, input_jwt=call.input_id)
        return pb.FunctionMapResponse(
            function_call_id=call.id,
            retry_policy=function.definition.retry_policy,
            function_call_jwt=call.id,
            pipelined_inputs=[reply],
        )

    def _accept(self, function_id: str, request: pb.FunctionMapRequest, caller: Caller) -> Call:
        entry = Input(id=new_id("in"), item_bytes=request.pipelined_inputs[0].SerializeToString())
        call = Call(
            id=new_id("fc"),
            function_id=function_id,
            input_id=entry.id,
            invocation=request.function_call_invocation_type,
            idempotency_key=caller.idempotency_key,
            created=self._clock.now().timestamp(),
        )
        self._store.save(entry)
        self._store.save(call)
        if caller.idempotency_key:
            self._by_key[caller.idempotency_key] = call.id
        self._scheduler.queues.put(call)
        return call

    async def function_retry_inputs(self, request: Any, _caller: Caller) -> pb.FunctionRetryInputsResponse:
        """A waiting client asks for its failed call to be tried again."""
        jwts = []
        for each in request.inputs:
            call = next((call for call in self._store.calls.values() if call.input_id == each.input_jwt), None)
            if call is not None:
                self._scheduler.retry(call)
                jwts.append(call.input_id)
        return pb.FunctionRetryInputsResponse(input_jwts=jwts)

    async def function_get_outputs(self, request: Any, _caller: Caller) -> pb.FunctionGetOutputsResponse:
        call = self._store.call(request.function_call_id)
        end = time.monotonic() + request.timeout
        while not call.is_done:
            ear = self._scheduler.queues.finished.listen()
            left = end - time.monotonic()
            if left <= 0:
                return pb.FunctionGetOutputsResponse(num_unfinished_inputs=1, last_entry_id="0-0")
            await ear.wait(left)
        if self._is_expired(call):
            return pb.FunctionGetOutputsResponse(num_unfinished_inputs=0)
        item = pb.FunctionGetOutputsItem(
            result=call.result,
            idx=0,
            input_id=call.input_id,
            data_format=call.data_format,  # type: ignore[arg-type]
            task_id=call.task_id,
            input_started_at=call.started,
            output_created_at=call.finished,
            retry_count=call.retries,
        )
        return pb.FunctionGetOutputsResponse(idxs=[0], last_entry_id="1-0", outputs=[item])

    async def function_call_from_id(self, request: Any, _caller: Caller) -> pb.FunctionCallFromIdResponse:
        call = self._store.call(request.function_call_id)
        app_id = self._store.function(call.function_id).app_id
        return pb.FunctionCallFromIdResponse(
            function_call_id=call.id,
            num_inputs=1,
            metadata=pb.FunctionCallHandleMetadata(app_id=app_id, function_id=call.function_id),
        )

    async def function_call_get_info(self, request: Any, _caller: Caller) -> pb.FunctionCallGetInfoResponse:
        return pb.FunctionCallGetInfoResponse(info=info(self._store.call(request.function_call_id)))

    async def function_call_list(self, request: Any, _caller: Caller) -> pb.FunctionCallListResponse:
        calls = self._store.calls_of({request.function_id})
        return pb.FunctionCallListResponse(function_calls=[info(call) for call in calls])

    async def function_call_fetch(self, request: Any, _caller: Caller) -> pb.FunctionCallFetchResponse:
        calls = self._store.calls_of(self._variants(request))
        if request.WhichOneof("query_oneof") == "tail":
            calls = calls[::-1][: request.tail.count]
        else:
            since, until = seconds_of(request.range.since), seconds_of(request.range.until)
            calls = [call for call in calls if since <= call.created < until][: request.range.limit or None]
        return pb.FunctionCallFetchResponse(function_call_inputs=[self._row(call) for call in calls])

    async def function_call_count(self, request: Any, _caller: Caller) -> Any:
        since, until, width = seconds_of(request.since), seconds_of(request.until), request.bucket_secs
        counts = Counter(
            int(call.created // width * width)
            for call in self._store.calls_of(self._variants(request))
            if since <= call.created < until
        )
        bucket = CallCounts.InputBucket
        return CallCounts(
            buckets=[bucket(bucket_start_at=timestamp(at), count=count) for at, count in sorted(counts.items())]
        )

    async def function_get_call_graph(self, request: Any, _caller: Caller) -> pb.FunctionGetCallGraphResponse:
        call = self._store.call(request.function_call_id)
        function = self._store.function(call.function_id)
        return pb.FunctionGetCallGraphResponse(
            inputs=[
                pb.InputCallGraphInfo(
                    input_id=call.input_id,
                    function_call_id=call.id,
                    task_id=call.task_id,
                    status=call.status,  # type: ignore[arg-type]
                )
            ],
            function_calls=[
                pb.FunctionCallCallGraphInfo(
                    function_call_id=call.id,
                    function_name=function.name,
                    module_name=function.definition.module_name,
                )
            ],
        )

    async def function_call_cancel(self, request: pb.FunctionCallCancelRequest, _caller: Caller) -> None:
        self._scheduler.cancel(self._store.call(request.function_call_id), hard=request.terminate_containers)

    def _variants(self, request: Any) -> set[str]:
        wanted = {request.function_id}
        return wanted | {each.id for each in self._store.functions.values() if each.base in wanted}

    def _is_expired(self, call: Call) -> bool:
        return self._clock.now().timestamp() - call.finished > self._retention_s

    def _row(self, call: Call) -> pb.FunctionCallInputInfo:
        if call.is_done:
            status = INPUT_STATUS[call.status]
        elif call.started:
            status = pb.FUNCTION_CALL_INPUT_STATUS_RUNNING
        else:
            status = pb.FUNCTION_CALL_INPUT_STATUS_PENDING
        row = pb.FunctionCallInputInfo(
            enqueued_at=timestamp(call.created),
            status=status,  # type: ignore[arg-type]
            function_call_id=call.id,
        )
        if call.started:
            row.started_at.CopyFrom(timestamp(call.started))
            row.container_id = call.task_id
            task = self._store.tasks.get(call.task_id)
            if task is not None and task.started:
                row.startup_time_seconds = max(0.0, call.started - max(task.started, call.created))
        if call.finished:
            row.execution_time_seconds = call.finished - (call.started or call.finished)
        return row


def info(call: Call) -> pb.FunctionCallInfo:
    row = pb.FunctionCallInfo(
        function_call_id=call.id, created_at=call.created, scheduled_at=call.started, total_inputs=1
    )
    category = CATEGORY.get(call.status, "failed_inputs") if call.is_done else "pending_inputs"  # type: ignore[call-overload]
    getattr(row, category).total = 1
    return row
