"""Containers that end: preemption, crashes, lack of memory and cards, and nobody left behind."""

import os
from pathlib import Path

import modal
import pytest
from modal.exception import InvalidError, RemoteError

from .conftest import Begin, Night, Pipe


def is_running(pid: int) -> bool:
    """Whether a process exists and is not just waiting to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def ends(night: Night) -> list[str]:
    return [task.ended_by for task in night.plane.store.tasks.values() if task.finished]


async def test_a_preempted_call_goes_to_another_container_at_once(night: Night, pipe: Pipe, tmp_path: Path) -> None:
    call = await night.spawn("hold_politely", pipe.path, str(tmp_path / "log"))
    await night.printed("holding")

    assert night.plane.disrupt(call.object_id, "preempt")
    await night.printed("holding", times=2)
    pipe.release("second")

    assert await call.get.aio(timeout=60) == "second"
    assert (tmp_path / "log").read_text().split() == ["KeyboardInterrupt"]
    assert ends(night) == ["preempted"]


async def test_a_preempted_program_that_swallows_the_signal_is_killed_after_the_grace_period(
    night: Night, pipe: Pipe, tmp_path: Path
) -> None:
    call = await night.spawn("hold_on", pipe.path, str(tmp_path / "log"))
    await night.printed("holding")

    night.plane.disrupt(call.object_id, "preempt")
    await night.printed("still holding")
    await night.printed("ended: preempted")
    await night.printed("holding", times=3)
    pipe.release("second")
    assert await call.get.aio(timeout=60) == "second"


@pytest.mark.parametrize("with_signal", [False, True])
async def test_a_crash_of_a_deployed_app_is_tried_again_and_again(
    night: Night, tmp_path: Path, with_signal: bool
) -> None:
    assert await night.call("die", str(tmp_path / "log"), 2, with_signal) == 3

    assert ends(night).count("killed by signal 9" if with_signal else "exit code 7") == 2
    [call] = night.plane.store.calls.values()
    assert (call.crashes, call.retries) == (2, 0), "crashes are not the function's retries"


async def test_a_crash_of_an_app_that_is_not_deployed_fails_after_a_few(begin: Begin, tmp_path: Path) -> None:
    from .conftest import load_app

    night = await begin(deploy=False)
    module = load_app()
    async with module.app.run.aio(client=night.client):
        with pytest.raises(modal.exception.InternalFailure):
            await module.die.remote.aio(str(tmp_path / "log"), 100)
    assert len((tmp_path / "log").read_text().splitlines()) == 3


async def test_memory_above_the_limit_ends_the_container(night: Night, tmp_path: Path) -> None:
    assert await night.call("eat", 50, str(tmp_path / "log")) == "fasting"

    assert "out of memory" in ends(night)


async def test_the_plan_can_end_a_container_when_it_prints_something(begin: Begin, tmp_path: Path) -> None:
    night = await begin({"container": [{"function": "hold", "event": "oom", "at_log": "holding"}]})
    pipe = Pipe(tmp_path / "pipe")
    call = await night.spawn("hold", pipe.path)

    await night.printed("out of memory")
    await night.printed("holding", times=2)
    pipe.release()
    assert await call.get.aio(timeout=60) == "released"


async def test_the_plan_can_end_a_container_some_time_after_its_call_began(begin: Begin, tmp_path: Path) -> None:
    night = await begin({"container": [{"function": "hold", "event": "crash", "after_s": 0.2}]})
    pipe = Pipe(tmp_path / "pipe")
    call = await night.spawn("hold", pipe.path)

    await night.printed("killed by signal 9")
    await night.printed("holding", times=2)
    pipe.release()
    assert await call.get.aio(timeout=60) == "released"


async def test_above_the_quota_of_cards_containers_wait_and_show_as_pending(begin: Begin, tmp_path: Path) -> None:
    night = await begin({"limits": {"gpus": 1}})
    pipe = Pipe(tmp_path / "pipe")
    calls = [await night.spawn("on_card", pipe.path) for _ in range(2)]
    await night.printed("holding")

    started = [task.started for task in night.plane.store.tasks.values()]
    assert len(started) == 2 and sum(1 for each in started if each) == 1
    assert night.plane.limits.gpus_in_use == 1

    await calls[0].cancel.aio(terminate_containers=True)
    await night.printed("holding", times=2)
    pipe.release()
    assert await calls[1].get.aio(timeout=60) == "released"
    with pytest.raises(RemoteError):
        await calls[0].get.aio(timeout=60)
    assert night.plane.limits.gpus_in_use <= 1


async def test_a_container_that_waits_for_a_card_is_dropped_with_its_call(begin: Begin, tmp_path: Path) -> None:
    night = await begin({"limits": {"gpus": 0}})
    call = await night.spawn("on_card", str(tmp_path))

    await call.cancel.aio()
    await night.no_containers()
    assert ends(night) == ["not needed"]
    assert night.plane.meter.total() == 0


async def test_a_card_without_a_price_is_refused_by_name(night: Night) -> None:
    with pytest.raises(InvalidError, match="'L4' has no price here; known are B200, H100, H200, T4"):
        await night.spawn("on_card", "", gpu="L4")


async def test_nothing_that_a_container_started_outlives_it(night: Night, pipe: Pipe, tmp_path: Path) -> None:
    call = await night.spawn("leave_children", str(tmp_path / "pids"), pipe.path)
    await night.printed("holding")
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert all(is_running(pid) for pid in pids)

    await call.cancel.aio(terminate_containers=True)
    await night.no_containers()
    assert not [pid for pid in pids if is_running(pid)]


async def test_a_container_dies_with_a_supervisor_that_is_killed(night: Night, pipe: Pipe) -> None:
    call = await night.spawn("hold", pipe.path)
    await night.printed("holding")
    [container] = night.plane.scheduler.containers.values()
    assert container.process is not None
    pid = container.process.pid

    os.kill(int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]), 9)
    await night.printed("ended: killed by signal 9")
    assert not is_running(pid)

    await night.printed("holding", times=2)
    pipe.release()
    assert await call.get.aio(timeout=60) == "released"


async def test_stopping_the_emulator_leaves_no_process(night: Night, pipe: Pipe) -> None:
    for _ in range(3):
        await night.spawn("hold", pipe.path)
    await night.printed("holding", times=3)
    pids = [each.process.pid for each in night.plane.scheduler.containers.values() if each.process]

    await night.plane.stop()
    assert len(pids) == 3 and not [pid for pid in pids if is_running(pid)]


async def test_a_plan_can_let_the_time_of_a_call_run_out_at_a_line(begin: Begin, pipe: Pipe, tmp_path: Path) -> None:
    night = await begin({"container": [{"function": "hold_politely", "event": "timeout", "at_log": "holding"}]})

    with pytest.raises(modal.exception.FunctionTimeoutError):
        await night.call("hold_politely", pipe.path, str(tmp_path / "log"))
    await night.no_containers()
    assert (tmp_path / "log").read_text().splitlines() == ["InputCancellation"]
    assert [task.ended_by for task in night.plane.store.tasks.values()] == ["timeout"]
