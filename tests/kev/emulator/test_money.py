"""Simulated money: rows by app and hour, the summary, the cap; and results that expire."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import modal
import pytest
from hypothesis import given
from hypothesis import strategies as st
from modal.exception import OutputExpiredError, RemoteError, ResourceExhaustedError

from kev import budget
from kev.emulator.entities import App, Task
from kev.emulator.journal import Journal
from kev.emulator.money import Meter
from kev.emulator.prices import hourly
from kev.emulator.store import Store
from kev.emulator.wire import pb

from .conftest import Begin, Night, Pipe
from .test_logs import MovableClock

TEN = datetime(2026, 3, 1, 10, tzinfo=UTC).timestamp()


def meter_with(*spans: tuple[float, float], now: float = TEN + 86_400) -> tuple[Meter, Store]:
    class Frozen(MovableClock):
        def now(self) -> datetime:
            return datetime.fromtimestamp(now, UTC)

    store = Store(Journal(Path("/nonexistent/journal")))
    store.apps["ap-1"] = App(id="ap-1", name="a", environment="main", state=3, created=0)
    for number, (start, end) in enumerate(spans):
        store.tasks[str(number)] = Task(
            id=str(number), app_id="ap-1", function_id="fu-1", enqueued=start, started=start, finished=end,
            hourly={"H100": Decimal("3.95"), "CPU": Decimal("0.05")},
        )  # fmt: skip
    return Meter(store, Frozen()), store


def test_a_container_costs_its_seconds_times_its_rate() -> None:
    meter, store = meter_with((TEN, TEN + 1800))

    assert meter.cost(store.tasks.values(), 0, float("inf")) == {"H100": Decimal("1.975"), "CPU": Decimal("0.025")}
    assert meter.total() == 2


def test_a_container_that_still_runs_costs_until_now() -> None:
    assert meter_with((TEN, 0), now=TEN + 3600)[0].total() == 4


def test_a_container_that_never_started_costs_nothing() -> None:
    assert meter_with((0, TEN))[0].total() == 0


@given(st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 20_000)), max_size=6))
def test_the_hours_add_up_to_the_whole(spans: list[tuple[int, int]]) -> None:
    meter, store = meter_with(*((TEN + start, TEN + start + length) for start, length in spans))
    hours = [meter.cost(store.tasks.values(), TEN + 3600 * n, TEN + 3600 * (n + 1)) for n in range(12)]

    assert abs(sum(sum(hour.values()) for hour in hours) - meter.total()) < Decimal("1e-20")


def test_the_rates_are_the_engines_own() -> None:
    definition = pb.Function()
    definition.resources.gpu_config.gpu_type = "H100"
    definition.resources.gpu_config.count = 2
    definition.resources.milli_cpu = 4000
    definition.resources.memory_mb, definition.resources.memory_mb_max = budget.TRIAL.memory

    assert sum(hourly(definition).values()) == budget.hourly_rate("H100:2")


async def test_the_report_has_a_row_per_app_and_hour_marked_as_simulated(begin: Begin) -> None:
    clock = MovableClock()
    night = await begin(clock=clock)
    await night.call("echo", 1)
    clock.offset = timedelta(hours=2)

    workspace = modal.Workspace.from_context(client=night.client)
    now = clock.now()
    start = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=5)
    rows = await workspace.billing.report.aio(start=start, end=now, resolution="h", tag_names=["*"])

    assert {row.object_id for row in rows} == {night.app_id} and {row.environment_name for row in rows} == {"main"}
    assert rows[0].tags == {"team": "small", "simulated": "true"}
    [task] = night.plane.store.tasks.values()
    summary = await workspace.billing.summary.aio()
    assert abs(sum(row.cost for row in rows) - night.plane.meter.total()) < Decimal("0.0001")
    assert summary.billed_cost == 0 and "simulated" in summary.adjustments
    assert len(rows) >= 2, "a container that is still warm two hours later has cost in each of them"
    assert task.is_live


async def test_the_rates_can_be_asked_for(night: Night) -> None:
    rates = await modal.Workspace.from_context(client=night.client).billing.rates.aio()

    assert rates["H100"] == budget.GPU_HOURLY["H100"] or Decimal(str(rates["H100"])) == budget.GPU_HOURLY["H100"]


async def test_at_the_spend_cap_new_calls_are_refused_and_running_ones_go_on(begin: Begin, tmp_path: Path) -> None:
    clock = MovableClock()
    night = await begin({"money": {"spend_cap_usd": "1.00"}}, clock=clock)
    pipe = Pipe(tmp_path / "pipe")
    call = await night.spawn("on_card", pipe.path)
    await night.printed("holding")
    clock.offset = timedelta(hours=1)

    with pytest.raises(ResourceExhaustedError, match="spend limit"):
        await night.spawn("echo", 1)
    pipe.release("finished")
    assert await call.get.aio(timeout=60) == "finished"


async def test_a_cap_that_stops_ends_containers_and_keeps_their_calls_waiting(begin: Begin, tmp_path: Path) -> None:
    clock = MovableClock()
    night = await begin({"money": {"spend_cap_usd": "1.00", "at_cap": "stop"}}, clock=clock)
    call = await night.spawn("on_card", Pipe(tmp_path / "pipe").path)
    await night.printed("holding")
    clock.offset = timedelta(hours=1)

    await night.printed("ended: workspace spend limit reached")
    with pytest.raises(TimeoutError):
        await call.get.aio(timeout=0)
    assert not any(task.started for task in night.plane.store.tasks.values() if task.is_live)
    await call.cancel.aio()
    with pytest.raises(RemoteError):
        await call.get.aio(timeout=60)


async def test_a_result_can_be_fetched_until_it_expires(begin: Begin) -> None:
    clock = MovableClock()
    night = await begin(clock=clock)
    call = await night.spawn("echo", 1)
    await call.get.aio(timeout=60)

    clock.offset = timedelta(days=6, hours=23)
    assert (await call.get.aio(timeout=0))["value"] == 1
    clock.offset = timedelta(days=7, hours=1)
    with pytest.raises(OutputExpiredError):
        await call.get.aio(timeout=0)
