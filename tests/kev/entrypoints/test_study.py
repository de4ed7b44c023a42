"""Launching a study: everything that is refused, and a record from which an interrupted launch is completed."""

import json
from dataclasses import replace
from typing import Any

import pytest

from kev.compute.errors import SpendLimitReached, Unavailable
from kev.compute.protocol import CallState, Phase
from kev.entrypoints.admission import Request
from kev.entrypoints.study import launch_study
from kev.errors import KevError, LockHeld, Refused
from kev.files import locked
from kev.records.base import read_record
from kev.records.spawn import SpawnRecord

from .conftest import FULL, LORA, NOW, Desk

REQUEST = Request("evals/small-v1", "plan.json", "night", "H200", transfer="evals/small-transfer-v1")


async def launch(desk: Desk, *, detached: bool = True, **changes: Any) -> int:
    return await launch_study(desk.place, replace(REQUEST, **changes), detached=detached)


async def refusal(desk: Desk, **changes: Any) -> str:
    """The one line with which a launch is refused, having started and written nothing."""
    before = sorted(desk.root.rglob("*.spawn.json"))
    with pytest.raises(KevError) as caught:
        await launch(desk, **changes)
    assert desk.compute.spawned == [] and sorted(desk.root.rglob("*.spawn.json")) == before
    assert "\n" not in str(caught.value)
    return str(caught.value)


async def test_each_trial_is_spawned_once_with_its_own_nonce_and_recorded(desk: Desk) -> None:
    desk.write_plan(LORA, {**LORA, "seed": 2})
    assert await launch(desk) == 0
    record = read_record(desk.root / "runs/night.spawn.json", SpawnRecord)
    assert record.calls == {"trial-0": "fc-1", "trial-1": "fc-2"}
    assert (record.gpu, record.timeout, record.full_ft, record.modal_retries) == ("H200", 1800, False, 0)
    assert str(record.bound_usd) == "6.27"
    nonces = [record.attempts[label][0].nonce for label in record.calls]
    assert len(set(nonces)) == 2 and all(len(nonce) == 32 for nonce in nonces)
    sent = [(function, payload["nonce"], payload["config"].get("seed", 0), gpu, timeout)
            for function, payload, gpu, timeout in desk.compute.spawned]  # fmt: skip
    assert sent == [("run_trial", nonces[0], 0, "H200", 1800), ("run_trial", nonces[1], 2, "H200", 1800)]


async def test_an_attempt_is_on_record_before_its_spawn_and_its_call_right_after(desk: Desk) -> None:
    desk.write_plan(LORA, LORA)
    seen: list[Any] = []
    desk.compute.on_spawn = lambda payload: seen.append(
        {name: [(attempt.nonce == payload["nonce"], attempt.call) for attempt in unit.attempts]
         for name, unit in desk.units().items()}
    )  # fmt: skip
    await launch(desk)
    first, second = "trial/night/trial-0", "trial/night/trial-1"
    assert seen == [{first: [(True, None)], second: []}, {first: [(False, "fc-1")], second: [(True, None)]}]


@pytest.mark.parametrize(
    ("gpu", "config", "function"),
    [("H200", LORA, "run_trial"), ("H200", FULL, "run_full_trial"), ("H200:8", FULL, "run_sharded_trial")],
)
async def test_a_trial_runs_on_the_machine_that_its_bound_was_made_for(
    desk: Desk, gpu: str, config: dict[str, Any], function: str
) -> None:
    desk.write_plan(config)
    await launch(desk, gpu=gpu, budget=200.0, timeout=3600)
    assert desk.compute.spawned[0][0] == function


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "-x"}, "begins with a letter or digit"),
        ({"name": "a/b"}, "80 letters"),
        ({"name": "n" * 81}, "80 letters"),
        ({"budget": 6.26}, "above its budget"),
        ({"budget": 250.01}, "at most $250"),
        ({"budget": 0.0}, "above 0"),
        ({"budget": float("nan")}, "above 0"),
        ({"timeout": 59}, "from 60 to 28800"),
        ({"timeout": 28801, "budget": 250.0}, "from 60 to 28800"),
        ({"gpu": "A100"}, "no price is known"),
        ({"gpu": "H200:9"}, "no price is known"),
        ({"suite": "evals/absent"}, "no such suite"),
        ({"suite": "../evals/small-v1"}, "inside this checkout"),
        ({"suite": "evals/external/wanli-v1"}, "no such suite"),
        ({"suite": "evals/small-transfer-v1"}, "evaluation only"),
        ({"transfer": "evals/absent"}, "no such suite"),
        ({"plan": "absent.json"}, "no such file"),
        ({"existing": "runs/old"}, "--existing"),
        ({"existing": "/runs/../old"}, "--existing"),
    ],
)
async def test_what_may_not_be_launched_is_refused(desk: Desk, changes: dict[str, Any], words: str) -> None:
    desk.write_plan(LORA, LORA)
    assert words in await refusal(desk, **changes)


