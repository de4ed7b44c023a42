"""The watch sees a round through: it ends nothing without evidence, starts nothing twice, and can die anywhere."""

import itertools
import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from fake_compute import Plan
from memory_disk import Killed
from round_lab import RoundLab

from kev import files
from kev.compute.errors import RemoteError
from kev.compute.protocol import LogLine, Phase
from kev.control import read_control, set_control
from kev.errors import LockHeld, Refused
from kev.records.control import ENGINE
from kev.rounds.launch import launch, launch_orders
from kev.rounds.launch_reads import missing_reads
from kev.rounds.specs import LoadedSpec
from kev.rounds.watching.loop import check_launched, watch, watcher_lock
from kev.rounds.watching.passes import Watch

FULL, DELTA = "trial/r201-full/trial-0", "trial/r201-delta/trial-0"
BLEND = "r201-blend/2b-w50/checkpoint/model.safetensors"


def no_trial_fails(function: str, payload: dict[str, Any]) -> Plan:
    return Plan(seconds=1800 if "study" in payload else 300)


class Night:
    """A launched round, and what its watcher did."""

    def __init__(self, lab: RoundLab, plan: Callable[[str, dict[str, Any]], Plan] = no_trial_fails) -> None:
        self.lab, self.finished = lab, 0
        lab.compute.plan = plan
        lab.compute.volume[BLEND] = b"x"
        lab.compute.hourly = lambda *_: Decimal(1)

    async def launch(self) -> None:
        await launch(self.lab.engine(), self.lab.loaded, stagger_s=0)

    def finish(self, _: LoadedSpec) -> bool:
        self.finished += 1
        return True

    async def watch(self, **options: Any) -> bool:
        return await watch(self.lab.engine(), self.lab.loaded, self.finish, stagger_s=1, **options)

    def unit(self, name: str) -> Any:
        return self.lab.engine().ledger.read().by_id[name]

    def spawned(self, start: str) -> list[str]:
        return [name for name in self.lab.compute.spawned if name.startswith(start)]


async def test_a_round_runs_from_its_launch_to_its_read_out_with_nobody_there(round_lab: RoundLab) -> None:
    night = Night(round_lab)
    await night.launch()
    assert await night.watch()
    assert night.finished == 1
    assert len(night.spawned("trial/")) == 2
    assert len(night.spawned("read/")) == 9
    assert all(unit.outcome in ("done", "same") for unit in round_lab.engine().ledger.read().by_id.values())
    assert files.read_json(round_lab.runs / "r201-full.watch.json")["calls"]["trial-0"]["status"] == "done"
    assert files.read_json(round_lab.runs / "night-watcher.json")["state"] == "done"
    assert round_lab.said[-1].startswith("done: round 201")
    assert round_lab.read_events()[-1] == "done"
    state = files.read_json(round_lab.state)
    assert {study["status"] for study in state["studies"].values()} == {"done"}
    assert {read["status"] for read in state["reads"].values()} == {"done"}


async def test_a_network_that_is_away_for_a_day_fails_nothing_and_relaunches_nothing(round_lab: RoundLab) -> None:
    night = Night(round_lab)
    await night.launch()
    before = list(round_lab.compute.spawned)

    async def away(name: str) -> str:
        return "unavailable"

    round_lab.compute.point = away
    await night.watch(passes=30, interval_s=3600)
    assert round_lab.clock.time > 80_000
    assert [unit.settled for unit in (night.unit(FULL), night.unit(DELTA))] == [False, False]
    assert files.read_json(round_lab.runs / "r201-full.watch.json")["calls"]["trial-0"]["status"] == "running"
    assert files.read_json(round_lab.runs / "night-watcher.json")["unreachable_since"] is not None
    round_lab.compute.point = None
    assert await night.watch()
    assert [name for name in night.spawned("trial/") if name not in before] == []


async def test_being_asked_to_slow_down_is_waited_for_as_told_and_uses_up_no_failure(round_lab: RoundLab) -> None:
    night = Night(round_lab)
    await night.launch()

    async def slow(name: str) -> str:
        return "throttled" if name == "poll" else "ok"

    round_lab.compute.point = slow
    await night.watch(passes=200, interval_s=1)
    state = files.read_json(round_lab.runs / "r201-full.watch.json")["calls"]["trial-0"]
    assert (state["status"], state["transient"]) == ("running", 0)
    assert files.read_json(round_lab.runs / "night-watcher.json")["throttled_since"] is not None
    assert round_lab.clock.time >= 199 * 5
    said = [line for line in round_lab.said if "cannot be asked" in line]
    assert len(said) == len(set(said))


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


