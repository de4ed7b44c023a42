"""Calls through the real client: results, failures, retries, cancellation."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import modal
import pytest
from file_module import load_module
from modal.exception import FunctionTimeoutError, NotFoundError, RemoteError

from .conftest import APP_FILE, QUICK, Begin, Night, Pipe, load_app, modal_command
from .test_logs import MovableClock


async def test_a_spawned_function_really_runs_and_its_result_comes_back(night: Night) -> None:
    call = await night.spawn("echo", {"rate": 0.1, "names": ["a", "ü"]})

    assert await call.get.aio(timeout=60) == {"value": {"rate": 0.1, "names": ["a", "ü"]}, "call": call.object_id}


async def test_an_async_function_runs_too(night: Night) -> None:
    assert await night.call("slow_echo", 5) == 5


async def test_a_method_of_a_class_runs_with_its_parameters(night: Night) -> None:
    model = modal.Cls.from_name("night", "Model", client=night.client)

    assert await model(factor=3).predict.remote.aio(6) == 18
    assert await model().predict.remote.aio(6) == 42


async def test_arguments_and_results_above_the_message_limit_travel_as_blobs(night: Night) -> None:
    big = "x" * 3_000_000

    assert (await night.call("echo", big))["value"] == big
    assert night.plane.dispatcher.counts["BlobCreate"] == 2


async def test_a_call_that_is_not_finished_says_so_with_the_builtin_timeout_error(night: Night, pipe: Pipe) -> None:
    call = await night.spawn("hold", pipe.path)
    with pytest.raises(TimeoutError):
        await call.get.aio(timeout=0)

    await night.printed("holding")
    pipe.release("done")
    assert await call.get.aio(timeout=60) == "done"


@pytest.mark.parametrize(("function", "text"), [("fail", "ValueError('no')"), ("raise_timeout_error", "TimeoutError")])
async def test_a_remote_exception_is_told_apart_from_waiting(night: Night, function: str, text: str) -> None:
    with pytest.raises(RemoteError, match=text.replace("(", r"\(").replace(")", r"\)")):
        await night.call(function, *(["no"] if function == "fail" else []))


async def test_unknown_things_are_not_found(night: Night) -> None:
    with pytest.raises(NotFoundError):
        await night.spawn("nothing")
    with pytest.raises(NotFoundError):
        await modal.FunctionCall.from_id("fc-0000000000000000000000", client=night.client).get.aio(timeout=0)
    with pytest.raises(NotFoundError):
        await modal.Function.from_name("other", "echo", client=night.client).spawn.aio(1)


async def test_retries_of_the_function_are_used_up_before_it_fails(night: Night, tmp_path: Path) -> None:
    assert await night.call("fail_twice", str(tmp_path / "log")) == 3


async def test_a_time_out_ends_the_attempt_and_then_the_program(night: Night, pipe: Pipe, tmp_path: Path) -> None:
    with pytest.raises(FunctionTimeoutError, match="timeout of 1s"):
        await night.call("short", pipe.path, str(tmp_path / "log"))
    await night.no_containers()

    assert (tmp_path / "log").read_text().split() == ["begin", "InputCancellation"]


async def test_a_time_out_is_an_attempt_that_retries_count(night: Night, pipe: Pipe, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises(FunctionTimeoutError):
        await night.call("short_twice", pipe.path, str(log))

    assert len(set(log.read_text().splitlines())) == 2, "two attempts, in two containers"


async def test_a_program_that_swallows_every_signal_is_killed_in_the_end(
    night: Night, pipe: Pipe, tmp_path: Path
) -> None:
    with pytest.raises(FunctionTimeoutError):
        await night.call("hold_on", pipe.path, str(tmp_path / "log"), timeout=1)
    await night.no_containers()

    assert (tmp_path / "log").read_text().split() == ["InputCancellation", "KeyboardInterrupt"]
    assert [task.ended_by for task in night.plane.store.tasks.values()] == ["timeout"]


async def test_a_soft_cancel_raises_in_the_function_and_the_container_lives_on(
    night: Night, pipe: Pipe, tmp_path: Path
) -> None:
    call = await night.spawn("hold_politely", pipe.path, str(tmp_path / "log"))
    await night.printed("holding")

    await call.cancel.aio()
    with pytest.raises(RemoteError):
        await call.get.aio(timeout=60)

    assert (tmp_path / "log").read_text().split() == ["InputCancellation"]
    [node] = await call.get_call_graph.aio()
    assert node.status.name == "TERMINATED"
    assert await night.container_count() == 1


async def test_a_hard_cancel_ends_a_program_that_swallows_the_soft_one(
    night: Night, pipe: Pipe, tmp_path: Path
) -> None:
    call = await night.spawn("hold_on", pipe.path, str(tmp_path / "log"))
    await night.printed("holding")
    await call.cancel.aio()
    await night.printed("still holding")

    await call.cancel.aio(terminate_containers=True)
    with pytest.raises(RemoteError):
        await call.get.aio(timeout=60)
    await night.no_containers()


async def test_a_call_can_be_cancelled_before_it_has_a_container(night: Night, pipe: Pipe) -> None:
    first = await night.spawn("hold", pipe.path, max_containers=1)
    second = await night.spawn("hold", pipe.path, max_containers=1)
    await night.printed("holding")

    await second.cancel.aio()
    with pytest.raises(RemoteError):
        await second.get.aio(timeout=60)
    pipe.release()
    assert await first.get.aio(timeout=60) == "released"


async def test_an_app_that_is_stopped_ends_what_runs_and_what_waits(night: Night, pipe: Pipe, tmp_path: Path) -> None:
    calls = [await night.spawn("hold", pipe.path, max_containers=1) for _ in range(2)]
    await night.printed("holding")

    await modal_command("app", "stop", "--yes", night.app_id, cwd=tmp_path)
    for call in calls:
        with pytest.raises(RemoteError):
            await call.get.aio(timeout=60)
    await night.no_containers()


async def test_a_container_is_used_again_unless_the_function_says_otherwise(night: Night) -> None:
    assert await night.call("one_at_a_time") == await night.call("one_at_a_time")
    assert await night.call("fresh") != await night.call("fresh")


async def test_a_new_deployment_replaces_the_containers_of_the_old_one(night: Night) -> None:
    before = await night.call("one_at_a_time")
    await night.deploy()

    assert await night.call("one_at_a_time") != before


async def test_a_new_deployment_is_met_under_other_options_too(night: Night, tmp_path: Path) -> None:
    before = await night.call("environment", "FROM_IMAGE", timeout=30)
    file = tmp_path / "night_app_2.py"
    file.write_text(APP_FILE.read_text().replace('"FROM_IMAGE": "yes"', '"FROM_IMAGE": "anew"'))
    await load_module(file).app.deploy.aio(client=night.client)

    assert (before, await night.call("environment", "FROM_IMAGE", timeout=30)) == (["yes"], ["anew"])


async def test_the_environment_of_a_container_is_its_images_and_secrets_and_not_the_hosts(
    night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FROM_HOST", "leaked")

    names = ("FROM_IMAGE", "FROM_SECRET", "FROM_HOST", "MODAL_TOKEN_SECRET")
    assert await night.call("environment", *names) == ["yes", "hush", None, None]


@pytest.mark.parametrize("path", ["/data/copied.py", "/night/shift/mounted.py"])
async def test_a_container_finds_the_local_files_that_its_image_was_given(night: Night, path: str) -> None:
    assert await night.call("file_in_container", path) == APP_FILE.read_text()


async def test_a_relative_path_begins_in_the_working_directory_of_the_image(night: Night) -> None:
    assert await night.call("relative_file", "mounted.py") == APP_FILE.read_text()


async def test_an_app_ends_when_the_client_that_runs_it_is_gone(begin: Begin, pipe: Pipe) -> None:
    clock = MovableClock()
    night = await begin(clock=clock, deploy=False, timings=replace(QUICK, client_gone=0.2))
    module = load_app()
    async with module.app.run.aio(client=night.client) as running:
        night.app_id = running.app_id
        await module.hold.spawn.aio(pipe.path)
        await night.printed("holding")
        clock.offset = timedelta(minutes=2)  # as if none of the heartbeats had come

        await night.no_containers()
        assert night.plane.store.apps[running.app_id].is_stopped
