"""A trial that was trained and never scored is scored once more, and its arm is read; nothing is scored beside it."""

from collections.abc import Callable
from typing import Any

import pytest
from fake_compute import Plan
from round_lab import RoundLab
from watched_night import DELTA, FULL, Night, no_trial_fails

from kev import files
from kev.compute.protocol import Phase

SCORES = "rescore/r201-delta/00-trial-0/0"


def cut_off(study: str, *, trained: bool, scores: Plan | None = None) -> Callable[[str, dict[str, Any]], Plan]:
    """Every attempt of a study runs into its timeout; the scoring afterwards ends as `scores` says."""

    def plan(function: str, payload: dict[str, Any]) -> Plan:
        if payload.get("study") == study and "index" in payload:
            if trained:
                payload["trained"] = True
            payload["ends_lease"] = True
            return Plan(seconds=90_000)
        return scores if function == "run_resume" and scores is not None else no_trial_fails(function, payload)

    return plan


async def test_one_that_timed_out_while_it_was_scored_is_scored_once_more_and_read(round_lab: RoundLab) -> None:
    night = Night(round_lab, cut_off("r201-delta", trained=True))
    await night.launch()
    assert await night.watch()
    assert night.spawned("rescore/") == [f"{SCORES}#1"]
    assert (night.unit(DELTA).outcome, night.unit(SCORES).outcome) == ("failed", "done")
    assert len(night.spawned("read/runs/r201-2b-delta")) == 3
    state = files.read_json(round_lab.runs / "r201-delta.watch.json")["calls"]["trial-0"]
    assert (state["status"], state["launched"]) == ("done", True)
    (call,) = [call for call in round_lab.compute.calls.values() if call.function == "run_resume"]
    assert (call.payload["suite"], call.payload["transfer"]) == ("evals/lamps-v1", "evals/far-v1")
    before = round_lab.ledger_lines()
    assert await night.watch()
    assert round_lab.ledger_lines() == before


async def test_one_whose_training_did_not_end_is_not_scored(round_lab: RoundLab) -> None:
    night = Night(round_lab, cut_off("r201-delta", trained=False))
    await night.launch()
    assert await night.watch()
    assert night.spawned("rescore/") == [] and night.spawned("read/runs/r201-2b-delta") == []


async def test_what_was_cut_off_is_left_to_a_person_where_that_is_asked_for(round_lab: RoundLab) -> None:
    night = Night(round_lab, cut_off("r201-delta", trained=True))
    await night.launch()
    assert await night.watch(continues=False)
    assert night.spawned("rescore/") == [] and night.unit(DELTA).outcome == "failed"


@pytest.mark.parametrize("end", [Phase.FAILED, Phase.LOST])
async def test_scores_that_fail_are_not_tried_again_and_the_arm_is_left(round_lab: RoundLab, end: Phase) -> None:
    night = Night(round_lab, cut_off("r201-delta", trained=True, scores=Plan(seconds=60, ending=end)))
    await night.launch()
    assert await night.watch()
    assert night.spawned("rescore/") == [f"{SCORES}#1"] and night.unit(SCORES).outcome == "failed"
    assert night.spawned("read/runs/r201-2b-delta") == [] and len(night.spawned("read/runs/r201-2b-full")) == 3


async def test_a_full_weight_trial_is_scored_once_all_its_attempts_are_used(round_lab: RoundLab) -> None:
    night = Night(round_lab, cut_off("r201-full", trained=True))
    await night.launch()
    assert await night.watch()
    assert len(night.spawned(FULL)) == 3
    assert night.spawned("rescore/") == ["rescore/r201-full/00-trial-0/0#1"]
    assert len(night.spawned("read/runs/r201-2b-full")) == 3


async def test_a_watcher_that_is_killed_at_any_await_has_it_scored_once(round_lab: RoundLab) -> None:
    night = Night(round_lab, cut_off("r201-delta", trained=True))
    await night.launch()
    await night.watch_though_killed(every=5, times=79)
    assert night.spawned("rescore/") == [f"{SCORES}#1"] and len(night.spawned("read/runs/r201-2b-delta")) == 3
