"""The watch sees a round through: it starts nothing twice, is alone, and can die anywhere."""

from datetime import UTC, datetime
from typing import Any

import pytest
from fake_compute import EPOCH, Plan
from round_lab import RoundLab
from watched_night import FULL, Night, times_out

from kev import files
from kev.compute.protocol import LogLine
from kev.errors import LockHeld, Refused
from kev.rounds.watching.loop import check_launched, watcher_lock
from kev.rounds.watching.passes import Watch


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


async def test_what_is_alive_and_unknown_is_shown_once_as_an_orphan_and_left_alone(round_lab: RoundLab) -> None:
    night = Night(round_lab)
    await night.launch()
    stray = round_lab.compute.run("run_trial", {}, "stray", "H200", 90_000)
    assert await night.watch()
    assert (
        sum(f"!!! {stray.id} (run_trial) is alive and nothing here started it" in line for line in round_lab.said) == 1
    )
    assert stray.cancelled_at is None


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


async def test_the_time_in_the_queue_is_not_taken_for_time_that_a_trial_has_run(round_lab: RoundLab) -> None:
    queue = 5000.0
    night = Night(round_lab, lambda *_: Plan(seconds=1700, queue=queue))
    await night.launch()

    async def log_tail(ref: Any, n: int) -> list[LogLine]:
        call = round_lab.compute.calls[ref.id]
        started = EPOCH.timestamp() + 3_000 + call.started  # as the lease of this provider has it
        ran = int(round_lab.clock.time - call.started)
        return [LogLine(f"ep0 step {at // 10}/170 loss 1.0", datetime.fromtimestamp(started + at, UTC), "stdout")
                for at in range(10, ran, 10)]  # fmt: skip

    round_lab.compute.log_tail = log_tail  # type: ignore[method-assign]
    assert await night.watch()
    assert not any("needs about" in line for line in round_lab.said)
    assert round_lab.clock.time > queue


async def test_later_sweeps_look_at_everything_that_the_app_can_do(round_lab: RoundLab) -> None:
    night = Night(round_lab)
    await night.launch()
    stray = round_lab.compute.run("run_mirror", {}, "stray", None, 90_000)
    stray.end = 90_000
    await night.watch(passes=1)
    assert not any(stray.id in line for line in round_lab.said)
    assert await night.watch()
    assert sum(f"!!! {stray.id} (run_mirror) is alive" in line for line in round_lab.said) == 1


async def test_a_watcher_that_is_killed_at_any_await_is_continued_by_the_next(round_lab: RoundLab) -> None:
    night = Night(round_lab, times_out(90_000, ends_lease=True))
    await night.launch()
    await night.watch_though_killed(every=7, times=60)
    assert len(night.spawned(FULL)) <= 3
    assert len(set(night.spawned("read/"))) == len(night.spawned("read/"))


async def test_the_sweep_starts_from_the_providers_list(round_lab: RoundLab) -> None:
    night = Night(round_lab)
    await night.launch()
    stray = round_lab.compute.run("run_full_trial", {}, "stray", "H200", 90_000)
    state = Watch(round_lab.engine(), round_lab.loaded)
    await state.run()
    assert state.strays == {stray.id: "run_full_trial"}
