"""Launching reads: refusals before money is spent, a record of each call, and an exit code that tells of failures."""

import json
from dataclasses import replace
from typing import Any

import pytest

from kev.compute.errors import SpendLimitReached, Unavailable
from kev.compute.protocol import CallState, Phase
from kev.entrypoints.benchmarks import run_benchmarks
from kev.entrypoints.locked_test import LockedRequest, run_locked
from kev.errors import KevError, Refused
from kev.suite import open_suite

from .conftest import NOW, Desk

RUN = "/runs/night/00-trial-0/checkpoint"
JOB = f"{RUN}@evals/small-transfer-v1@b1"
REPORT = {"objective": -1.0, "clean": {"acc": 0.75, "brier": 0.25}, "tasks": {},
          "coverage": {"requested_records": 4, "evaluated_records": 4}}  # fmt: skip
LOCKED = LockedRequest(
    "night/00-trial-0", "final-ungated", "evals/small-v1", "evals/small-transfer-v1", "H200",
    owner_allows="final-ungated,second-ungated,final",
)  # fmt: skip


async def benchmarks(desk: Desk, jobs: str = JOB, gpu: str = "H200", timeout: int = 0) -> int:
    return await run_benchmarks(desk.place, jobs, gpu, timeout)


def read_record(desk: Desk, name: str = "b1") -> Any:
    return json.loads((desk.root / "runs" / f"{name}.read.json").read_text())


async def test_every_job_has_a_container_a_record_and_a_place_at_home(desk: Desk) -> None:
    desk.put("bench/b1/report.json", REPORT)
    desk.put("bench/b2/report.json", REPORT)
    assert await benchmarks(desk, f"{JOB},org/kev@abc123@evals/small-v1@b2@--split calibration") == 0
    assert [(f, o["run"], o["flags"], t) for f, o, _, t in desk.compute.spawned] == [
        ("run_bench", RUN, "", 1800), ("run_bench", "org/kev@abc123", "--split calibration", 1800),
    ]  # fmt: skip
    assert [read_record(desk, name)["call"] for name in ("b1", "b2")] == ["fc-1", "fc-2"]
    assert "b1: acc 0.7500 brier 0.2500" in desk.lines
    assert (desk.root / "runs/b2/report.json").exists()


async def test_the_call_of_a_job_is_on_record_before_the_next_is_spawned(desk: Desk) -> None:
    seen = []
    desk.compute.on_spawn = lambda _: seen.append(
        {name: [attempt.call for attempt in unit.attempts] for name, unit in desk.units().items()}
    )
    await benchmarks(desk, f"{JOB},{JOB.replace('@b1', '@b2')}")
    assert seen == [{"read/runs/b1": [None], "read/runs/b2": []}, {"read/runs/b1": ["fc-1"], "read/runs/b2": [None]}]
    assert all(unit.settled for unit in desk.units().values())


async def test_a_failed_job_is_told_and_gives_exit_code_1_and_the_others_come_home(desk: Desk) -> None:
    desk.put("bench/b2/report.json", REPORT)
    failed = {"name": "b1", "failed": {"type": "NotFound", "message": "no such checkpoint"}}
    desk.compute.states["fc-1"] = CallState(Phase.SUCCEEDED, NOW, result=failed)
    assert await benchmarks(desk, f"{JOB},{JOB.replace('@b1', '@b2')}") == 1
    assert "b1: FAILED NotFound: no such checkpoint" in desk.lines
    assert "b2: acc 0.7500 brier 0.2500" in desk.lines


async def test_a_read_that_left_no_report_is_no_success(desk: Desk) -> None:
    assert await benchmarks(desk) == 1
    assert "b1: FAILED left nothing on the volume" in desk.lines


async def test_a_read_whose_launcher_died_is_waited_for_and_not_made_again(desk: Desk) -> None:
    desk.compute.states["fc-1"] = CallState(Phase.SUCCEEDED, NOW, result={})
    await benchmarks(desk)
    desk.put("bench/b1/report.json", REPORT)
    assert await benchmarks(desk) == 0
    assert len(desk.compute.spawned) == 1


async def test_a_name_belongs_to_one_read_for_good(desk: Desk) -> None:
    await benchmarks(desk)
    with pytest.raises(Refused, match="another read of that name"):
        await benchmarks(desk, JOB.replace("small-transfer-v1", "small-v1"))
    (desk.root / "runs" / "b1").mkdir()
    with pytest.raises(Refused, match="never replaces another"):
        await benchmarks(desk)


async def test_a_read_whose_spawn_was_interrupted_is_not_started_twice(desk: Desk) -> None:
    desk.compute.refuse = [Unavailable("no answer", may_have_happened=True)]
    with pytest.raises(Unavailable):
        await benchmarks(desk)
    with pytest.raises(Refused, match="interrupted"):
        await benchmarks(desk)
    assert desk.compute.spawned == []


async def test_a_refused_spawn_leaves_the_name_free(desk: Desk) -> None:
    desk.compute.refuse = [SpendLimitReached("no money")]
    with pytest.raises(SpendLimitReached):
        await benchmarks(desk)
    desk.put("bench/b1/report.json", REPORT)
    assert await benchmarks(desk) == 0