async def test_the_caps_of_a_full_weight_study_are_wider_and_are_caps(desk: Desk) -> None:
    desk.write_plan(FULL)
    assert "from 60 to 86400" in await refusal(desk, timeout=86_401, budget=900.0)
    assert "at most $1000" in await refusal(desk, timeout=86_400, budget=1000.5)
    assert await launch(desk, timeout=86_400, budget=1000.0) == 0


@pytest.mark.parametrize(
    ("configs", "words"),
    [
        ([], "0 trials"),
        ([LORA] * 9, "9 trials"),
        ([{**LORA, "learning_rate": 1}], "is no key"),
        ([{"base": "synthetic/linear"}], "base_revision"),
        ([{**LORA, "train_sources": "policies_held_out"}], "not declare trainable"),
        ([{**LORA, "data": "evals/absent.jsonl"}], "not in this checkout"),
    ],
)
async def test_an_invalid_plan_is_refused_with_its_first_fault(
    desk: Desk, configs: list[dict[str, Any]], words: str
) -> None:
    desk.write_plan(*configs)
    assert words in await refusal(desk)


async def test_a_partition_that_is_not_as_frozen_is_refused(desk: Desk) -> None:
    desk.write_plan(LORA)
    (desk.root / "evals/small-v1/calibration.jsonl").write_text("{}\n")
    assert "calibration.jsonl" in await refusal(desk)


async def test_a_used_name_is_refused_whatever_shows_that_it_was_used(desk: Desk) -> None:
    desk.write_plan(LORA)
    (desk.root / "runs" / "night").mkdir(parents=True)
    assert "never used again" in await refusal(desk)
    (desk.root / "runs" / "night").rmdir()
    (desk.root / "runs" / "night.spawn.json").write_text('{"name": "night", "calls": {"trial-0": "fc-9"}}')
    assert "the ledger did not start it; a name is never used again" in await refusal(desk)


async def test_a_launch_that_is_complete_is_never_repeated(desk: Desk) -> None:
    desk.write_plan(LORA)
    await launch(desk)
    with pytest.raises(Refused, match="launched already"):
        await launch(desk)
    assert len(desk.compute.spawned) == 1


async def test_an_app_that_is_not_deployed_or_has_other_sources_is_named_with_the_command(desk: Desk) -> None:
    desk.write_plan(LORA)
    desk.compute.hashes = {**desk.compute.hashes, "kev/__init__.py": "0" * 64}
    said = await refusal(desk)
    assert "other sources: kev/__init__.py" in said and "KEV_APP_NAME=kev-tests modal deploy modal_app.py" in said

    desk.compute.deployed = False
    assert "is not deployed" in await refusal(desk)


async def test_a_launcher_killed_at_a_spawn_leaves_it_pending_and_the_next_completes_the_rest(desk: Desk) -> None:
    desk.write_plan(LORA, LORA, LORA)

    def die(payload: dict[str, Any]) -> None:
        if payload["index"] == 1:
            raise KeyboardInterrupt

    desk.compute.on_spawn = die
    with pytest.raises(KeyboardInterrupt):
        await launch(desk)
    attempts = [[(attempt.nonce, attempt.call) for attempt in unit.attempts] for unit in desk.units().values()]
    assert [[call for _, call in each] for each in attempts] == [["fc-1"], [None], []]
    desk.compute.on_spawn = lambda _: None
    assert await launch(desk) == 0
    after = desk.spawn_record()
    assert after["calls"] == {"trial-0": "fc-1", "trial-1": None, "trial-2": "fc-2"}
    assert after["attempts"]["trial-1"][0]["nonce"] == attempts[1][0][0]
    assert any("its spawn was interrupted" in line for line in desk.lines)


async def test_only_the_same_plan_completes_an_interrupted_launch(desk: Desk) -> None:
    desk.write_plan(LORA, LORA)
    desk.compute.refuse = [None, SpendLimitReached("no money")]
    with pytest.raises(SpendLimitReached):
        await launch(desk)
    desk.write_plan(LORA, {**LORA, "seed": 9})
    with pytest.raises(Refused, match="the ledger has another launch of it"):
        await launch(desk)
    desk.write_plan(LORA, LORA)
    await launch(desk)
    assert desk.spawn_record()["calls"] == {"trial-0": "fc-1", "trial-1": "fc-2"}


async def test_a_refused_spawn_is_taken_back_and_its_name_stays_free(desk: Desk) -> None:
    desk.write_plan(LORA)
    desk.compute.refuse = [SpendLimitReached("no money")]
    with pytest.raises(SpendLimitReached):
        await launch(desk)
    assert not (desk.root / "runs/night.spawn.json").exists()
    assert not any(unit.counted or not unit.settled for unit in desk.units().values())
    desk.write_plan({**LORA, "seed": 5})
    assert await launch(desk) == 0


