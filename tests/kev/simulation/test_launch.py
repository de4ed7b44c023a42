"""Launching a round: what is registered and missing is started once, and everything else is refused in a line."""

import json
import shutil

import pytest
from checkouts import changed, good_spec
from fake_compute import Plan
from round_lab import RoundLab

from kev.errors import DamagedFile, Refused
from kev.gate import AlreadyStarted
from kev.records.base import read_record
from kev.records.spawn import SpawnRecord
from kev.rounds.__main__ import build_parser
from kev.rounds.cancel import cancel, cancel_orphan
from kev.rounds.launch import launch, launch_orders
from kev.rounds.launch_reads import missing_reads, readable_arms
from kev.rounds.read_orders import arm_reads, retry_of
from kev.rounds.resume import resume
from kev.rounds.status import damaged_records, state_of
from kev.rounds.trial_orders import trial_orders
from kev.rounds.watching.loop import watch
from kev.worker.orders import BenchmarkOrder, LockedOrder, TrialOrder, parse_order

FULL, DELTA = "trial/r201-full/trial-0", "trial/r201-delta/trial-0"


async def test_every_study_is_started_once_and_staggered(round_lab: RoundLab) -> None:
    round_lab.compute.plan = lambda *_: Plan(seconds=5000)
    done = await launch(round_lab.engine(), round_lab.loaded)
    assert list(done.calls) == [FULL, DELTA]
    assert round_lab.clock.time >= 60
    again = await launch(round_lab.engine(), round_lab.loaded)
    assert again.already == [FULL, DELTA]
    assert [name for name in round_lab.compute.spawned if name.startswith("trial/")] == [f"{FULL}#1", f"{DELTA}#1"]
    record = read_record(round_lab.runs / "r201-full.spawn.json", SpawnRecord)
    assert (record.full_ft, record.attempts_allowed(), record.timeout) == (True, 3, 7200)


async def test_a_launch_that_died_half_way_is_completed_by_the_next(round_lab: RoundLab) -> None:
    async def die(name: str) -> str:
        if name == "spawn" and len(round_lab.compute.spawned) == 2:  # the sources, and one trial
            raise KeyboardInterrupt
        return "ok"

    round_lab.compute.point = die
    with pytest.raises(KeyboardInterrupt):
        await launch(round_lab.engine(), round_lab.loaded)
    round_lab.compute.point = None
    done = await launch(round_lab.engine(), round_lab.loaded)
    # The second has an intent without a call: it may have been spawned, and only the watch may find out.
    assert done.calls == {}
    assert round_lab.engine().ledger.read().by_id[DELTA].live is not None


async def test_other_sources_are_refused_before_anything_is_spawned(round_lab: RoundLab) -> None:
    round_lab.compute.hashes |= {"kev/gate.py": "other"}
    with pytest.raises(Refused, match=r"deployed from other sources: kev/gate\.py; run: KEV_APP_NAME=lamps-r201"):
        await launch(round_lab.engine(), round_lab.loaded)
    assert [name for name in round_lab.compute.spawned if name.startswith("trial/")] == []
    round_lab.compute.deployed = False
    with pytest.raises(Refused, match="is not deployed"):
        await launch(round_lab.engine(), round_lab.loaded)


async def test_a_round_that_is_not_registered_is_refused(round_lab: RoundLab) -> None:
    shutil.rmtree(round_lab.root / ".git")
    with pytest.raises(Refused, match="not registered"):
        await launch(round_lab.engine(), round_lab.loaded)


@pytest.mark.parametrize(("key", "value", "words"), [("gpu", "H20O", "no price is known"), ("timeout", 0, "timeout"),
                                                     ("gpu", "", "no price is known")])  # fmt: skip
async def test_a_spec_with_a_problem_is_refused_with_it(
    round_lab: RoundLab, key: str, value: object, words: str
) -> None:
    spec = json.loads(round_lab.spec_path.read_text())
    round_lab.spec_path.write_text(json.dumps(changed(spec, "studies", "r201-full", key, to=value)))
    with pytest.raises(Refused, match=words):
        await launch(round_lab.engine(), round_lab.loaded)
    assert round_lab.compute.calls == {}


async def test_a_recorded_round_is_refused(round_lab: RoundLab) -> None:
    round_lab.spec_path.write_text(json.dumps(good_spec() | {"archive": "old"}))
    with pytest.raises(Refused, match="recorded round"):
        await launch(round_lab.engine(), round_lab.loaded)


async def test_a_name_that_was_ever_used_is_refused(round_lab: RoundLab) -> None:
    (round_lab.runs / "r201-delta").mkdir()
    with pytest.raises(Refused, match=r"runs/r201-delta exists"):
        await launch(round_lab.engine(), round_lab.loaded)
    (round_lab.runs / "r201-delta").rmdir()
    round_lab.compute.volume["r201-full/00-trial-0/train.log"] = b"x"
    with pytest.raises(Refused, match="volume kev-runs has a directory of that name"):
        await launch(round_lab.engine(), round_lab.loaded)
    round_lab.compute.volume.clear()
    (round_lab.runs / "r201-full.spawn.json").write_bytes(b"")
    with pytest.raises(DamagedFile, match="empty"):
        await launch(round_lab.engine(), round_lab.loaded)
    assert (round_lab.runs / "r201-full.spawn.json").read_bytes() == b""