@pytest.mark.parametrize(
    ("jobs", "words"),
    [
        ("x", "write run@suite@name"),
        (f"{RUN}@evals/absent@b1", "no suite evals/absent"),
        (f"{RUN}@evals/absent.jsonl@b1", "no file evals/absent.jsonl"),
        (f"{RUN}@evals/small-transfer-v1@b1@--split calibration", "no calibration.jsonl"),
        (f"{RUN}@evals/small-v1@b1@--split test", "--allow-test"),
        (f"{RUN}@evals/small-v1@b1@--device cpu", "a read knows"),
        (f"{RUN}@/etc@b1", "inside this checkout"),
        (f"{JOB},{JOB}", "named twice"),
    ],
)
async def test_what_a_container_would_find_out_for_money_is_refused_before(desk: Desk, jobs: str, words: str) -> None:
    with pytest.raises(KevError) as caught:
        await benchmarks(desk, jobs)
    assert words in str(caught.value) and desk.compute.spawned == []
    assert list(desk.root.rglob("*.read.json")) == []


async def test_a_test_split_that_was_read_under_another_name_is_not_read_again(desk: Desk) -> None:
    suite = open_suite(desk.root / "evals/small-v1")
    (desk.root / "runs/earlier").mkdir(parents=True)
    earlier = {"run": RUN, "suite_sha256": suite.sha256, "split": "test"}
    (desk.root / "runs/earlier/report.json").write_text(json.dumps(earlier))
    with pytest.raises(Refused, match="runs/earlier"):
        await benchmarks(desk, f"{RUN}@evals/small-v1@b1@--allow-test")
    await benchmarks(desk, f"{RUN}@evals/small-v1@b1")


SUMMARY = {"trial": "night/00-trial-0", "suites": {
    "decision": {"suite": "evals/small-v1", "suite_sha256": "d" * 64, "clean": {"acc": 0.5, "brier": 0.5}},
    "transfer": {"suite": "evals/small-transfer-v1", "suite_sha256": "e" * 64, "clean": {"acc": 0.25, "brier": 0.75}},
}}  # fmt: skip


async def locked(desk: Desk, **changes: Any) -> int:
    return await run_locked(desk.place, replace(LOCKED, **changes))


async def test_a_locked_read_comes_home_and_tells_both_suites(desk: Desk) -> None:
    desk.put("locked/final-ungated/summary.json", SUMMARY)
    assert await locked(desk) == 0
    assert desk.compute.spawned[0][0] == "run_locked_test"
    assert "final-ungated decision: acc 0.5000 brier 0.5000" in desk.lines
    assert "final-ungated transfer: acc 0.2500 brier 0.7500" in desk.lines
    with pytest.raises(Refused, match="a locked test is read once"):
        await locked(desk)
    assert len(desk.compute.spawned) == 1


async def test_a_checkpoint_that_was_read_under_another_name_is_refused(desk: Desk) -> None:
    place = desk.root / "runs/locked/first-ungated"
    place.mkdir(parents=True)
    (place / "summary.json").write_text(json.dumps(SUMMARY))
    with pytest.raises(Refused, match="runs/locked/first-ungated"):
        await locked(desk, name="second-ungated")
    assert await locked(desk, name="second-ungated", trial="night/01-trial-1") == 1


async def test_a_test_that_a_benchmark_has_read_is_read(desk: Desk) -> None:
    suite = open_suite(desk.root / "evals/small-v1")
    (desk.root / "runs/earlier").mkdir(parents=True)
    earlier = {"run": RUN, "suite_sha256": suite.sha256, "split": "test"}
    (desk.root / "runs/earlier/report.json").write_text(json.dumps(earlier))
    with pytest.raises(Refused, match="a test is read once"):
        await locked(desk)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"memory_mb": 32_767}, "--memory-mb 32767"),
        ({"memory_mb": 196_609}, "--memory-mb 196609"),
        ({"gpu": "A100"}, "no price is known"),
        ({"decision": "evals/v4/decision-v4"}, "no such suite"),
        ({"decision": "", "transfer": ""}, "needs --decision or --transfer"),
        ({"name": "../x"}, "a name is"),
    ],
)
async def test_a_locked_read_that_may_not_be_made_is_refused(desk: Desk, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(KevError) as caught:
        await locked(desk, **changes)
    assert words in str(caught.value) and desk.compute.spawned == []


async def test_a_trial_at_home_whose_gates_failed_is_refused_under_a_gated_name(desk: Desk) -> None:
    place = desk.root / "runs/night/00-trial-0"
    place.mkdir(parents=True)
    (place / "result.json").write_text(json.dumps(REPORT | {"gates": {"passed": False, "checks": {"x": False}}}))
    with pytest.raises(Refused, match="must end in -ungated"):
        await locked(desk, name="final")


async def test_a_locked_read_that_failed_may_be_tried_again_and_one_that_runs_is_waited_for(desk: Desk) -> None:
    desk.compute.states["fc-1"] = CallState(Phase.SUCCEEDED, NOW, result={"refused": "other sources"})
    assert await locked(desk) == 1
    desk.put("locked/final-ungated/summary.json", {**SUMMARY, "suites": {"decision": SUMMARY["suites"]["decision"]}})
    assert await locked(desk) == 0
    assert await locked(desk) == 0
    assert len(desk.compute.spawned) == 2
