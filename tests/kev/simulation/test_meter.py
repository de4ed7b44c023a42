"""What the gate makes of the provider's meter: readings, cycles, bills, and answers that are none."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from fake_compute import EPOCH, Plan
from lab import Lab, order

from kev.errors import Refused
from kev.session import read_session, update_state, with_reading

ONE = "trial/r41-4b/trial-0"


async def reserve(lab: Lab, usd: str = "10", name: str = "r41-4b") -> None:
    await lab.gate.reserve(name, [(f"trial/{name}/trial-0", order(name=name, usd=usd))])


async def test_a_new_billing_cycle_gives_nothing_back(lab: Lab) -> None:
    lab.compute.hourly = lambda *_: Decimal(60)
    lab.compute.plan = lambda *_: Plan(seconds=3600)
    await reserve(lab, "60")
    await lab.gate.start(ONE)
    await lab.gate.read_meter()
    lab.clock.time = 4000
    lab.compute.cycle_starts.append(3900.0)  # the trial is over, and the new meter shows 0
    await lab.gate.read_meter()
    spent = read_session(lab.state).spent
    assert spent is not None
    assert spent.resets == 1
    assert spent.usd >= 60


@pytest.mark.parametrize(
    "answer", [Decimal("NaN"), Decimal("Infinity"), Decimal(-1), Decimal("1e400"), None, "512.4", [512]]
)
async def test_an_answer_that_is_no_amount_means_that_nothing_is_launched(lab: Lab, answer: Any) -> None:
    await lab.gate.read_meter()
    before = lab.state.read_bytes()
    lab.clock.time = 60
    lab.compute.metered_override = answer
    with pytest.raises(Refused, match=r"spend is unknown.*the last reading is 60 s old"):
        await reserve(lab)
    assert lab.state.read_bytes() == before


async def test_an_answer_that_cannot_be_read_is_no_silence_and_the_last_reading_does_not_stand_in(lab: Lab) -> None:
    await lab.gate.read_meter()
    lab.clock.time = 60

    async def garble(name: str) -> str:
        return "unreadable" if name == "billing" else "ok"

    lab.compute.point = garble
    with pytest.raises(Refused, match=r"spend is unknown: billing: no amount; the last reading is 60 s old"):
        await reserve(lab)


async def test_a_meter_that_falls_to_zero_is_a_new_cycle_and_never_headroom(lab: Lab) -> None:
    lab.compute.before = Decimal("560")
    await lab.gate.read_meter()
    lab.clock.time = 60
    lab.compute.metered_override = Decimal(0)
    with pytest.raises(Refused, match="spent \\$60"):
        await reserve(lab, "30")


async def test_an_old_reading_is_not_used_and_a_fresh_one_lifts_the_refusal(lab: Lab) -> None:
    await lab.gate.read_meter()

    async def away(_: str) -> str:
        return "unavailable"

    lab.compute.point = away
    lab.clock.time = 900
    await reserve(lab)
    lab.clock.time = 901
    with pytest.raises(Refused, match=r"901 s old, and 900 s are allowed"):
        await reserve(lab, name="r42-4b")
    lab.compute.point = None
    await reserve(lab, name="r42-4b")


async def test_a_reading_that_grew_too_old_while_the_meter_was_asked_does_not_stand_in(lab: Lab) -> None:
    await lab.gate.read_meter()

    async def answer_nothing_for_a_minute(name: str) -> str:
        lab.clock.time += 60 if name == "billing" else 0
        return "unavailable" if name == "billing" else "ok"

    lab.compute.point = answer_nothing_for_a_minute
    lab.clock.time = 839
    await reserve(lab)
    lab.clock.time = 841
    with pytest.raises(Refused, match=r"901 s old, and 900 s are allowed"):
        await reserve(lab, name="r42-4b")


async def test_every_reading_is_on_record_with_its_utc_time_and_what_is_billed(lab: Lab) -> None:
    lab.compute.billed_factor = Decimal("0.5")
    await lab.gate.read_meter()
    lab.clock.time = 100
    meter = await lab.gate.read_meter()
    assert [reading.at - EPOCH for reading in read_session(lab.state).readings] == [
        timedelta(0),
        timedelta(seconds=100),
    ]
    assert meter.gap == "metered $500, billed $250.0, gap $-250.0"
    assert not meter.alarming


async def test_a_bill_far_above_the_meter_is_an_alarm(lab: Lab) -> None:
    lab.compute.billed_factor = Decimal("16.8")
    await lab.gate.read_meter()
    assert any(line.startswith("!!! billed is far above metered") for line in lab.said)
    assert '"severity": "critical"' in (lab.runs / "night-events.jsonl").read_text()


async def test_a_clock_that_was_set_back_does_not_reorder_the_readings(lab: Lab) -> None:
    await lab.gate.read_meter()
    lab.clock.skew = -3600
    lab.compute.metered_override = Decimal(510)
    await lab.gate.read_meter()
    assert [reading.metered for reading in read_session(lab.state).readings] == [500, 510]


async def test_simulated_and_real_money_are_never_taken_for_each_other(lab: Lab) -> None:
    update_state(lab.state, lambda state: state.model_copy(update={"simulated": False}))
    with pytest.raises(Refused, match="provider's money is simulated and the session's is real"):
        await reserve(lab)


async def test_a_future_reading_does_not_admit(lab: Lab) -> None:
    late = EPOCH + timedelta(days=1)
    update_state(lab.state, lambda state: with_reading(state, late, Decimal(500), "by hand"))

    async def away(_: str) -> str:
        return "unavailable"

    lab.compute.point = away
    with pytest.raises(Refused, match="spend is unknown"):
        await reserve(lab)