async def test_a_spawn_whose_answer_was_lost_stays_pending(desk: Desk) -> None:
    desk.write_plan(LORA)
    desk.compute.refuse = [Unavailable("no answer", may_have_happened=True)]
    with pytest.raises(Unavailable):
        await launch(desk)
    assert desk.spawn_record()["calls"] == {"trial-0": None}
    assert desk.spawn_record()["attempts"]["trial-0"][0]["call"] is None
    assert any("`resume --study night`" in line for line in desk.lines)


async def test_a_full_weight_study_too_short_for_a_resume_point_is_warned_of(desk: Desk) -> None:
    desk.write_plan(FULL)
    await launch(desk, timeout=120, budget=1.0)
    warned = [line for line in desk.lines if "120 s end before the first timed resume point" in line]
    assert len(warned) == 1 and "starts from zero" in warned[0]
    desk.lines.clear()
    desk.write_plan({**FULL, "save_every_steps": 10})
    await launch(desk, name="other", timeout=120, budget=1.0)
    [warned_of_steps] = [line for line in desk.lines if "resume point" in line]
    assert warned_of_steps.endswith("only save_every_steps leaves one")
    desk.lines.clear()
    desk.write_plan({**FULL, "save_every_steps": 10, "max_steps": 10})
    await launch(desk, name="never", timeout=120, budget=1.0)
    [warned_of_none] = [line for line in desk.lines if "resume point" in line]
    assert warned_of_none.endswith("starts from zero; set save_every_steps, to less than the steps of the run")
    desk.lines.clear()
    await launch(desk, name="long", timeout=7200, budget=60.0)
    assert [line for line in desk.lines if line.startswith("!!! ")] == [
        "!!! long: after a timeout a full-weight trial goes on only where someone resumes it"
    ]


async def test_two_launchers_of_a_study_never_run_at_once(desk: Desk) -> None:
    desk.write_plan(LORA)
    with locked(desk.root / "runs/.continue-night.lock"), pytest.raises(LockHeld):
        await launch(desk)
    assert desk.compute.spawned == []


@pytest.mark.parametrize(
    ("state", "code", "words"),
    [
        (CallState(Phase.SUCCEEDED, NOW, result={"label": "trial-0", "objective": -1.0}), 0, "done"),
        (
            CallState(Phase.SUCCEEDED, NOW, result={"label": "trial-0", "failed": "ArithmeticError: x"}),
            1,
            "failed: Arith",
        ),
        (CallState(Phase.SUCCEEDED, NOW, result={"label": "trial-0", "refused": "held"}), 1, "refused: held"),
        (CallState(Phase.TIMED_OUT, NOW), 1, "timed_out"),
    ],
)
async def test_attached_it_waits_pulls_and_tells_of_failures_by_its_code(
    desk: Desk, state: CallState, code: int, words: str
) -> None:
    desk.write_plan(LORA)
    desk.compute.states["fc-1"] = state
    desk.put("night/00-trial-0/provenance.json", {"config": LORA})
    assert await launch(desk, detached=False) == code
    assert any(words in line for line in desk.lines)
    assert desk.compute.pulled == ["/night"] and desk.spawn_record()["calls"] == {"trial-0": "fc-1"}


async def test_the_results_of_a_pulled_study_are_ranked_and_damage_is_a_line(desk: Desk) -> None:
    desk.write_plan(LORA)
    for index, objective in enumerate((-1.0, -0.5)):
        desk.put(f"night/0{index}-trial-{index}/result.json", {"objective": objective, "clean": {"acc": 0.5}})
    desk.compute.files["kev-runs:night/02-trial-2/result.json"] = b"{"
    desk.put("night/03-trial-3/failed.json", {"error": "ArithmeticError: x"})
    await launch(desk, detached=False)
    lines = [json.loads(line) for line in (desk.root / "runs/night/results.jsonl").read_text().splitlines()]
    assert [(each["id"], each["status"]) for each in lines] == [
        ("01-trial-1", "complete"), ("00-trial-0", "complete"), ("03-trial-3", "failed"), ("02-trial-2", "damaged"),
    ]  # fmt: skip


async def test_checkpoints_that_exist_are_scored_behind_the_plans_trials_and_within_the_bound(desk: Desk) -> None:
    desk.write_plan(LORA)
    assert await launch(desk, existing="/runs/old/00-trial-0/checkpoint,/runs/older/checkpoint") == 0
    payloads = [payload for _, payload, _, _ in desk.compute.spawned]
    assert [(each["index"], each.get("existing"), each["config"].get("existing")) for each in payloads] == [
        (0, None, None), (1, 0, "/runs/old/00-trial-0/checkpoint"), (2, 1, "/runs/older/checkpoint"),
    ]  # fmt: skip
    record = desk.spawn_record()
    assert set(record["calls"]) == {"trial-0", "existing-0", "existing-1"}
    one = await single_bound(desk)
    assert record["bound_usd"] == pytest.approx(3 * one, abs=0.02)


async def single_bound(desk: Desk) -> float:
    """What the plan alone is admitted for."""
    assert await launch(desk, name="alone") == 0
    return float(desk.spawn_record("alone")["bound_usd"])
