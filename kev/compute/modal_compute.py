"""The one implementation of `Compute`: Modal, or whatever answers like it under MODAL_SERVER_URL."""

from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Self

from kev.clock import Clock, SystemClock
from kev.compute import deploy, fleet
from kev.compute.billing import Billing
from kev.compute.calls import Calls
from kev.compute.client import ModalClient, ModalSettings, load_modal
from kev.compute.errors import NotDeployed
from kev.compute.logs import Logs
from kev.compute.protocol import (
    AppState,
    CallRef,
    CallState,
    CallSummary,
    Container,
    CostRow,
    CostSummary,
    DeployEvent,
    Entry,
    Identity,
    JsonObject,
    LogLine,
    PullProgress,
    PullReport,
)
from kev.compute.pull import pull
from kev.compute.volumes import Volumes


class ModalCompute:
    """Work on Modal, for one app. Connects at first use; close it, or use it as an asynchronous context manager.

    async with ModalCompute(ModalSettings(app="kev-research")) as compute:
        state = await compute.poll(CallRef("fc-..."))
    """

    def __init__(self, settings: ModalSettings | None = None, *, clock: Clock | None = None) -> None:
        clock = clock or SystemClock()
        self._client = ModalClient(settings or ModalSettings())
        self._calls = Calls(self._client, clock)
        self._volumes = Volumes(self._client, clock)
        self._logs = Logs(self._client)
        self._billing = Billing(self._client, clock)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._client.close()

    async def ping(self) -> Identity:
        return await self._client.ping()

    async def app(self) -> AppState | None:
        modal = load_modal()
        client, name = self._client, self._client.app_name
        # Never create_if_missing: it would leave an empty app behind that looks deployed.
        lookup = modal.App.lookup.aio(name, environment_name=client.environment, client=await client.open())
        try:
            found = await client.ask(lookup, f"look up the app {name}")
            info = await client.ask(found.info.aio(), f"look up the app {name}")
        except NotDeployed:
            return None
        deployed_at = info.lifecycle.deployed_at
        return AppState(
            id=info.app_id,
            name=name,
            version=int(info.lifecycle.version),
            deployed_at=deployed_at.astimezone(UTC) if deployed_at else None,
            functions=tuple(sorted(info.functions)),
        )

    def deploy(self, ref: str, *, tag: str = "") -> AsyncGenerator[DeployEvent, None]:
        return deploy.deploy(self._client, ref, tag=tag)

    async def spawn(
        self, function: str, payload: JsonObject, *, run_id: str, gpu: str | None = None, timeout_s: int | None = None,
        memory_mb: int | None = None,
    ) -> CallRef:  # fmt: skip
        return await self._calls.spawn(
            function, payload, run_id=run_id, gpu=gpu, timeout_s=timeout_s, memory_mb=memory_mb
        )

    async def poll(self, ref: CallRef, *, wait_s: float = 0) -> CallState:
        return await self._calls.poll(ref, wait_s=wait_s)

    async def cancel(self, ref: CallRef, *, hard: bool = False) -> None:
        await self._calls.cancel(ref, hard=hard)

    async def settle(self, ref: CallRef, *, soft_s: float, hard_s: float) -> CallState:
        return await self._calls.settle(ref, soft_s=soft_s, hard_s=hard_s)

    async def recent_calls(self, function: str, *, since: datetime) -> list[CallSummary]:
        return await self._calls.recent_calls(function, since=since)

    async def listdir(self, volume: str, path: str, *, recursive: bool = False) -> list[Entry]:
        return await self._volumes.listdir(volume, path, recursive=recursive)

    async def read(self, volume: str, path: str, *, limit: int) -> bytes | None:
        return await self._volumes.read(volume, path, limit=limit)

    async def pull(
        self, volume: str, path: str, dest: Path, *, weights: bool = False,
        on_progress: Callable[[PullProgress], None] | None = None,
    ) -> PullReport:  # fmt: skip
        return await pull(self._volumes, volume, path, dest, weights=weights, on_progress=on_progress)

    def log_stream(self, *, idle_s: float) -> AsyncGenerator[LogLine, None]:
        return self._logs.stream(idle_s=idle_s)

    async def log_tail(self, ref: CallRef, n: int) -> list[LogLine]:
        return await self._logs.tail(ref, n)

    async def containers(self) -> list[Container]:
        return await fleet.containers(self._client)

    async def billing(self, start: datetime, end: datetime) -> list[CostRow]:
        return await self._billing.report(start, end)

    async def billing_summary(self) -> CostSummary:
        return await self._billing.summary()

    async def rates(self) -> dict[str, Decimal]:
        return await self._billing.rates()