@pytest.mark.parametrize(
    "content", [b"", b" \n", b"{}", b'{"name": "r201-full", "ca'], ids=["empty", "blank", "{}", "torn"]
)
async def test_a_study_whose_record_cannot_be_believed_counts_nowhere_as_never_launched(
    round_lab: RoundLab, content: bytes
) -> None:
    engine, record = round_lab.engine(), round_lab.runs / "r201-full.spawn.json"
    (round_lab.runs / "r201-full").mkdir()  # which would refuse the launch as well, and say nothing of the copy
    record.write_bytes(content)
    (round_lab.runs / ".r201-full.spawn.json.x2.tmp").write_text('{"name": "r201-full", "calls": {"trial-0": "fc-7"}}')
    with pytest.raises(DamagedFile, match="a complete copy is in"):
        await launch(engine, round_lab.loaded)
    assert round_lab.compute.spawned == []
    with pytest.raises(DamagedFile, match=r"r201-full\.spawn\.json"):
        await watch(engine, round_lab.loaded, lambda _: True, passes=1)
    with pytest.raises(DamagedFile, match=r"r201-full\.spawn\.json"):
        await resume(engine, "trial/r201-full/trial-0")
    (line,) = damaged_records(round_lab.runs, round_lab.loaded.spec.studies)
    assert "r201-full.spawn.json" in line
    assert record.read_bytes() == content


async def test_a_study_that_only_a_record_knows_is_neither_launched_nor_watched(round_lab: RoundLab) -> None:
    (round_lab.runs / "r201-full.spawn.json").write_text('{"name": "r201-full", "calls": {"trial-0": "fc-7"}}')
    with pytest.raises(Refused, match="the ledger did not start it; a name is never used again"):
        await launch(round_lab.engine(), round_lab.loaded)
    with pytest.raises(Refused, match="what the ledger did not start is not watched"):
        await watch(round_lab.engine(), round_lab.loaded, lambda _: True, passes=1)


async def test_a_study_that_was_launched_is_never_launched_as_something_else(round_lab: RoundLab) -> None:
    round_lab.compute.plan = lambda *_: Plan(seconds=5000)
    await launch(round_lab.engine(), round_lab.loaded)
    plan = round_lab.root / "experiments" / "round201" / "delta.json"
    plan.write_text(plan.read_text().replace('"replay": 100', '"replay": 200'))
    with pytest.raises(Refused, match="was launched as something else"):
        await launch(round_lab.engine(), round_lab.loaded)


async def test_the_whole_round_is_refused_if_not_all_of_it_fits(round_lab: RoundLab) -> None:
    state = json.loads(round_lab.state.read_text()) | {"authorization_usd": 60}
    round_lab.state.write_text(json.dumps(state))
    with pytest.raises(Refused, match=r"bound \$61.* is not below the headroom \$53\.99"):
        await launch(round_lab.engine(), round_lab.loaded)
    assert [name for name in round_lab.compute.spawned if name.startswith("trial/")] == []


def test_an_arm_has_the_reads_of_its_rule_pool_and_transfer(round_lab: RoundLab) -> None:
    engine = round_lab.engine()
    spec = round_lab.loaded.spec
    names = {
        arm: [order.name for _, order in arm_reads(spec, round_lab.root, arm, engine.provenance)] for arm in spec.arms
    }
    assert names["2b-full"] == ["r201-2b-full-far", "r201-2b-full-held", "r201-2b-full-street"]
    assert names["2b-delta"] == names["2b-full"] or names["2b-delta"] == [
        "r201-2b-delta-far", "r201-2b-delta-held", "r201-2b-delta-street"]  # fmt: skip
    order = dict(arm_reads(spec, round_lab.root, "2b-blend", engine.provenance))["read/runs/r201-2b-blend-held"]
    assert order.payload["run"] == "/runs/r201-blend/2b-w50/checkpoint"
    assert order.payload["flags"] == "--split calibration"
    assert order.timeout == 1800


def test_what_is_sent_is_what_a_container_takes(round_lab: RoundLab) -> None:
    spec, root, provenance = round_lab.loaded.spec, round_lab.root, round_lab.engine().provenance
    shapes = {"trial": TrialOrder, "read": BenchmarkOrder, "locked": LockedOrder}
    wanted = trial_orders(spec, root, provenance)
    for stage in (None, "tests", "locked"):
        wanted += arm_reads(spec, root, "2b-full", provenance, stage=stage)
    assert {order.kind for _, order in wanted} == set(shapes)
    for _, order in wanted:
        attempt = {"nonce": "n", "attempt": 1} if order.kind == "trial" else {}
        sent = parse_order({**order.payload, **attempt, "run_id": "x"}, shapes[order.kind])
        assert not sent.model_extra


