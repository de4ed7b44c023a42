"""Incidents that other launchers' users reported, each as the smallest night that would show it here.

The table of them is in docs/engine.md.
"""

import ast
import asyncio
import re
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fake_compute import Plan
from lab import Lab, order
from memory_disk import Killed
from round_lab import RoundLab

from kev import budget, files
from kev.compute.errors import Unavailable
from kev.compute.protocol import Phase
from kev.errors import Refused
from kev.gate import AlreadyStarted
from kev.records.ledger import LedgerEvent, Order
from kev.rounds.cancel import cancel
from kev.rounds.launch import launch
from kev.rounds.resume import resume
from kev.rounds.status import state_of
from kev.rounds.watching.detach import detach
from kev.rounds.watching.loop import watch, watcher_lock
from kev.session import read_session

REPOSITORY = Path(__file__).parents[3]
FULL, DELTA = "trial/r201-full/trial-0", "trial/r201-delta/trial-0"


async def launched(lab: RoundLab, seconds: float = 1800) -> None:
    lab.compute.plan = lambda *_: Plan(seconds=seconds)
    await launch(lab.engine(), lab.loaded, stagger_s=0)


async def test_a_guard_that_summed_another_store_than_the_meter_wrote(lab: Lab) -> None:
    """sourcelibrary-v2#3843: the guard saw $9 while $830 were spent elsewhere."""
    lab.compute.metered_override = Decimal(500) + Decimal(89)  # spent by something that is in no ledger here
    with pytest.raises(Refused, match="spent \\$89"):
        await lab.gate.reserve("r41", [("trial/r41/trial-0", order("r41", usd="1"))])


async def test_one_item_dispatched_several_times_because_its_status_was_read_too_early(lab: Lab) -> None:
    """sourcelibrary-v2#3826: dispatchers read the candidates before any of them had changed its status."""
    await lab.gate.reserve("r41", [("trial/r41/trial-0", order("r41", attempts=3))])
    gates = [lab.new_gate() for _ in range(5)]
    results = await asyncio.gather(*(gate.start("trial/r41/trial-0") for gate in gates), return_exceptions=True)
    assert sum(isinstance(result, AlreadyStarted) for result in results) == 4
    assert len(lab.compute.calls) == 1


def test_there_is_one_table_of_prices() -> None:
    """sourcelibrary-v2#4599: two tables of prices were three to five times apart."""
    prices = set(budget.GPU_HOURLY.values()) | {budget.CPU_HOURLY}
    found = set()
    for path in (path for package in ("kev", "kevtui") for path in (REPOSITORY / package).rglob("*.py")):
        literals = (node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant))
        if prices & {Decimal(str(value)) for value in literals if re.fullmatch(r"\d+\.\d+", str(value))}:
            found.add(path.relative_to(REPOSITORY).as_posix())
    assert found == {"kev/budget.py"}


async def test_a_timer_of_failures_that_was_not_reset_recovers_a_healthy_job(round_lab: RoundLab) -> None:
    """skypilot#10155: 24 recoveries. Failures come and go here all night, and nothing is started again."""
    await launched(round_lab, seconds=50_000)
    asked = 0

    async def flaky(name: str) -> str:
        nonlocal asked
        asked += name == "poll"
        return "unavailable" if name == "poll" and asked % 3 else "ok"

    round_lab.compute.point = flaky
    await watch(round_lab.engine(), round_lab.loaded, lambda _: True, passes=40, interval_s=60)
    assert [name for name in round_lab.compute.spawned if "trial/" in name] == [f"{FULL}#1", f"{DELTA}#1"]


async def test_two_recoveries_at_once_make_one_attempt(round_lab: RoundLab) -> None:
    """skypilot#8564: a recovery replayed by two controllers."""
    await launched(round_lab, seconds=90_000)
    round_lab.clock.time += 9000
    attempt = round_lab.engine().ledger.read().by_id[FULL].counted[0]
    round_lab.engine().gate.settle_attempt(FULL, attempt.nonce, "ended", outcome="timed_out")
    results = await asyncio.gather(
        resume(round_lab.engine(), FULL), resume(round_lab.engine(), FULL), return_exceptions=True
    )
    assert sum(isinstance(result, str) for result in results) == 1
    assert round_lab.compute.spawned.count(f"{FULL}#2") == 1


async def test_a_crash_between_creating_and_committing_buys_no_second_machine(round_lab: RoundLab) -> None:
    """dstack#707: the machine was there, its record was not."""

    async def die(name: str) -> str:
        if name == "spawned" and len(round_lab.compute.spawned) == 2:
            raise Killed
        return "ok"

    round_lab.compute.plan = lambda *_: Plan(seconds=1800)
    round_lab.compute.point = die
    with pytest.raises(Killed):
        await launch(round_lab.engine(), round_lab.loaded, stagger_s=0)
    round_lab.compute.point = None
    await launch(round_lab.engine(), round_lab.loaded, stagger_s=0)
    await watch(round_lab.engine(), round_lab.loaded, lambda _: True, passes=5)
    assert round_lab.compute.spawned.count(f"{FULL}#1") == 1
    assert round_lab.engine().ledger.read().by_id[FULL].counted[0].call == "fc-0001"


