"""How often a trial or a read is tried: continued after a timeout, repeated once, and no more than it may."""

import itertools
from typing import Any

from fake_compute import Plan
from round_lab import RoundLab
from watched_night import DELTA, FULL, Night, no_trial_fails, times_out

from kev.compute.protocol import Phase


async def test_a_trial_that_left_nothing_on_the_volume_ends_only_itself(round_lab: RoundLab) -> None:
    def plan(function: str, payload: dict[str, Any]) -> Plan:
        # An answer of this shape is a success to the provider, and nothing of it was committed.
        quiet = payload.get("study") == "r201-delta"
        return Plan(seconds=60, result={"refused": "x"}) if quiet else no_trial_fails(function, payload)

    night = Night(round_lab, plan)
    await night.launch()
    assert await night.watch()
    assert night.unit(DELTA).outcome == "failed"
    assert night.unit(FULL).outcome == "done"


async def test_a_timeout_is_continued_at_once_where_the_lease_was_ended(round_lab: RoundLab) -> None:
    night = Night(round_lab, times_out(90_000, ends_lease=True))
    await night.launch()
    assert await night.watch()
    attempts = night.unit(FULL).counted
    assert [attempt.outcome for attempt in attempts] == ["timed_out", "timed_out", "succeeded"]
    assert all(later.at - earlier.ended_at < 60 for earlier, later in itertools.pairwise(attempts))


async def test_without_it_the_wait_for_the_lease_is_shown_with_its_end(round_lab: RoundLab) -> None:
    night = Night(round_lab, times_out(90_000))
    await night.launch()
    assert await night.watch()
    attempts = night.unit(FULL).counted
    assert len(attempts) == 3
    assert attempts[1].at - attempts[0].ended_at >= 840
    assert any("to be continued" in line and "waits until" in line for line in round_lab.said)
    evidence = [call.payload.get("evidence") for call in round_lab.compute.calls.values() if "study" in call.payload
                and call.payload["study"] == "r201-full"]  # fmt: skip
    assert [each["claims"] if each else None for each in evidence] == [None, 1, 2]


async def test_three_short_attempts_are_three_attempts_and_none_failed_for_being_short(round_lab: RoundLab) -> None:
    plan = times_out(90_000, ends_lease=True)
    night = Night(round_lab, plan)
    spec = round_lab.spec_path.read_text().replace('"timeout": 7200', '"timeout": 120')
    round_lab.spec_path.write_text(spec)
    await night.launch()
    assert await night.watch(interval_s=30)
    outcomes = [attempt.outcome for attempt in night.unit(FULL).counted]
    assert outcomes[:2] == ["timed_out", "timed_out"]
    assert len(outcomes) == 3


async def test_a_trial_without_attempts_left_is_failed_with_its_reason(round_lab: RoundLab) -> None:
    def plan(function: str, payload: dict[str, Any]) -> Plan:
        return Plan(seconds=90_000) if payload.get("study") == "r201-delta" else no_trial_fails(function, payload)

    night = Night(round_lab, plan)
    await night.launch()
    assert await night.watch()
    unit = night.unit(DELTA)
    assert (unit.outcome, len(unit.counted)) == ("failed", 1)
    assert "one attempt" in unit.text
    assert len(night.spawned("read/runs/r201-2b-delta")) == 0


async def test_a_failed_read_is_tried_once_more_under_a_new_name_and_reported(round_lab: RoundLab) -> None:
    def plan(function: str, payload: dict[str, Any]) -> Plan:
        if payload.get("name") == "r201-2b-blend-far":
            return Plan(seconds=60, result={"name": payload["name"], "failed": {"type": "OSError", "message": "gone"}})
        return no_trial_fails(function, payload)

    night = Night(round_lab, plan)
    await night.launch()
    assert await night.watch()
    assert night.unit("read/runs/r201-2b-blend-far").outcome == "failed"
    assert night.unit("read/runs/r201-2b-blend-far/retry1").outcome == "done"
    assert (round_lab.runs / "r201-2b-blend-far" / "rows.json").exists()
    assert len(night.spawned("read/runs/r201-2b-blend-far")) == 2
    assert any("OSError: gone" in line for line in round_lab.said)


async def test_a_read_that_fails_twice_is_left_and_the_read_out_is_written_all_the_same(round_lab: RoundLab) -> None:
    def plan(function: str, payload: dict[str, Any]) -> Plan:
        if str(payload.get("name")).startswith("r201-2b-blend-far"):
            return Plan(seconds=60, ending=Phase.FAILED)
        return no_trial_fails(function, payload)

    night = Night(round_lab, plan)
    await night.launch()
    assert await night.watch()
    assert len(night.spawned("read/runs/r201-2b-blend-far")) == 2
    assert night.finished == 1