def test_only_arms_that_are_finished_are_read(round_lab: RoundLab) -> None:
    assert readable_arms(round_lab.loaded, None) == ["2b-blend"]
    trial = round_lab.runs / "r201-full" / "00-trial-0"
    trial.mkdir(parents=True)
    (trial / "result.json").write_text("{}")
    assert readable_arms(round_lab.loaded, None) == ["2b-full", "2b-blend"]


async def test_reads_that_landed_are_not_launched_and_a_second_launch_starts_nothing(round_lab: RoundLab) -> None:
    (round_lab.runs / "r201-2b-blend-far").mkdir()
    (round_lab.runs / "r201-2b-blend-far" / "rows.json").write_text("[]")
    engine = round_lab.engine()
    wanted = missing_reads(engine, round_lab.loaded, ["2b-blend"])
    done = await launch_orders(engine, wanted, "reads", 1)
    assert len(done.calls) == 2
    again = await launch_orders(round_lab.engine(), wanted, "reads", 1)
    assert again.calls == {}
    assert (round_lab.runs / "r201-2b-blend-held.read.json").exists()


def test_a_stages_reads_are_of_tests_and_may_not_be_made_again(round_lab: RoundLab) -> None:
    spec = round_lab.loaded.spec
    for stage in ("tests", "locked"):
        for _, order in arm_reads(spec, round_lab.root, "2b-full", round_lab.engine().provenance, stage=stage):
            assert order.once is not None
            with pytest.raises(Refused, match="a test is read once"):
                retry_of(order, 1)


async def test_cancelling_says_who_and_what_is_lost_and_counts_until_it_ended(round_lab: RoundLab) -> None:
    round_lab.compute.plan = lambda *_: Plan(seconds=5000)
    engine = round_lab.engine()
    await launch(engine, round_lab.loaded)
    call = engine.ledger.read().by_id[DELTA].current
    assert call is not None
    round_lab.compute.calls[call.call or ""].stop_delay = 300
    assert await cancel(engine, DELTA, "too slow") == "stopping"
    unit = engine.ledger.read().by_id[DELTA]
    assert (state_of(unit), unit.cancelled_by) == ("stopping", "Ada")
    assert unit.rest() > 0
    assert any("lost: all of it" in line for line in round_lab.said)
    with pytest.raises(AlreadyStarted):
        await engine.gate.start(DELTA)
    round_lab.compute.volume["r201-full/00-trial-0/checkpoint/resume/latest.json"] = (
        b'{"dir": "step-0000510", "step": 510}'
    )
    assert await cancel(engine, FULL, "") == "cancelled"
    assert any("what ran after step 510" in line for line in round_lab.said)


async def test_an_orphan_is_ended_only_if_the_ledger_does_not_know_it(round_lab: RoundLab) -> None:
    round_lab.compute.plan = lambda *_: Plan(seconds=5000)
    engine = round_lab.engine()
    done = await launch(engine, round_lab.loaded)
    stray = round_lab.compute.run("run_trial", {}, "stray", "H200", 3600)
    with pytest.raises(Refused, match="belongs to the ledger"):
        await cancel_orphan(engine, done.calls[FULL], "")
    assert await cancel_orphan(engine, stray.id, "unknown") == "cancelled"


async def test_beyond_its_attempts_a_trial_goes_on_only_under_its_typed_name(round_lab: RoundLab) -> None:
    round_lab.compute.plan = lambda *_: Plan(seconds=90_000)
    engine = round_lab.engine()
    await launch(engine, round_lab.loaded)
    round_lab.clock.time += 90_000
    attempt = engine.ledger.read().by_id[DELTA].counted[0]
    engine.gate.settle_attempt(DELTA, attempt.nonce, "ended", outcome="timed_out")
    with pytest.raises(Refused, match=r"--beyond-bound r201-delta"):
        await resume(engine, DELTA)
    with pytest.raises(Refused, match=r"--beyond-bound r201-delta"):
        await resume(engine, DELTA, beyond_bound="yes")
    await resume(engine, DELTA, beyond_bound="r201-delta")
    assert len(engine.ledger.read().by_id[DELTA].counted) == 2


@pytest.mark.parametrize("command", ["launch", "launch-reads", "status", "pull", "resume", "cancel"])
def test_every_command_prints_json_and_those_that_act_have_a_dry_run(command: str) -> None:
    words = build_parser().format_help()
    assert command in words
    needed = {"pull": ["--name", "x"], "resume": ["--trial", "x/y"], "cancel": ["--unit", "x"]}.get(command, [])
    dry = [] if command == "status" else ["--dry-run"]
    parsed = build_parser().parse_args([command, "r1.json", "--json", *dry, *needed])
    assert parsed.json
