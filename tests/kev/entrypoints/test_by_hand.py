"""What a person starts by hand passes the gate of the open session, or the same gate without a sum."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from kev.compute.errors import SpendLimitReached, Throttled
from kev.compute.protocol import CallRef, CallState, CostSummary, Phase
from kev.entrypoints.admission import Request
from kev.entrypoints.benchmarks import run_benchmarks
from kev.entrypoints.by_hand import HandGate, open_gate
from kev.entrypoints.pull import pull_study
from kev.entrypoints.study import launch_study
from kev.errors import DamagedFile, KevError, Refused, UsageError
from kev.records.session import SessionState
from kev.session import create_state, update_state

from .conftest import LORA, NOW, Desk

REQUEST = Request("evals/small-v1", "plan.json", "dusk", "H200", transfer="evals/small-transfer-v1")
JOB = "/runs/dusk/00-trial-0/checkpoint@evals/small-transfer-v1@b1"


def open_session(desk: Desk, usd: str, name: str = "night") -> Path:
    async def billing_summary() -> CostSummary:
        return CostSummary(NOW, NOW, Decimal(500), Decimal(500), {}, {}, True)

    desk.compute.billing_summary = billing_summary  # type: ignore[attr-defined]
    values = {"session": name, "simulated": True, "authorization_usd": Decimal(usd), "baseline_usd": Decimal(500)}
    path = desk.root / "runs" / f"{name}-state.json"
    create_state(path, SessionState.model_validate(values))
    return path


async def launch(desk: Desk, **changes: Any) -> int:
    return await launch_study(desk.place, replace(REQUEST, **changes), detached=True)


async def test_the_open_session_pays_and_refuses_what_would_pass_it(desk: Desk) -> None:
    desk.write_plan(LORA)
    open_session(desk, "3.4")
    with pytest.raises(Refused, match=r"headroom .*authorization \$3\.4"):
        await launch(desk)
    assert desk.compute.spawned == []
    desk.place.runs.joinpath("night-state.json").unlink()
    open_session(desk, "4")
    assert await launch(desk) == 0
    assert desk.units()["trial/dusk/trial-0"].order.session == "night"


async def test_a_read_by_hand_is_paid_by_the_session_as_well(desk: Desk) -> None:
    open_session(desk, "3.4")
    with pytest.raises(Refused, match=r"headroom"):
        await run_benchmarks(desk.place, JOB, "H200", 0)
    assert desk.compute.spawned == []


async def test_without_an_open_session_its_own_budget_bounds_a_study_and_the_ledger_has_it(desk: Desk) -> None:
    state = open_session(desk, "1")
    update_state(state, lambda old: old.model_copy(update={"closed_at": "2027-03-01T22:00:00Z"}))
    desk.write_plan(LORA)
    assert isinstance(open_gate(desk.place), HandGate)
    with pytest.raises(Refused, match="above its budget"):
        await launch(desk, budget=1.0)
    assert await launch(desk) == 0
    assert sum("no session is open, so no sum is kept" in line for line in desk.lines) == 1
    unit = desk.units()["trial/dusk/trial-0"]
    assert unit.order.session is None and unit.live is not None and unit.live.call == "fc-1"


async def test_of_several_open_sessions_one_must_be_named(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    open_session(desk, "100")
    open_session(desk, "100", "day")
    desk.write_plan(LORA)
    with pytest.raises(UsageError, match="several sessions are open"):
        await launch(desk)
    monkeypatch.setenv("KEV_SESSION", "day")
    assert await launch(desk) == 0
    assert desk.units()["trial/dusk/trial-0"].order.session == "day"


@pytest.mark.parametrize("name", ["ledger.jsonl", "other.spawn.json", "other.read.json"])
async def test_a_record_that_cannot_be_read_stops_a_launch_by_hand_too(desk: Desk, name: str) -> None:
    desk.write_plan(LORA)
    desk.place.runs.mkdir()
    (desk.place.runs / name).write_bytes(b"")
    with pytest.raises(DamagedFile, match="empty"):
        await launch(desk)
    assert desk.compute.spawned == [] and (desk.place.runs / name).read_bytes() == b""


async def test_two_launches_by_hand_at_once_start_each_trial_once(desk: Desk) -> None:
    desk.write_plan(LORA, LORA)
    results = await asyncio.gather(launch(desk), launch(desk), return_exceptions=True)
    assert len(desk.compute.spawned) == 2
    assert sorted(isinstance(result, KevError) for result in results) == [False, True]


async def test_a_pull_settles_what_it_brought_home_so_that_it_counts_no_more(desk: Desk) -> None:
    desk.write_plan(LORA, LORA)
    await launch(desk)
    desk.put("dusk/00-trial-0/result.json", {"objective": -1.0, "clean": {"acc": 0.5}})
    desk.compute.states["fc-2"] = CallState(Phase.ACTIVE, datetime.now(UTC))
    await pull_study(desk.place, "dusk", weights=False)
    first, second = desk.units().values()
    assert first.outcome == "done" and first.rest() == 0
    assert not second.settled and second.rest() > 0
    desk.compute.states["fc-2"] = CallState(Phase.TIMED_OUT, datetime.now(UTC))
    await pull_study(desk.place, "dusk", weights=False)
    assert desk.units()["trial/dusk/trial-1"].outcome == "failed"


async def test_a_throttle_is_waited_out_as_told_and_a_spend_limit_is_one_line(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write_plan(LORA)
    poll, answers = desk.compute.poll, [Throttled("too many requests", retry_after_s=5)] * 3

    async def throttled(ref: CallRef, *, wait_s: float = 0) -> CallState:
        if answers:
            raise answers.pop()
        return await poll(ref, wait_s=wait_s)

    monkeypatch.setattr(desk.compute, "poll", throttled)
    desk.compute.refuse = [SpendLimitReached("workspace has reached its spend limit")]
    with pytest.raises(SpendLimitReached):
        await launch(desk)
    assert sum("asked too often, going on in 5 s" in line for line in desk.lines) == 1
    assert not any("spend limit" in line for line in desk.lines), "the error says it"
    # Nothing was started, so the name is free; the same command goes on once the limit is lifted.
    assert await launch(desk) == 0
