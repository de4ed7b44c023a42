"""Held back by a pause, a spend limit or a refusal: what runs is polled on, and only a person is waited for."""

from typing import Any

from checkouts import changed, good_spec
from fake_compute import Plan
from round_lab import RoundLab
from watched_night import DELTA, FULL, Night, times_out

from kev import files
from kev.compute.protocol import Phase
from kev.control import read_control, set_control
from kev.records.control import ENGINE
from kev.rounds.launch import launch_orders
from kev.rounds.launch_reads import missing_reads
from kev.rounds.resume import resume
from kev.rounds.watching.passes import Watch


async def test_the_spend_limit_stops_new_reads_with_one_line_and_trials_are_polled_on(round_lab: RoundLab) -> None:
    night = Night(round_lab)
    await night.launch()

    async def limit(name: str) -> str:
        return "limit" if name == "spawn" else "ok"

    round_lab.compute.point = limit
    await night.watch(passes=40)
    assert sum("spend limit" in line for line in round_lab.said if line.startswith("!!!")) == 1
    assert read_control(round_lab.state).mode == "soft"
    assert [night.unit(name).outcome for name in (FULL, DELTA)] == ["done", "done"]
    assert night.spawned("read/") == []
    # Nobody may be there to lift it: the arms count as blocked after half an hour, and the round is read out.
    assert night.finished == 1
    assert any("2b-full: not read: spawn: workspace has reached its spend limit" in line for line in round_lab.said)
    round_lab.compute.point = None
    set_control(round_lab.state, "running", who="Ada", at=round_lab.clock.now().timestamp(), reason="")
    assert await night.watch()
    # The reads that were reserved when the limit came are on record as blocked; `launch-reads` has them made.
    assert len(night.spawned("read/")) == 6
    engine = round_lab.engine()
    await launch_orders(engine, missing_reads(engine, round_lab.loaded, ["2b-blend"]), "by hand", 0)
    assert len(night.spawned("read/")) == 9


async def test_at_the_spend_limit_a_trial_is_not_tried_again_and_again(round_lab: RoundLab) -> None:
    night = Night(round_lab, times_out(90_000, ends_lease=True))
    await night.launch()
    asked = 0

    async def limit(name: str) -> str:
        nonlocal asked
        asked += name == "spawn"
        return "limit" if name == "spawn" else "ok"

    round_lab.compute.point = limit
    assert await night.watch()
    assert asked == 1
    assert (night.unit(FULL).outcome, len(night.unit(FULL).counted)) == ("blocked", 1)
    assert night.unit(DELTA).outcome == "done"
    assert round_lab.read_events().count("paused") == 1


async def test_a_persons_pause_is_waited_out_and_blocks_nothing(round_lab: RoundLab) -> None:
    night = Night(round_lab)
    await night.launch()
    set_control(round_lab.state, "soft", who="Ada", at=0, reason="lunch")
    await night.watch(passes=100)
    assert (night.finished, night.spawned("read/")) == (0, [])
    set_control(round_lab.state, "running", who="Ada", at=0, reason="")
    assert await night.watch()
    assert len(night.spawned("read/")) == 9


async def test_what_a_lifted_pause_held_back_has_half_an_hour_of_its_own(round_lab: RoundLab) -> None:
    night = Night(round_lab)
    await night.launch()
    set_control(round_lab.state, "soft", who=ENGINE, at=0, reason="a limit")
    state = Watch(round_lab.engine(), round_lab.loaded)
    round_lab.clock.time = 3600
    await state.run()
    await state.run()
    assert "2b-full" in state.blocked
    set_control(round_lab.state, "running", who="Ada", at=0, reason="")
    round_lab.clock.time += 1790
    await state.run()
    assert "2b-full" not in state.blocked
    assert len(night.spawned("read/runs/r201-2b-full")) == 3


async def test_attempts_that_break_at_once_again_and_again_stop_new_work(round_lab: RoundLab) -> None:
    def plan(function: str, payload: dict[str, Any]) -> Plan:
        return Plan(seconds=5, ending=Phase.LOST if "study" in payload else Phase.FAILED)

    night = Night(round_lab, plan)
    await night.launch()
    await night.watch(passes=200)
    assert len(night.unit(FULL).counted) <= 2
    assert read_control(round_lab.state).mode == "soft"
    assert "in a row broke" in read_control(round_lab.state).reason
    assert len(round_lab.compute.spawned) < 8


async def test_a_hard_pause_only_polls_and_says_when_it_is_safe_to_kill(round_lab: RoundLab) -> None:
    night = Night(round_lab)
    await night.launch()
    set_control(round_lab.state, "hard", who="Ada", at=0, reason="lunch")
    await night.watch(passes=30)
    assert not night.unit(FULL).settled
    assert night.unit(FULL).counted[0].outcome == "succeeded"
    assert files.read_json(round_lab.runs / "night-watcher.json")["state"] == "quiesced"
    assert not (round_lab.runs / "r201-full").exists()


async def test_what_is_refused_for_half_an_hour_is_skipped_and_nothing_waits_for_a_person(round_lab: RoundLab) -> None:
    night = Night(round_lab)
    spec = changed(good_spec(), "arms", "2b-blend", "checkpoint", to="/runs/elsewhere/2b/checkpoint")
    await night.launch_changed(changed(spec, "round", to=201))
    assert await night.watch()
    assert night.spawned("read/runs/r201-2b-blend") == []
    assert len(night.spawned("read/")) == 6


async def test_a_watch_that_leaves_continuing_to_people_says_so_and_follows_what_a_person_continued(
    round_lab: RoundLab,
) -> None:
    night = Night(round_lab, times_out(90_000, ends_lease=True))
    await night.launch()
    assert not await night.watch(passes=40, interval_s=3600, continues=False)
    unit = night.unit(FULL)
    assert (unit.current.outcome, len(unit.counted), unit.settled) == ("timed_out", 1, False)
    assert sum("waits to be continued by a person" in line for line in round_lab.said) == 1
    await resume(round_lab.engine(), FULL)
    assert len(night.unit(FULL).counted) == 2
    assert not await night.watch(passes=40, interval_s=3600, continues=False)
    assert len(night.unit(FULL).counted) == 2
    await resume(round_lab.engine(), FULL)
    assert await night.watch(continues=False)
    assert night.unit(FULL).outcome == "done"
