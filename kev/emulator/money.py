"""Simulated money: container seconds times the engine's rate table, by app and hour; and the spend cap."""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

from kev.budget import CPU_HOURLY, GPU_HOURLY, MEMORY_GIB_HOURLY
from kev.clock import Clock
from kev.emulator.dispatch import Caller
from kev.emulator.entities import App, Task
from kev.emulator.identity import environment_id
from kev.emulator.plan import MoneyPlan
from kev.emulator.store import Store
from kev.emulator.wire import pb, seconds_of, throttled, timestamp

HOUR = 3600
DAY = 86_400
PLACES = Decimal("0.00000001")

SIMULATED = "simulated"
"""The tag and the adjustment under which every figure says that nobody is billed."""


class Meter:
    """What containers have cost, from the times they ran."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def cost(self, tasks: Iterable[Task], since: float, until: float) -> dict[str, Decimal]:
        """US dollars by resource for what `tasks` ran between two moments."""
        now = self._clock.now().timestamp()
        costs: dict[str, Decimal] = defaultdict(Decimal)
        for task in tasks:
            seconds = min(task.finished or now, until) - max(task.started, since)
            if task.started and seconds > 0:
                for resource, rate in task.hourly.items():
                    costs[resource] += rate * Decimal(str(seconds)) / HOUR
        return costs

    def total(self) -> Decimal:
        """Everything since the beginning."""
        return sum(self.cost(self._store.tasks.values(), 0, float("inf")).values(), Decimal(0))


class SpendCap:
    """The workspace's spend limit: waiting does not lift it, so its refusal carries no hint to come back."""

    def __init__(self, plan: MoneyPlan, meter: Meter) -> None:
        self.plan = plan
        self._meter = meter

    @property
    def reached(self) -> bool:
        return self.plan.spend_cap_usd is not None and self._meter.total() >= self.plan.spend_cap_usd

    def check(self) -> None:
        """Raises RESOURCE_EXHAUSTED without a retry hint once the cap is reached."""
        if self.reached:
            raise throttled(f"Workspace has reached its spend limit of ${self.plan.spend_cap_usd} (simulated).", None)


class Billing:
    """Answers the billing procedures."""

    def __init__(self, store: Store, clock: Clock, meter: Meter) -> None:
        self._store = store
        self._clock = clock
        self._meter = meter

    async def workspace_billing_report(
        self, request: Any, _caller: Caller
    ) -> AsyncIterator[pb.WorkspaceBillingReportItem]:
        """Rows of apps that cost something, by hour or day. An interval that is not over holds what there is so far."""
        width = HOUR if request.resolution == "h" else DAY
        start = int(seconds_of(request.start_timestamp)) // width * width
        end = min(seconds_of(request.end_timestamp), self._clock.now().timestamp())
        apps = [app for app in self._store.apps.values() if _wanted(app, request)]
        for at in range(start, int(end) + 1, width):
            for app in apps:
                costs = self._meter.cost(self._store.tasks_of(app.id), at, min(at + width, end))
                if any(costs.values()):
                    yield _row(app, at, costs, list(request.tag_names))

    async def workspace_billing_summary(self, request: Any, _caller: Caller) -> pb.WorkspaceBillingSummaryResponse:
        now = self._clock.now().timestamp()
        costs = self._meter.cost(self._store.tasks.values(), seconds_of(request.start_timestamp), now)
        total = sum(costs.values(), Decimal(0))
        return pb.WorkspaceBillingSummaryResponse(
            start_timestamp=request.start_timestamp,
            end_timestamp=timestamp(now),
            metered_cost=_text(total),
            billed_cost="0",
            metered_cost_breakdown={resource: _text(cost) for resource, cost in costs.items()},
            adjustments={SIMULATED: _text(-total)},
        )

    async def workspace_billing_rates(self, _request: Any, _caller: Caller) -> pb.WorkspaceBillingRatesResponse:
        rates = {**GPU_HOURLY, "CPU": CPU_HOURLY, "Memory": MEMORY_GIB_HOURLY}
        return pb.WorkspaceBillingRatesResponse(
            rates={name: str(rate) for name, rate in rates.items()},
            formatted="\n".join(f"{name}: ${rate} per hour ({SIMULATED})" for name, rate in rates.items()),
        )


def _wanted(app: App, request: Any) -> bool:
    environments = set(request.environment_ids)
    return (not request.app_ids or app.id in request.app_ids) and (
        not environments or environment_id(app.environment) in environments
    )


def _row(app: App, at: int, costs: dict[str, Decimal], tag_names: list[str]) -> pb.WorkspaceBillingReportItem:
    tags = {**app.tags, SIMULATED: "true"}
    wanted = tags if "*" in tag_names else {name: tags[name] for name in tag_names if name in tags}
    return pb.WorkspaceBillingReportItem(
        object_id=app.id,
        description=app.name,
        environment_name=app.environment,
        interval=timestamp(at),
        cost=_text(sum(costs.values(), Decimal(0))),
        cost_by_resource={resource: _text(cost) for resource, cost in costs.items()},
        tags=wanted,
    )


def _text(amount: Decimal) -> str:
    return f"{amount.quantize(PLACES, ROUND_HALF_EVEN):f}"