async def test_a_watcher_that_is_restarted_while_it_starts_something_fails_nothing(round_lab: RoundLab) -> None:
    """skypilot#7707: a controller that came back in the middle of a submission called the job failed."""

    async def die(name: str) -> str:
        if name == "spawned" and round_lab.compute.spawned[-1] == f"{FULL}#2":
            raise Killed
        return "ok"

    def plan(function: str, payload: dict[str, Any]) -> Plan:
        payload["ends_lease"] = True
        return Plan(seconds=99_000 if payload.get("attempt") == 1 else 1800)

    round_lab.compute.plan = plan
    await launch(round_lab.engine(), round_lab.loaded, stagger_s=0)
    round_lab.compute.point = die
    with pytest.raises(Killed):
        await watch(round_lab.engine(), round_lab.loaded, lambda _: True)
    round_lab.compute.point = None
    assert state_of(round_lab.engine().ledger.read().by_id[FULL]) == "pending"
    await watch(round_lab.engine(), round_lab.loaded, lambda _: True)
    assert round_lab.compute.spawned.count(f"{FULL}#2") == 1
    assert round_lab.engine().ledger.read().by_id[FULL].outcome == "done"


async def test_what_was_told_to_stop_and_did_not_keeps_counting(round_lab: RoundLab) -> None:
    """dstack#1551: marked terminated, still billing."""
    await launched(round_lab, seconds=50_000)
    engine = round_lab.engine()
    call = engine.ledger.read().by_id[FULL].counted[0].call or ""
    round_lab.compute.calls[call].stop_delay = 3000
    await cancel(engine, FULL, "")
    await watch(engine, round_lab.loaded, lambda _: True, passes=5, interval_s=60)
    unit = engine.ledger.read().by_id[FULL]
    assert state_of(unit) == "stopping"
    assert unit.rest() > 0
    await watch(engine, round_lab.loaded, lambda _: True, passes=60, interval_s=60)
    assert engine.ledger.read().by_id[FULL].outcome == "cancelled"


async def test_cancelled_while_nobody_knew_its_call_it_is_ended_when_it_is_found(round_lab: RoundLab) -> None:
    """dstack#2068: cancelling while provisioning left a busy machine."""

    async def lose(name: str) -> str:
        return "lost" if name == "spawned" and len(round_lab.compute.spawned) == 2 else "ok"

    round_lab.compute.point = lose
    await launched(round_lab, seconds=50_000)
    round_lab.compute.point = None
    engine = round_lab.engine()
    assert await cancel(engine, FULL, "") == "stopping"
    await watch(engine, round_lab.loaded, lambda _: True, passes=4, interval_s=60)
    assert engine.ledger.read().by_id[FULL].outcome == "cancelled"
    assert round_lab.compute.calls["fc-0001"].cancelled_at is not None


async def test_cancelled_before_it_was_started_it_never_starts(lab: Lab) -> None:
    await lab.gate.reserve("r41", [("trial/r41/trial-0", order("r41"))])
    with lab.gate.ledger.writing() as book:
        book.add(LedgerEvent(event="cancel", at=0, unit="trial/r41/trial-0", who="Ada"))
    with pytest.raises(AlreadyStarted, match="cancelled by Ada"):
        await lab.gate.start("trial/r41/trial-0")


async def test_nothing_is_started_without_a_hard_end(lab: Lab) -> None:
    """Open-Athena/marin-dna#564: 400 idle hours, since nothing limited them."""
    with pytest.raises(ValueError, match="timeout"):
        Order.model_validate(order().to_json() | {"timeout": None})
    with pytest.raises(ValueError, match="timeout"):
        order("r41", timeout=0)
    await lab.gate.reserve("r41", [("trial/r41/trial-0", order("r41", timeout=120))])
    await lab.gate.start("trial/r41/trial-0")
    assert [call.timeout for call in lab.compute.calls.values()] == [120]


async def test_a_call_delivered_twice_is_one_attempt_and_both_are_charged(round_lab: RoundLab) -> None:
    """runpod-python#402: long requests ran twice and were billed twice."""

    async def twice(name: str) -> str:
        return "duplicate" if name == "spawn" and len(round_lab.compute.spawned) == 1 else "ok"

    round_lab.compute.point = twice
    await launched(round_lab)
    round_lab.compute.point = None
    engine = round_lab.engine()
    await watch(engine, round_lab.loaded, lambda _: True, passes=25)
    assert len(engine.ledger.read().by_id[FULL].counted) == 1
    spent = read_session(round_lab.state).spent
    assert spent is not None
    both = sum(call.cost(round_lab.clock.time) for call in round_lab.compute.calls.values()) + 1e-6
    assert spent.usd <= both
    assert sum(call.duplicate for call in round_lab.compute.calls.values()) == 1