@pytest.mark.parametrize("whole", [b"", b'{"name": "r31-9b", "calls": {"trial-0"'])
async def test_a_spawn_record_that_is_damaged_starts_nothing_and_the_rest_is_watched_on(
    round_lab: RoundLab, whole: bytes
) -> None:
    night = Night(round_lab)
    await night.launch()
    record = round_lab.runs / "r31-9b.spawn.json"
    record.write_bytes(whole)
    copy = record.with_name(".r31-9b.spawn.json.q7.tmp")
    copy.write_text(json.dumps({"name": "r31-9b", "calls": {}, "gpu": "H200", "timeout": 60}))
    assert await night.watch()
    assert night.spawned("read/") == []
    assert [night.unit(name).outcome for name in (FULL, DELTA)] == ["done", "done"]
    assert record.read_bytes() == whole
    assert round_lab.read_events().count("damaged") == 1
    told = [line for line in round_lab.said if "r31-9b.spawn.json" in line and line.startswith("!!!")]
    assert len(told) == 1
    assert f"a complete copy is in {copy}" in told[0]
    copy.rename(record)
    (round_lab.runs / "r31-9b.watch.json").write_text('{"calls": {}}')
    assert await night.watch()
    assert len(night.spawned("read/")) == 9


async def test_a_trial_that_is_due_is_not_continued_on_a_damaged_record(round_lab: RoundLab) -> None:
    night = Night(round_lab, times_out(90_000, ends_lease=True))
    await night.launch()
    (round_lab.runs / "r31-9b.spawn.json").write_bytes(b"")
    assert await night.watch()
    assert (night.unit(FULL).outcome, len(night.unit(FULL).counted)) == ("blocked", 1)
    assert "r31-9b.spawn.json" in night.unit(FULL).text


async def test_a_ledger_that_is_emptied_is_an_incident_and_is_watched_from_again_once_it_is_put_back(
    round_lab: RoundLab,
) -> None:
    night = Night(round_lab)
    await night.launch()
    ledger = round_lab.runs / "ledger.jsonl"
    asked = 0

    async def spoil(name: str) -> str:
        nonlocal asked
        asked += name == "poll"
        if asked == 5 and name == "poll":
            spoilt.append(ledger.read_bytes())
            began.extend(round_lab.compute.spawned)
            ledger.write_bytes(b"")
        return "ok"

    spoilt: list[bytes] = []
    began: list[str] = []
    round_lab.compute.point = spoil
    await night.watch(passes=40)
    assert ledger.read_bytes() == b""
    assert round_lab.compute.spawned == began
    assert round_lab.read_events().count("damaged") == 1
    life = files.read_json(round_lab.runs / "night-watcher.json")
    assert (life["passes"], life["state"]) == (40, "paused")
    ledger.write_bytes(spoilt[0])
    assert await night.watch()
    assert len(night.spawned("read/")) == 9


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


def times_out(seconds: float, ends_lease: bool = False) -> Callable[[str, dict[str, Any]], Plan]:
    def plan(function: str, payload: dict[str, Any]) -> Plan:
        if payload.get("study") == "r201-full":
            payload["ends_lease"] = ends_lease
            return Plan(seconds=seconds if payload["attempt"] < 3 else 600)
        return no_trial_fails(function, payload)

    return plan


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


async def test_a_lost_reply_is_adopted_by_the_nonce_in_the_lease(round_lab: RoundLab) -> None:
    night = Night(round_lab)

    async def lose(name: str) -> str:
        return "lost" if name == "spawned" and len(round_lab.compute.spawned) == 2 else "ok"

    round_lab.compute.point = lose
    await night.launch()
    round_lab.compute.point = None
    assert night.unit(FULL).live.call is None
    assert await night.watch()
    assert night.unit(FULL).counted[0].call == "fc-0001"
    assert len(night.spawned(FULL)) == 1
    assert any("its lease has the nonce" in line for line in round_lab.said)


async def test_an_intent_with_nothing_alive_is_a_ghost_and_counts_as_an_attempt(round_lab: RoundLab) -> None:
    night = Night(round_lab)

    spawns = 0

    async def first(name: str) -> str:
        nonlocal spawns
        spawns += name == "spawn"
        return "unavailable" if name == "spawn" and spawns == 2 else "ok"  # the first asks for the sources

    round_lab.compute.point = first
    await night.launch()
    began = round_lab.clock.time
    assert await night.watch()
    attempts = night.unit(FULL).counted
    assert [attempt.outcome for attempt in attempts] == ["abandoned", "succeeded"]
    assert attempts[1].at - attempts[0].at >= 900
    assert round_lab.clock.time > began
    assert "ghost" in round_lab.read_events()


async def test_what_is_alive_and_unknown_is_shown_once_as_an_orphan_and_left_alone(round_lab: RoundLab) -> None:
    night = Night(round_lab)
    await night.launch()
    stray = round_lab.compute.run("run_trial", {}, "stray", "H200", 90_000)
    assert await night.watch()
    assert (
        sum(f"!!! {stray.id} (run_trial) is alive and nothing here started it" in line for line in round_lab.said) == 1
    )
    assert stray.cancelled_at is None


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


