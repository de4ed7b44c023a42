"""Calls that wait for a container, and how a call ends or comes back."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable

from kev.clock import Clock
from kev.emulator.entities import Call
from kev.emulator.store import Store
from kev.emulator.waiting import Bell
from kev.emulator.wire import pb

GENERIC = pb.GenericResult


class CallQueues:
    """One queue per function. `on_arrival` is told the function of every call that is put into one."""

    def __init__(self, store: Store, clock: Clock, on_arrival: Callable[[str], None]) -> None:
        self._store = store
        self._clock = clock
        self._on_arrival = on_arrival
        self._waiting: dict[str, deque[Call]] = defaultdict(deque)
        self._arrivals: dict[str, Bell] = defaultdict(Bell)
        self._is_closed = False
        self.finished = Bell()
        """Rung when any call has a result."""

    def put(self, call: Call) -> None:
        self._waiting[call.function_id].append(call)
        self._arrivals[call.function_id].ring()
        self._on_arrival(call.function_id)

    def take(self, function_id: str) -> Call | None:
        """The next call that still wants to be worked on."""
        queue = self._waiting[function_id]
        while queue:
            if not (call := queue.popleft()).is_done:
                return call
        return None

    def arrivals(self, function_id: str) -> Bell:
        return self._arrivals[function_id]

    def backlog(self, function_id: str) -> int:
        return sum(1 for call in self._waiting[function_id] if not call.is_done)

    def finish(self, call: Call, result: pb.GenericResult, data_format: int = pb.DATA_FORMAT_PICKLE) -> None:
        """Give a call its result, once and for all."""
        if call.is_done:
            return
        call.status = result.status
        call.result_bytes, call.data_format = result.SerializeToString(), data_format
        call.finished = self._clock.now().timestamp()
        self._store.save(call)
        self.finished.ring()

    def terminate(self, call: Call, why: str = "") -> None:
        self.finish(call, GENERIC(status=GENERIC.GENERIC_STATUS_TERMINATED, exception=why))

    def come_back(self, call: Call, delay: float) -> None:
        """Queue a call again after `delay` seconds. It is on record at once, and so survives a kill meanwhile."""
        call.task_id, call.started = "", 0
        self._store.save(call)
        if self._is_closed:
            return
        if delay:
            asyncio.get_running_loop().call_later(delay, self._put_again, call)
        else:
            self._put_again(call)

    def retry(self, call: Call, policy: pb.FunctionRetryPolicy) -> None:
        """Queue a failed call again as the function's retry policy says."""
        delay = policy.initial_delay_ms / 1000 * (policy.backoff_coefficient or 1) ** call.retries
        if policy.max_delay_ms:
            delay = min(delay, policy.max_delay_ms / 1000)
        call.retries += 1
        self.come_back(call, delay)

    def close(self) -> None:
        """Take nothing more: what waits stays open for the next start."""
        self._is_closed = True

    def _put_again(self, call: Call) -> None:
        if self._is_closed or call.is_done:
            return
        app = self._store.app(self._store.function(call.function_id).app_id)
        if call.cancelled or app.is_stopped:
            self.terminate(call)
        else:
            self.put(call)


def may_retry(call: Call, policy: pb.FunctionRetryPolicy) -> bool:
    """Whether the platform tries again. A client that waits for the result does so by itself."""
    waits = call.invocation in (pb.FUNCTION_CALL_INVOCATION_TYPE_SYNC, pb.FUNCTION_CALL_INVOCATION_TYPE_SYNC_LEGACY)
    return not waits and not call.cancelled and call.retries < policy.retries