async def test_scheduled_is_not_ready_and_pending_is_neither(round_lab: RoundLab) -> None:
    """allenai/open-instruct#1912: a start fault was read as a running job."""
    unit_id = "trial/r41/trial-0"
    gate = round_lab.engine().gate
    await gate.reserve("r41", [(unit_id, order("r41"))])
    assert state_of(gate.ledger.read().by_id[unit_id]) == "wanted"

    async def lose(name: str) -> str:
        return "lost" if name == "spawned" else "ok"

    round_lab.compute.point = lose
    with pytest.raises(Exception, match="lost"):
        await gate.start(unit_id)
    assert state_of(gate.ledger.read().by_id[unit_id]) == "pending"


async def test_a_call_that_failed_is_charged(round_lab: RoundLab) -> None:
    """sourcelibrary-v2#3843: refused and failed calls were logged at $0."""
    round_lab.compute.plan = lambda *_: Plan(seconds=1800, ending=Phase.FAILED)
    await launch(round_lab.engine(), round_lab.loaded, stagger_s=0)
    await watch(round_lab.engine(), round_lab.loaded, lambda _: True, passes=25)
    units = round_lab.engine().ledger.read()
    assert units.by_id[FULL].outcome == "failed"
    metered_at = round_lab.clock.now().timestamp()
    assert units.by_id[FULL].unseen(metered_at) > 0
    spent = read_session(round_lab.state).spent
    assert spent is not None
    assert spent.usd > 0


async def test_billed_far_above_metered_is_shown_with_its_gap_and_alarms(lab: Lab) -> None:
    """sourcelibrary-v2#4602: a month metered at $499.74 was billed at $8,389.32."""
    lab.compute.billed_factor = Decimal("16.8")
    await lab.gate.reserve("r41", [("trial/r41/trial-0", order("r41", usd="1"))])
    alarms = [line for line in lab.said if line.startswith("!!!")]
    assert len(alarms) == 1
    assert "metered $500" in alarms[0]
    assert "billed $8400" in alarms[0]


async def test_a_stop_that_the_provider_refuses_is_asked_for_again(round_lab: RoundLab) -> None:
    """skypilot#1496: errors of terminate were swallowed."""
    await launched(round_lab, seconds=50_000)
    engine, asked = round_lab.engine(), 0

    async def refuse(name: str) -> str:
        nonlocal asked
        asked += name == "cancel"
        return "unavailable" if name == "cancel" and asked < 4 else "ok"

    round_lab.compute.point = refuse
    with pytest.raises(Unavailable):
        await cancel(engine, FULL, "")
    assert state_of(engine.ledger.read().by_id[FULL]) == "stopping"
    await watch(engine, round_lab.loaded, lambda _: True, passes=6, interval_s=60)
    assert asked == 4
    assert engine.ledger.read().by_id[FULL].outcome == "cancelled"


async def test_what_runs_counts_at_its_bound_and_not_at_the_time_measured(lab: Lab) -> None:
    """ai-dynamo/dynamo PR #13557: a budget that counted measured time only."""
    unit_id = "trial/r41/trial-0"
    await lab.gate.reserve("r41", [(unit_id, order("r41", usd="60"))])
    await lab.gate.start(unit_id)
    lab.clock.time += 60
    with pytest.raises(Refused, match="committed \\$60"):
        await lab.gate.reserve("r42", [("trial/r42/trial-0", order("r42", usd="40"))])


def test_a_watcher_that_cannot_start_says_why_and_leaves_nothing_running(
    round_lab: RoundLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    monkeypatch.setattr(sys, "executable", sys.executable)
    log = round_lab.runs / "r201.watch.log"
    with files.locked(watcher_lock(round_lab.state)), pytest.raises(Refused, match="held by process"):
        detach([str(round_lab.spec_path)], log)
    round_lab.state.unlink()
    with pytest.raises(Refused, match="no session"):
        detach([str(round_lab.spec_path)], log)
    assert log.read_text().count("held by process") == 1  # logs are added to, never cut


def test_every_incident_in_the_documentation_has_the_test_that_is_named_for_it() -> None:
    table = (REPOSITORY / "docs" / "engine.md").read_text().partition("| incident | test |")[2].partition("\n\n")[0]
    rows = [line for line in table.splitlines() if "`test_" in line]
    assert len(rows) == len(table.strip().splitlines()) - 1  # all but the rule below the heading
    for row in rows:
        named = re.findall(r"`(\w+\.py)`", row)
        text = Path(__file__).with_name(named[0] if named else "test_incidents.py").read_text()
        tests = re.findall(r"`(test_\w+)`", row)
        assert tests and all(re.search(rf"def {test}\(", text) for test in tests), row
