"""A blend that a round registers: made once what it mixes is there, read like any arm, tried once more, never twice."""

from collections.abc import Callable
from typing import Any

import pytest
from checkouts import changed, good_spec
from fake_compute import Plan
from round_lab import RoundLab
from watched_night import BLEND, DELTA, Night, no_trial_fails

from kev.compute.protocol import Phase
from kev.errors import Refused
from kev.records.ledger import LedgerEvent
from kev.rounds.blend_orders import registered_orders
from kev.rounds.trial_orders import Provenance

UNIT = "blend/r201-blend/2b"
READS = "read/runs/r201-2b-blend"


def night_of(lab: RoundLab, plan: Callable[[str, dict[str, Any]], Plan] = no_trial_fails) -> Night:
    """A night in which nobody has made the blend beforehand."""
    night = Night(lab, plan)
    del lab.compute.volume[BLEND]
    return night


def blend_ends(*plans: Plan) -> Callable[[str, dict[str, Any]], Plan]:
    """The blend's attempts end like this, one after the other."""
    left = list(plans)

    def plan(function: str, payload: dict[str, Any]) -> Plan:
        return left.pop(0) if function == "run_interpolate" and left else no_trial_fails(function, payload)

    return plan


async def test_it_is_made_once_both_trials_have_landed_and_then_its_arm_is_read(round_lab: RoundLab) -> None:
    night = night_of(round_lab)
    await night.launch()
    assert await night.watch()
    names = round_lab.compute.spawned
    assert night.spawned("blend/") == [f"{UNIT}#1"]
    call = next(call for call in round_lab.compute.calls.values() if call.run_id == f"{UNIT}#1")
    trials = [each for each in round_lab.compute.calls.values() if each.run_id.startswith("trial/")]
    assert call.spawned >= max(trial.stops for trial in trials)
    assert (call.payload["alphas"], call.payload["toward"]) == (["0.5"], "/runs/r201-delta/00-trial-0/checkpoint")
    assert min(names.index(name) for name in night.spawned(READS)) > names.index(f"{UNIT}#1")
    assert (night.unit(UNIT).outcome, len(night.spawned("read/"))) == ("done", 9)
    assert (round_lab.runs / "r201-blend" / "2b-w50" / "interpolation.json").exists()
    assert not (round_lab.runs / "r201-blend" / "2b-w50" / "checkpoint" / "model.safetensors").exists()


async def test_what_somebody_made_before_is_not_made_again(round_lab: RoundLab) -> None:
    night = Night(round_lab)
    await night.launch()
    assert await night.watch()
    assert night.spawned("blend/") == [] and len(night.spawned(READS)) == 3


@pytest.mark.parametrize(
    "bad",
    [
        Plan(seconds=60, ending=Phase.FAILED),
        Plan(seconds=99_999),
        Plan(seconds=60, result={"refused": "is an adapter"}),
        Plan(seconds=60, ending=Phase.LOST),
    ],
    ids=["failed", "timed out", "refused", "lost"],
)
async def test_a_blend_that_failed_is_tried_once_more_and_reported(round_lab: RoundLab, bad: Plan) -> None:
    night = night_of(round_lab, blend_ends(bad))
    await night.launch()
    assert await night.watch()
    assert night.spawned("blend/") == [f"{UNIT}#1", f"{UNIT}/retry1#1"]
    assert (night.unit(UNIT).outcome, night.unit(f"{UNIT}/retry1").outcome) == ("failed", "done")
    assert len(night.spawned(READS)) == 3
    assert any(f'"subject": "{UNIT}"' in line and '"warning"' in line
               for line in (round_lab.runs / "night-events.jsonl").read_text().splitlines())  # fmt: skip


async def test_one_that_fails_twice_is_left_and_the_round_is_read_out_without_its_arm(round_lab: RoundLab) -> None:
    night = night_of(round_lab, blend_ends(*[Plan(seconds=60, ending=Phase.FAILED)] * 5))
    await night.launch()
    assert await night.watch()
    assert night.spawned("blend/") == [f"{UNIT}#1", f"{UNIT}/retry1#1"]
    assert night.spawned(READS) == [] and len(night.spawned("read/")) == 6
    before = round_lab.ledger_lines()
    assert await night.watch()
    assert round_lab.ledger_lines() == before


async def test_a_retry_makes_only_the_shares_that_are_not_there(round_lab: RoundLab) -> None:
    spec = changed(changed(good_spec(), "round", to=201), "construction", "blend", "alphas", to="0.7,0.50")

    def plan(function: str, payload: dict[str, Any]) -> Plan:
        if function == "run_interpolate" and len(payload["alphas"]) == 2:
            round_lab.compute.volume["r201-blend/2b-w70/interpolation.json"] = b"{}"
            return Plan(seconds=60, ending=Phase.FAILED)
        return no_trial_fails(function, payload)

    night = night_of(round_lab, plan)
    await night.launch_changed(spec)
    assert await night.watch()
    alphas = [call.payload["alphas"] for call in round_lab.compute.calls.values() if "prefix" in call.payload]
    assert alphas == [["0.7", "0.50"], ["0.50"]]
    assert len(night.spawned(READS)) == 3


