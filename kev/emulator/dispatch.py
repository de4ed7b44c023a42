"""From a request on the wire to the coroutine that answers it, and back.

Each service is an object with coroutines named after procedures: `AppCreate` is answered by `app_create(request,
caller)`; an async generator answers a streaming procedure. What no service answers is UNIMPLEMENTED by name.
"""

import inspect
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kev.emulator.faults import Faults
from kev.emulator.journal import Journal
from kev.emulator.wire import GRPCError, Method, Status, Stream, methods

TASK_HEADER = "x-kev-task"
CONTAINER_CLIENT = "3"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: a container (by task id) or a client, and the key under which a client repeats one request."""

    task_id: str = ""
    idempotency_key: str = ""


@dataclass(frozen=True, slots=True)
class Credentials:
    token_id: str
    token_secret: str


class Dispatcher:
    """Authenticates, injects faults, calls the service, and holds each reply until what it says is on disk."""

    def __init__(
        self, services: list[object], credentials: Credentials, is_running: Callable[[str], bool], journal: Journal,
        faults: Faults,
    ) -> None:  # fmt: skip
        self._credentials = credentials
        self._is_running = is_running
        self._journal = journal
        self._faults = faults
        self.counts: Counter[str] = Counter()
        """How often each procedure was asked for: what a client costs."""
        self._methods = methods()
        self._handlers = {method.name: self._find(services, method) for method in self._methods}

    @staticmethod
    def _find(services: list[object], method: Method) -> Callable[..., Any] | None:
        found = [getattr(service, method.handler_name) for service in services if hasattr(service, method.handler_name)]
        if len(found) > 1:
            raise ValueError(f"{method.name} is answered by {len(found)} services")
        return found[0] if found else None

    def __mapping__(self) -> dict[str, Any]:
        return {method.path: method.handle_with(self._serve(method)) for method in self._methods}

    def _serve(self, method: Method) -> Callable[[Any], Any]:
        async def serve(stream: Stream[Any, Any]) -> None:
            request = await stream.recv_message()
            headers = {key: value for key, value in (stream.metadata or {}).items() if isinstance(value, str)}
            self.counts[method.name] += 1
            try:
                await self._answer(method, request, headers, stream)
            except GRPCError:
                raise
            except OSError as error:
                log.exception("%s", method.name)
                raise GRPCError(Status.INTERNAL, f"emulator: {method.name}: {error}") from error
            except Exception as error:
                # A defect must be loud on both sides: the client would otherwise see an empty INTERNAL.
                log.exception("%s", method.name)
                raise GRPCError(Status.INTERNAL, f"emulator defect in {method.name}: {error!r}") from error

        return serve

    async def _answer(self, method: Method, request: Any, headers: dict[str, str], stream: Stream[Any, Any]) -> None:
        caller = self._authenticate(headers)
        lose_reply = await self._faults.before(method.name, from_container=bool(caller.task_id))
        handler = self._handlers[method.name]
        if handler is None:
            raise GRPCError(Status.UNIMPLEMENTED, f"{method.name} is not emulated; docs/emulator.md lists what is")
        if inspect.isasyncgenfunction(handler):
            async for message in handler(request, caller):
                await self._faults.before_message(method.name)
                await stream.send_message(message)
            return
        reply = await handler(request, caller)
        await self._journal.sync()
        if lose_reply:
            raise GRPCError(Status.UNAVAILABLE, "the reply was lost after the request was accepted")
        await stream.send_message(method.empty_reply() if reply is None else reply)

    def _authenticate(self, headers: dict[str, str]) -> Caller:
        key = headers.get("x-idempotency-key", "")
        if headers.get("x-modal-client-type") == CONTAINER_CLIENT:
            # The id of a running container, which nobody can guess, is its token.
            if not self._is_running(task_id := headers.get(TASK_HEADER, "")):
                raise GRPCError(Status.PERMISSION_DENIED, f"no running container {task_id!r:.40}")
            return Caller(task_id, key)
        given = Credentials(headers.get("x-modal-token-id", ""), headers.get("x-modal-token-secret", ""))
        if given != self._credentials:
            raise GRPCError(
                Status.UNAUTHENTICATED, "Token ID or secret unknown here; use the environment that the emulator printed"
            )
        return Caller("", key)
