"""What was spent, as the provider meters it: by app and interval, late by minutes or more, and in exact decimals."""

from collections.abc import Awaitable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from kev.clock import Clock
from kev.compute.client import ModalClient, load_modal
from kev.compute.errors import Unavailable, Unreadable
from kev.compute.protocol import CostRow, CostSummary

RATES_AGE_S = 86_400.0
SIMULATED = "simulated"
"""The tag, and the adjustment, by which an emulator says that nobody is billed."""


class Billing:
    """The bills of one workspace."""

    def __init__(self, client: ModalClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._rates: tuple[float, dict[str, Decimal]] | None = None

    async def _billing(self) -> Any:
        modal = load_modal()
        return modal.Workspace.from_context(client=await self._client.open()).billing

    async def _ask(self, question: Awaitable[Any], doing: str, deadline_s: float | None = None) -> Any:
        """The answer. Raises Unreadable for an amount or a time in it that is none, else as `ModalClient.ask` does."""
        try:
            return await self._client.ask(question, doing, deadline_s=deadline_s)
        except Unavailable as error:
            # The client reads amounts and times while it answers, so that what it cannot read looks like no answer.
            # An OSError may be a ValueError as well, and is one of the network.
            if isinstance(error.__cause__, ArithmeticError | ValueError | TypeError) and not isinstance(
                error.__cause__, OSError
            ):
                raise Unreadable(f"{doing}: the answer holds something that is no amount and no time") from error
            raise

    async def report(self, start: datetime, end: datetime) -> list[CostRow]:
        simulated = await self._client.is_simulated()
        rows = await self._ask(
            (await self._billing()).report.aio(
                start=start.astimezone(UTC), end=end.astimezone(UTC), resolution="h", tag_names=["*"]
            ),
            "read the bill",
            deadline_s=self._client.deadlines.stream,
        )
        return [
            CostRow(
                app_id=row.object_id,
                description=row.description,
                environment=row.environment_name,
                start=row.interval_start,
                cost=row.cost,
                by_resource=dict(row.cost_by_resource),
                tags=dict(row.tags),
                simulated=simulated or SIMULATED in row.tags,
            )
            for row in rows
        ]

    async def summary(self) -> CostSummary:
        simulated = await self._client.is_simulated()
        found = await self._ask((await self._billing()).summary.aio(), "read the bill")
        return CostSummary(
            start=found.start,
            end=found.end,
            metered=found.metered_cost,
            billed=found.billed_cost,
            by_resource=dict(found.metered_cost_breakdown),
            adjustments=dict(found.adjustments),
            simulated=simulated or SIMULATED in found.adjustments,
        )

    async def rates(self) -> dict[str, Decimal]:
        now = self._clock.monotonic()
        if self._rates is None or now - self._rates[0] > RATES_AGE_S:
            found = await self._ask((await self._billing()).rates.aio(), "read the prices")
            # Iterating leaves out the names that the provider has retired; looking those up would warn.
            self._rates = (now, {name: found[name] for name in found})
        return dict(self._rates[1])