async def test_a_result_that_expired_counts_only_if_it_is_on_the_volume(round_lab: RoundLab) -> None:
    def plan(function: str, payload: dict[str, Any]) -> Plan:
        return Plan(seconds=60, ending=Phase.EXPIRED) if payload.get("study") else no_trial_fails(function, payload)

    night = Night(round_lab, plan)
    await night.launch()
    round_lab.compute.volume["r201-delta/00-trial-0/result.json"] = b"{}"
    await night.watch(passes=10)
    assert night.unit(DELTA).outcome == "done"
    assert night.unit(FULL).outcome is None


async def test_a_call_that_the_provider_does_not_know_is_not_failed_until_it_cannot_be_running(
    round_lab: RoundLab,
) -> None:
    night = Night(round_lab)
    await night.launch()
    gone = night.unit(DELTA).live.call
    round_lab.compute.missing.add(gone)
    await night.watch(passes=30, interval_s=600)
    assert not night.unit(DELTA).settled
    assert any("is this its workspace" in line for line in round_lab.said)
    assert await night.watch(interval_s=600)
    assert night.unit(DELTA).counted[0].outcome == "missing"


async def test_a_hard_pause_only_polls_and_says_when_it_is_safe_to_kill(round_lab: RoundLab) -> None:
    night = Night(round_lab)
    await night.launch()
    set_control(round_lab.state, "hard", who="Ada", at=0, reason="lunch")
    await night.watch(passes=30)
    assert not night.unit(FULL).settled
    assert night.unit(FULL).counted[0].outcome == "succeeded"
    assert files.read_json(round_lab.runs / "night-watcher.json")["state"] == "quiesced"
    assert not (round_lab.runs / "r201-full").exists()


async def test_a_session_has_one_watcher(round_lab: RoundLab) -> None:
    night = Night(round_lab)
    await night.launch()
    with files.locked(watcher_lock(round_lab.state)), pytest.raises(LockHeld):
        await night.watch()


async def test_a_round_that_was_never_launched_is_not_watched(round_lab: RoundLab) -> None:
    with pytest.raises(Refused, match="was never launched"):
        check_launched(round_lab.engine(), round_lab.loaded)


async def test_it_is_ready_once_the_lock_is_held_and_a_pass_was_made(round_lab: RoundLab) -> None:
    night = Night(round_lab)
    await night.launch()
    seen = []

    def ready() -> None:
        with pytest.raises(LockHeld), files.locked(watcher_lock(round_lab.state)):
            pass
        seen.append((round_lab.runs / "night-watcher.json").exists())

    await night.watch(passes=1, ready=ready)
    assert seen == [True]


async def test_what_is_refused_for_half_an_hour_is_skipped_and_nothing_waits_for_a_person(round_lab: RoundLab) -> None:
    night = Night(round_lab)
    await night.launch()
    del round_lab.compute.volume[BLEND]
    assert await night.watch()
    assert night.spawned("read/runs/r201-2b-blend") == []
    assert len(night.spawned("read/")) == 6


async def test_a_trial_that_cannot_be_done_in_time_is_told_early_and_once(round_lab: RoundLab) -> None:
    night = Night(round_lab)
    await night.launch()
    now = datetime(2026, 11, 30, tzinfo=UTC)

    async def log_tail(ref: Any, n: int) -> list[LogLine]:
        at = now.timestamp()
        return [LogLine(f"ep0 step {step}/1000 loss 1.0", datetime.fromtimestamp(at + 60 * step, UTC), "stdout")
                for step in range(10, 30, 10)]  # fmt: skip

    round_lab.compute.log_tail = log_tail  # type: ignore[method-assign]
    await night.watch(passes=12)
    told = [line for line in round_lab.said if "needs about" in line]
    assert len(told) == 2
    assert "step 20 of 1000: needs about 16" in told[0]


async def test_a_watcher_that_is_killed_at_any_await_is_continued_by_the_next(round_lab: RoundLab) -> None:
    night = Night(round_lab, times_out(90_000, ends_lease=True))
    await night.launch()
    kills, asked = 0, 0

    async def die(name: str) -> str:
        nonlocal asked, kills
        asked += 1
        if asked % 7 == 0 and kills < 60:
            kills += 1
            raise Killed
        return "ok"

    round_lab.compute.point = die
    complete = False
    while not complete:
        try:
            complete = await night.watch()
        except Killed:
            round_lab.clock.time += 30
    assert kills == 60
    assert len(night.spawned(FULL)) <= 3
    assert len(set(night.spawned("read/"))) == len(night.spawned("read/"))


async def test_the_sweep_starts_from_the_providers_list(round_lab: RoundLab) -> None:
    night = Night(round_lab)
    await night.launch()
    stray = round_lab.compute.run("run_full_trial", {}, "stray", "H200", 90_000)
    state = Watch(round_lab.engine(), round_lab.loaded)
    await state.run()
    assert state.strays == {stray.id: "run_full_trial"}


def test_every_failure_to_ask_is_a_remote_error() -> None:
    # The watch leaves state alone on these and on nothing else, so no other class may stand for "could not ask".
    from kev.compute import errors

    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert all(issubclass(kind, RemoteError) for kind in kinds if kind.__name__ != "KevError")
