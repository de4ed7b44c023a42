"""Of what is billed."""

from datetime import UTC, datetime, timedelta

from kev.compute.assumptions.asking import assumes, expect
from kev.compute.contract import Probe


@assumes("billing-report", "the billing report gives rows by app and hour, with exact costs")
async def _(probe: Probe) -> None:
    """The report of the last two hours; it may be empty, since billing is late."""
    now = datetime.now(UTC)
    rows = await probe.compute.billing(now - timedelta(hours=2), now)
    expect(all(row.cost >= 0 and row.app_id for row in rows), rows[:3])


@assumes("billing-summary", "the billing summary has a metered cost from zero up")
async def _(probe: Probe) -> None:
    """The summary of this cycle."""
    summary = await probe.compute.billing_summary()
    expect(summary.metered >= 0 and summary.start <= summary.end, summary)


@assumes("billing-rates", "the platform tells its prices")
async def _(probe: Probe) -> None:
    """The rates; at least one, and none below zero."""
    rates = await probe.compute.rates()
    expect(rates and min(rates.values()) >= 0, rates)
