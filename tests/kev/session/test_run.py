"""Several rounds under one authorization: stopped before it is passed, never confirmed, waiting for nobody."""

import argparse
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import ROUND_DOWN, Decimal
from pathlib import Path
from typing import Any

import pytest
from fake_compute import Plan
from round_lab import RoundLab

from kev.control import set_control
from kev.errors import Refused, UsageError
from kev.rounds.engine import Engine
from kev.rounds.specs import LoadedSpec
from kev.rounds.trial_orders import MICRO
from kev.session import read_session, update_state
from kev.session.run import Outcome, Rounds, wanted_of
from kev.session.unattended import choose_session

BLEND = "r201-blend/2b-w50/interpolation.json"


def rounds_of(lab: RoundLab, *, chosen: str | None = "2b-full") -> Rounds:
    @asynccontextmanager
    async def engine_of(_: LoadedSpec) -> AsyncIterator[Engine]:
        yield lab.engine()

    def finish(loaded: LoadedSpec) -> bool:
        place = lab.runs / f"r{loaded.spec.round}-readout"
        place.mkdir(exist_ok=True)
        value = {"round": loaded.spec.round, "arms": {}, "candidates": {"2b": chosen}}
        (place / f"round{loaded.spec.round}.json").write_text(json.dumps(value))
        return True

    lab.compute.plan = lambda *_: Plan(seconds=600)
    lab.compute.volume[BLEND] = b"x"
    return Rounds(engine_of, finish, lab.said.append, stagger_s=1, interval_s=120)


def lines_of(lab: RoundLab) -> list[dict[str, Any]]:
    path = lab.runs / "autoresearch-sessions.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


async def run(lab: RoundLab, *, chosen: str | None = "2b-full") -> Outcome:
    return await rounds_of(lab, chosen=chosen).run([lab.loaded])


async def test_a_round_is_seen_through_recorded_and_its_confirmation_printed_and_not_made(round_lab: RoundLab) -> None:
    outcome = await run(round_lab)
    assert (outcome.done, outcome.blocked, outcome.stopped) == ([201], {}, None)
    (line,) = lines_of(round_lab)
    assert line == {
        "round": 201, "spec": "experiments/rounds/r201.json", "spend_before": 0, "session": "night",
        "budgets": line["budgets"], "candidates": {"2b": "2b-full"}, "at": line["at"],
    }  # fmt: skip
    assert line["budgets"] == sum(float(study.budget) for study in round_lab.loaded.spec.studies.values())
    stages = list(round_lab.loaded.spec.confirm)
    assert len(outcome.to_confirm) == 2 * len(stages)
    assert outcome.to_confirm[0] == (
        f"python -m kev.rounds launch-reads experiments/rounds/r201.json --stage {stages[0]} --arm 2b-full "
        "--session night"
    )
    assert round_lab.said[-len(outcome.to_confirm) :] == outcome.to_confirm
    assert not any("locked" in name or unit.order.stage for name, unit in round_lab.gate.ledger.read().by_id.items())
    assert not (round_lab.runs / "r201-verdict").exists()
    assert read_session(round_lab.state).candidates == {"2b": {"arm": "2b-full", "round": 201}}


async def test_the_same_command_again_launches_nothing_and_adds_no_line(round_lab: RoundLab) -> None:
    await run(round_lab)
    spawned = list(round_lab.compute.spawned)
    outcome = await run(round_lab)
    assert outcome.done == [201] and round_lab.compute.spawned == spawned and len(lines_of(round_lab)) == 1


async def test_the_trials_and_the_reads_of_a_round_together_must_stay_below_the_headroom(
    prepared_round: Path, tmp_path: Path
) -> None:
    whole = RoundLab.copy_of(prepared_round, tmp_path / "whole")
    wanted = wanted_of(whole.engine(), whole.loaded)
    trials = sum((order.attempt_usd * order.attempts for _, order in wanted if order.kind == "trial"), Decimal(0))
    bound = sum((order.attempt_usd * order.attempts for _, order in wanted), Decimal(0))
    assert trials < bound
    enough = bound / Decimal("0.9")
    # A tenth is kept back: the trials alone would be admitted, and the round as a whole is not.
    below = RoundLab.copy_of(prepared_round, tmp_path / "below", str(enough.quantize(MICRO, ROUND_DOWN)))
    outcome = await run(below)
    assert outcome.stopped is not None and "is not below the headroom" in outcome.stopped
    assert below.compute.spawned == [] and lines_of(below) == [] and outcome.done == []
    assert any(line.startswith("round 201: simulated bound $") for line in below.said)
    above = RoundLab.copy_of(prepared_round, tmp_path / "above", str(enough + Decimal("0.1")))
    assert (await run(above)).done == [201]