async def test_without_one_of_its_trials_it_is_never_made_and_nobody_waits_for_it(round_lab: RoundLab) -> None:
    def plan(function: str, payload: dict[str, Any]) -> Plan:
        return Plan(seconds=60, ending=Phase.FAILED) if payload.get("study") == "r201-delta" else no_trial_fails(
            function, payload)  # fmt: skip

    night = night_of(round_lab, plan)
    await night.launch()
    assert await night.watch()
    assert night.spawned("blend/") == [] and night.spawned(READS) == []
    assert sum(f"{UNIT}: is not made: {DELTA} is failed" in line for line in round_lab.said) == 1
    assert "given-up" in round_lab.read_events()


async def test_a_trial_that_takes_hours_does_not_count_as_a_refusal_of_the_blend(round_lab: RoundLab) -> None:
    night = night_of(round_lab, lambda _, payload: Plan(seconds=3500 if "index" in payload else 300))
    await night.launch()
    assert await night.watch()
    assert night.unit(UNIT).outcome == "done" and len(night.spawned(READS)) == 3


async def test_a_headroom_that_is_too_small_for_it_blocks_it_and_the_rest_goes_on(round_lab: RoundLab) -> None:
    night = night_of(round_lab)
    await night.launch()
    real = round_lab.new_gate

    def strict() -> Any:
        gate = real()
        reserve = gate.reserve

        async def refuse(what: str, wanted: Any) -> list[str]:
            if any(order.kind == "blend" for _, order in wanted):
                raise Refused(f"{what}: is not below the headroom")
            return await reserve(what, wanted)

        gate.reserve = refuse
        return gate

    round_lab.new_gate = strict  # type: ignore[method-assign]
    assert await night.watch()
    assert night.spawned("blend/") == [] and len(night.spawned("read/")) == 6


async def test_a_reply_that_was_lost_is_adopted_by_the_answer_that_names_the_blend(round_lab: RoundLab) -> None:
    night = night_of(round_lab)
    await night.launch()

    async def lose(name: str) -> str:
        return "lost" if name == "spawned" and round_lab.compute.spawned[-1].startswith("blend/") else "ok"

    round_lab.compute.point = lose
    assert await night.watch()
    assert night.spawned("blend/") == [f"{UNIT}#1"] and night.unit(UNIT).outcome == "done"
    assert any("its answer names the blend" in line for line in round_lab.said)


async def test_a_watcher_that_is_killed_at_any_await_makes_it_once(round_lab: RoundLab) -> None:
    night = night_of(round_lab)
    await night.launch()
    await night.watch_though_killed(every=5, times=79)
    assert len(night.spawned("blend/")) == 1 and len(set(night.spawned("read/"))) == 9


async def test_one_that_a_person_started_by_hand_is_followed_and_not_started_again(round_lab: RoundLab) -> None:
    night = night_of(round_lab)
    await night.launch()
    engine = round_lab.engine()
    ((unit_id, order),) = registered_orders(round_lab.loaded.spec, Provenance("sha", None, "night"))
    await engine.gate.reserve("by hand", [(unit_id, order.model_copy(update={"round": None}))])
    await engine.gate.start(unit_id)
    assert await night.watch()
    assert night.spawned("blend/") == [f"{UNIT}#1"] and len(night.spawned(READS)) == 3


async def test_another_blend_of_that_name_is_refused_and_its_arm_skipped(round_lab: RoundLab) -> None:
    night = night_of(round_lab)
    await night.launch()
    engine = round_lab.engine()
    ((unit_id, order),) = registered_orders(round_lab.loaded.spec, Provenance("sha", None, "night"))
    other = order.model_copy(update={"payload": {**order.payload, "sft": "/runs/x/checkpoint"}})
    with engine.ledger.writing() as book:
        at = engine.now()
        book.add(LedgerEvent(event="wanted", at=at, orders={unit_id: other}),
                 LedgerEvent(event="intent", at=at, unit=unit_id, nonce="n"),
                 LedgerEvent(event="ended", at=at, unit=unit_id, nonce="n", outcome="failed"),
                 LedgerEvent(event="settled", at=at, unit=unit_id, outcome="failed"))  # fmt: skip
    assert await night.watch()
    assert night.spawned("blend/") == [] and night.spawned(READS) == []
    assert any("the ledger has another of that name" in line for line in round_lab.said)


async def test_a_snapshot_is_read_once_it_is_whole_and_its_trial_is_waited_for(round_lab: RoundLab) -> None:
    path = "r201-full/00-trial-0/snapshots/step-0000010/checkpoint"
    spec = changed(changed(good_spec(), "round", to=201), "arms", "2b-blend", "checkpoint", to=f"/runs/{path}")
    night = night_of(round_lab, lambda _, payload: Plan(seconds=6000 if "index" in payload else 300))
    volume = round_lab.compute.volume
    await night.launch_changed(spec)
    volume[f"{path}/head.pt"] = b"x"
    await night.watch(passes=30)
    assert round_lab.clock.time > 3000 and night.spawned(READS) == []
    volume[f"{path}/snapshot.json"] = b"{}"
    assert await night.watch()
    assert len(night.spawned(READS)) == 3
