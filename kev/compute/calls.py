"""Calls: starting one, asking how it stands, and ending it."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Any

import orjson

from kev.clock import Clock
from kev.compute import classify
from kev.compute.client import ModalClient, load_modal
from kev.compute.errors import NotDeployed, RemoteError, Throttled, Unavailable
from kev.compute.protocol import CallRef, CallState, CallSummary, JsonObject, Phase
from kev.errors import UsageError
from kev.text import shorten, visible

POLL_WAIT_S = 5.0
"""Longest that one poll of `settle` lets the server wait for the end of a call."""

MAX_RECENT = 1000
"""Calls of one function that the platform lists at most, newest first."""

REQUESTED_MB = 32_768
"""Memory that a machine must have free for a container whose limit was changed, in MiB; or the limit, if less."""

STATUSES = {
    "pending": Phase.ACTIVE,
    "running": Phase.ACTIVE,
    "success": Phase.SUCCEEDED,
    "timeout": Phase.TIMED_OUT,
    "terminated": Phase.CANCELLED,
    "internal failure": Phase.LOST,
}
"""The platform's words for a call in its list; every other one is some failure."""


class Calls:
    """The calls of one app."""

    def __init__(self, client: ModalClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def spawn(
        self, function: str, payload: JsonObject, *, run_id: str, gpu: str | None = None, timeout_s: int | None = None,
        memory_mb: int | None = None,
    ) -> CallRef:  # fmt: skip
        argument = _argument(payload, run_id)
        handle = await self._function(function, gpu, timeout_s, memory_mb)
        doing = f"start {function}"
        try:
            call = await self._client.ask(handle.spawn.aio(argument), doing)
        except RemoteError as error:
            # The request is on its way from here on: an answer that did not come says nothing of what was done.
            # A limit is also met by the second try of a request whose first answer was lost.
            error.may_have_happened = error.retryable
            raise
        return CallRef(call.object_id, function, run_id)

    async def _function(self, name: str, gpu: str | None, timeout_s: int | None, memory_mb: int | None) -> Any:
        """The function, looked up now: one that was found before may have been replaced by a new deployment."""
        modal = load_modal()
        handle: Any = modal.Function.from_name(
            self._client.app_name, name, environment_name=self._client.environment, client=await self._client.open()
        )
        memory = None if memory_mb is None else (min(memory_mb, REQUESTED_MB), memory_mb)
        options: dict[str, Any] = {"gpu": gpu, "timeout": timeout_s, "memory": memory}
        options = {key: value for key, value in options.items() if value is not None}
        if options:
            handle = handle.with_options(**options)
        await self._client.ask(handle.hydrate.aio(), f"look up {self._client.app_name}/{name}")
        return handle

    async def poll(self, ref: CallRef, *, wait_s: float = 0) -> CallState:
        call = await self._call(ref)
        # First without waiting: asked to wait for a result that has expired, the client asks without a pause instead.
        state = await self._ask(call, ref, 0)
        return await self._ask(call, ref, wait_s) if wait_s > 0 and not state.phase.is_terminal else state

    async def _ask(self, call: Any, ref: CallRef, wait_s: float) -> CallState:
        doing = f"poll {ref.id}"
        deadline_s = wait_s + self._client.deadlines.question
        try:
            result = await self._client.bounded(call.get.aio(timeout=wait_s), doing, deadline_s=deadline_s)
        except RemoteError:
            raise
        except Exception as error:
            return await self._state_of(call, ref, error)
        return self._succeeded(result)

    async def _call(self, ref: CallRef) -> Any:
        modal = load_modal()
        return modal.FunctionCall.from_id(ref.id, client=await self._client.open())

    async def _state_of(self, call: Any, ref: CallRef, error: Exception) -> CallState:
        phase = classify.phase_of(error)
        if phase is None:
            raise classify.error_of(error, f"poll {ref.id}") from error
        if phase is Phase.ACTIVE:
            return CallState(phase, self._clock.now())
        if "Invalid ID" in str(error) or not ref.id.startswith("fc-"):
            return CallState(Phase.MISSING, self._clock.now(), error=f"{shorten(visible(ref.id), 40)} is no call id")
        container = ""
        if phase is Phase.FAILED:
            status, container = await self._graph(call, ref)
            if status == "TERMINATED":
                phase = Phase.CANCELLED
            elif classify.is_foreign(error) and status not in {"FAILURE", "INIT_FAILURE"}:
                raise Unavailable(f"poll {ref.id}: {classify.message_of(error)}") from error
        said = classify.message_of(error) if str(error).strip() else ""
        return CallState(phase, self._clock.now(), error=said, container_id=container)

    async def _graph(self, call: Any, ref: CallRef) -> tuple[str, str]:
        """Status and container in the platform's record of the call; empty where it keeps none."""
        doing = f"ask how {ref.id} ended"
        try:
            nodes = await self._client.ask(call.get_call_graph.aio(), doing)
        except NotDeployed:
            return "", ""
        mine = next((node for node in nodes if node.function_call_id == ref.id), None)
        return (mine.status.name, mine.task_id) if mine is not None else ("", "")

    def _succeeded(self, result: Any) -> CallState:
        try:
            value = orjson.loads(orjson.dumps(result))
        except (TypeError, orjson.JSONDecodeError):
            value, problem = None, f"returned a {type(result).__name__}, which is not JSON"
        else:
            problem = ""
        return CallState(Phase.SUCCEEDED, self._clock.now(), result=value, error=problem)

    async def cancel(self, ref: CallRef, *, hard: bool = False) -> None:
        call = await self._call(ref)
        doing = f"{'kill' if hard else 'cancel'} {ref.id}"
        try:
            await self._client.bounded(call.cancel.aio(terminate_containers=hard), doing)
        except RemoteError:
            raise
        except Exception as error:
            if not classify.is_missing(error):
                raise classify.error_of(error, doing) from error

    async def settle(self, ref: CallRef, *, soft_s: float, hard_s: float) -> CallState:
        await self.cancel(ref)
        state = await self._watch(ref, soft_s)
        if state is None or not state.phase.is_terminal:
            await self.cancel(ref, hard=True)
            state = await self._watch(ref, hard_s)
        if state is None:
            raise Unavailable(f"{ref.id}: cancelled, and nobody answers how it stands; poll it again")
        return state

    async def _watch(self, ref: CallRef, seconds: float) -> CallState | None:
        """The last state that was seen until the call ended or `seconds` passed; None if there was no answer."""
        end = time.monotonic() + seconds
        state = None
        while state is None or not state.phase.is_terminal:
            left = end - time.monotonic()
            if left <= 0 and state is not None:
                break
            try:
                state = await self.poll(ref, wait_s=max(0.0, min(left, POLL_WAIT_S)))
            except (Unavailable, Throttled) as error:
                pause = (error.retry_after_s if isinstance(error, Throttled) else None) or 1.0
                if left <= pause:
                    break
                await asyncio.sleep(pause)
        return state

    async def recent_calls(self, function: str, *, since: datetime) -> list[CallSummary]:
        # By count and not by --since, which the first versions of 1.6 lack.
        rows = await self._client.command(
            "function", "calls", f"{self._client.app_name}/{function}", "--tail", str(MAX_RECENT), "--all-variants"
        )
        calls = [summary_of(row) for row in rows if isinstance(row, dict)]
        return [call for call in calls if call.enqueued_at is None or call.enqueued_at >= since]


def summary_of(row: dict[str, Any]) -> CallSummary:
    """One row of `modal function calls --json`."""
    status = visible(str(row.get("status") or "")).lower()
    seconds = row.get("execution_time_seconds")
    return CallSummary(
        id=visible(str(row.get("function_call_id") or "")),
        phase=STATUSES.get(status, Phase.FAILED),
        status=status,
        enqueued_at=moment_of(row.get("enqueued_at")),
        started_at=moment_of(row.get("started_at")),
        container_id=visible(str(row.get("container_id") or "")),
        execution_s=float(seconds) if isinstance(seconds, int | float) else None,
    )


def moment_of(value: object) -> datetime | None:
    """An ISO 8601 moment with an offset, or None for anything else, such as "Pending"."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo else None


def _argument(payload: JsonObject, run_id: str) -> dict[str, Any]:
    """The one argument of a remote function. Raises UsageError for what JSON cannot carry."""
    if payload.get("run_id", run_id) != run_id:
        raise UsageError(f"payload of {run_id}: it names another run_id, {payload['run_id']!r:.40}; leave it out")
    argument = {**payload, "run_id": run_id}
    try:
        loaded: dict[str, Any] = orjson.loads(orjson.dumps(argument))
    except (TypeError, orjson.JSONDecodeError) as error:
        raise UsageError(f"payload of {run_id}: not JSON ({error})") from None
    if loaded != argument:
        raise UsageError(f"payload of {run_id}: holds a value that JSON would change; use text, numbers and lists")
    return argument