async def test_a_round_with_problems_stops_the_session_with_the_reason(round_lab: RoundLab) -> None:
    (round_lab.root / "evals/lamps-v1/manifest.json").unlink()
    outcome = await run(round_lab)
    assert outcome.stopped is not None and "lamps-v1" in outcome.stopped and round_lab.compute.spawned == []
    assert round_lab.read_events()[-1] == "stopped"


async def test_what_cannot_be_launched_for_half_an_hour_is_recorded_as_blocked_and_skipped(
    round_lab: RoundLab,
) -> None:
    round_lab.compute.deployed = False
    outcome = await run(round_lab)
    assert "is not deployed" in outcome.blocked[201] and outcome.stopped is None
    assert 1800 <= round_lab.clock.time <= 1900
    assert round_lab.read_events().count("blocked") == 1
    assert sum("is not deployed" in line for line in round_lab.said) == 1


async def test_a_round_of_which_only_a_part_could_be_launched_is_watched_to_its_read_out(round_lab: RoundLab) -> None:
    spawns = 0

    async def limit(name: str) -> str:
        nonlocal spawns
        spawns += name == "spawn"
        return "limit" if name == "spawn" and spawns > 2 else "ok"  # the first asks for the sources

    round_lab.compute.point = limit
    outcome = await run(round_lab)
    assert "spend limit" in outcome.blocked[201] and outcome.stopped is None
    assert outcome.done == [201]
    (line,) = lines_of(round_lab)
    assert line["round"] == 201 and line["spend_before"] == 0
    trials = [unit for unit in round_lab.gate.ledger.read().by_id.values() if unit.order.kind == "trial"]
    assert [(unit.outcome, len(unit.counted)) for unit in trials] == [("done", 1), ("blocked", 0)]
    assert spawns == 3, "what met the limit is not asked for again"
    assert sum("could not be launched whole" in each for each in round_lab.said) == 1
    assert round_lab.clock.time >= 1800


async def test_a_provider_that_comes_back_within_half_an_hour_is_waited_for(round_lab: RoundLab) -> None:
    async def away(_: str) -> str:
        return "unavailable" if round_lab.clock.time < 900 else "ok"

    round_lab.compute.point = away
    assert (await run(round_lab)).done == [201]


async def test_a_paused_session_launches_nothing_and_is_not_waited_for(round_lab: RoundLab) -> None:
    set_control(round_lab.state, "soft", who="Ada", at=0, reason="the lab moves")
    outcome = await run(round_lab)
    assert "paused by Ada" in outcome.blocked[201] and not any("trial/" in name for name in round_lab.compute.spawned)


async def test_a_round_without_a_candidate_prints_no_confirmation(round_lab: RoundLab) -> None:
    outcome = await run(round_lab, chosen=None)
    assert outcome.to_confirm == [] and lines_of(round_lab)[0]["candidates"] == {"2b": None}


def options(root: Path, **changes: Any) -> argparse.Namespace:
    return argparse.Namespace(**{"root": root, "session": None, "spend_start": None, "spend_cap": None,
                                 "dry_run": False, **changes})  # fmt: skip


def test_start_and_cap_on_the_command_line_must_agree_with_the_open_session(round_lab: RoundLab) -> None:
    root = round_lab.root
    assert choose_session(options(root)) == "night"
    assert choose_session(options(root, spend_start=500.0, spend_cap=200.0)) == "night"
    with pytest.raises(Refused, match=r"with \$200\.00 from \$500\.00, and the command line says \$300\.00"):
        choose_session(options(root, spend_start=500.0, spend_cap=300.0))
    with pytest.raises(UsageError, match="go together"):
        choose_session(options(root, spend_cap=300.0))
    update_state(round_lab.state, lambda old: old.model_copy(update={"closed_at": "2026-12-01T08:00:00Z"}))
    with pytest.raises(UsageError, match="amount of US dollars"):
        choose_session(options(root, spend_start=-1.0, spend_cap=300.0))
