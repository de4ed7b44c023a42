"""The table of what the client raises, row by row, against a plane that really does it."""

import os
import subprocess
import sys
from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import modal
import pytest
from modal_proto import api_pb2

from kev.compute.client import Deadlines, ModalClient, ModalSettings, settings_from
from kev.compute.errors import AuthFailed, NotDeployed, RemoteError, SpendLimitReached, Throttled, Unavailable
from kev.compute.modal_compute import ModalCompute
from kev.compute.protocol import CallRef, DeployEventKind, Phase

from .conftest import OpenPlace, Place, load_app


async def raised_by(question: Awaitable[Any]) -> BaseException | None:
    try:
        await question
    except Exception as error:
        return error
    return None


async def error_of_get(place: Place, ref: CallRef, timeout: float = 60) -> BaseException | None:
    """What the client itself raises, before anything of ours."""
    client = ModalClient(place.settings)
    call = modal.FunctionCall.from_id(ref.id, client=await client.open())
    error = await raised_by(call.get.aio(timeout=timeout))
    await client.close()
    return error


async def start_pickled(place: Place, function: str) -> CallRef:
    """A call that someone else started, with the client's own default payloads."""
    client = ModalClient(place.settings)
    handle = modal.Function.from_name(place.settings.app_name, function, client=await client.open())
    os.environ["MODAL_PAYLOAD_FORMAT"] = "pickle"
    call = await handle.spawn.aio({})
    await client.close()
    return CallRef(call.object_id)


# Rows of calls.


async def test_a_call_that_has_not_ended_is_active(place: Place) -> None:
    ref = await place.start("linger")
    assert type(await error_of_get(place, ref, timeout=0)) is TimeoutError
    assert (await place.compute.poll(ref)).phase is Phase.ACTIVE


async def test_a_timeout_error_of_remote_code_is_a_failure_and_not_pending_for_ever(place: Place) -> None:
    state = await place.run("fail_with_timeout_error")
    assert (state.phase, state.error) == (Phase.FAILED, "TimeoutError('raised by remote code')")


async def test_pickled_results_would_hide_that_failure_which_is_why_cbor_is_forced(place: Place) -> None:
    await place.compute.ping()
    assert os.environ["MODAL_PAYLOAD_FORMAT"] == "cbor"
    ref = await start_pickled(place, "fail_with_timeout_error")
    error = await error_of_get(place, ref)
    assert type(error) is TimeoutError
    assert str(error) == "raised by remote code"


async def test_an_exception_of_remote_code_is_a_failure_with_its_words(place: Place) -> None:
    ref = await place.start("fail", {"say": "on purpose"})
    assert type(await error_of_get(place, ref)) is modal.exception.RemoteError
    state = await place.end_of(ref)
    assert (state.phase, state.error) == (Phase.FAILED, "ValueError('failed as asked: on purpose')")
    assert state.container_id.startswith("ta-")


@pytest.mark.parametrize(
    ("function", "raised", "words"),
    [("fail", ValueError, "failed as asked"), ("fail_with_own_class", modal.exception.ExecutionError, "deserialize")],
)
async def test_a_call_that_others_started_with_pickle_fails_as_well(
    place: Place, function: str, raised: type, words: str
) -> None:
    ref = await start_pickled(place, function)
    assert type(await error_of_get(place, ref)) is raised
    state = await place.end_of(ref)
    assert state.phase is Phase.FAILED
    assert words in state.error
    assert "\n" not in state.error


async def test_a_defect_of_the_client_is_not_taken_for_a_failure_of_the_call(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = await place.start("linger")

    async def broken(*_: object, **__: object) -> None:
        raise AttributeError("'NoneType' object has no attribute 'write'")

    monkeypatch.setattr(modal._functions._Invocation, "poll_function", broken)
    with pytest.raises(Unavailable, match="NoneType"):
        await place.compute.poll(ref)


async def test_a_call_that_passes_its_timeout_is_timed_out(place: Place) -> None:
    ref = await place.start("outlive")
    assert type(await error_of_get(place, ref)) is modal.exception.FunctionTimeoutError
    assert (await place.end_of(ref)).phase is Phase.TIMED_OUT


async def test_a_result_that_is_no_longer_kept_is_expired(open_place: OpenPlace) -> None:
    place = await open_place({"results": {"retention_s": 1e-6}})
    ref = await place.start("echo", {"say": "and gone"})
    assert (await place.ended(ref, "and gone")).phase is Phase.EXPIRED
    assert type(await error_of_get(place, ref, timeout=0)) is modal.exception.OutputExpiredError
    asked = place.asked("FunctionGetOutputs")
    assert (await place.compute.poll(ref, wait_s=60)).phase is Phase.EXPIRED
    assert place.asked("FunctionGetOutputs") == asked + 1


async def test_a_call_that_was_cancelled_is_told_from_one_that_failed(place: Place) -> None:
    ref = await place.start("linger")
    await place.printed(ref, "lingering")
    await place.compute.cancel(ref)
    assert type(await error_of_get(place, ref)) is modal.exception.RemoteError
    assert (await place.end_of(ref)).phase is Phase.CANCELLED


# The first versions of 1.6 have no status of their own for it.
KNOWS_OUT_OF_MEMORY = hasattr(api_pb2.GenericResult, "GENERIC_STATUS_KERNEL_OOM_KILL")


@pytest.mark.parametrize(
    ("event", "phase"), [("oom", Phase.FAILED if KNOWS_OUT_OF_MEMORY else Phase.LOST), ("crash", Phase.LOST)]
)
async def test_a_container_that_dies_too_often_is_a_failure_or_lost(
    open_place: OpenPlace, event: str, phase: Phase
) -> None:
    place = await open_place(
        {"container": [{"function": "linger", "event": event, "at_log": "lingering", "times": -1}]}
    )
    client = ModalClient(place.settings)
    # Only of an app that is run rather than deployed are the tries counted.
    module = load_app()
    async with module.app.run.aio(client=await client.open()):
        call = await module.linger.spawn.aio({})
        ref = CallRef(call.object_id)
        raised = {Phase.FAILED: modal.exception.RemoteError, Phase.LOST: modal.exception.InternalFailure}[phase]
        assert type(await error_of_get(place, ref)) is raised
        assert (await place.end_of(ref)).phase is phase
    await client.close()


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("os._exit(3)", "exit code 3"),
        ("os._exit(0)", "ended before it took a call"),
        ("raise SystemExit(0)", "SystemExit(0)"),
        ("import no_such_module", "No module named 'no_such_module'"),
        ("raise TimeoutError('no data')", "TimeoutError('no data')"),
    ],
)
async def test_a_container_that_cannot_start_is_a_failure_with_its_cause(
    place: Place, tmp_path: Path, line: str, cause: str
) -> None:
    file = tmp_path / "broken_app.py"
    file.write_text(
        "import os\nimport modal\n"
        "app = modal.App('broken')\n"
        f"if not modal.is_local():\n    {line}\n"
        "@app.function()\ndef run(payload):\n    return payload\n"
    )
    settings = ModalSettings(**{name: getattr(place.settings, name) for name in ModalSettings.__slots__} | {"app": "b"})
    async with ModalCompute(settings) as compute:
        events = [event async for event in compute.deploy(str(file))]
        assert events[-1].kind is DeployEventKind.DEPLOYED
        ref = await compute.spawn("run", {}, run_id="r")
        state = await compute.poll(ref, wait_s=60)
        [row] = await compute.recent_calls("run", since=datetime.now(UTC) - timedelta(minutes=5))
    assert state.phase is Phase.FAILED
    assert cause in state.error
    assert (row.id, row.status, row.phase) == (ref.id, "init failure", Phase.FAILED)


@pytest.mark.parametrize("call_id", ["fc-01NOSUCHCALL000000000000", "xx-1", "", "fc"])
async def test_an_id_that_is_none_is_missing(place: Place, call_id: str) -> None:
    assert (await place.compute.poll(CallRef(call_id))).phase is Phase.MISSING


async def test_cancelling_a_call_that_is_not_there_is_no_error(place: Place) -> None:
    await place.compute.cancel(CallRef("fc-01NOSUCHCALL000000000000"), hard=True)


# Rows of failures to ask.


async def test_a_function_that_is_not_there_is_not_deployed_and_surely_not_started(place: Place) -> None:
    error = await raised_by(place.start("no_such_function"))
    assert type(error) is NotDeployed
    assert not error.may_have_happened
    assert "no_such_function" in str(error)


async def test_an_app_that_is_not_there_is_none_and_is_not_created_by_looking(place: Place) -> None:
    settings = ModalSettings(
        **{name: getattr(place.settings, name) for name in ModalSettings.__slots__} | {"app": "no"}
    )
    async with ModalCompute(settings) as compute:
        assert await compute.app() is None
        assert await compute.app() is None
        assert type(await raised_by(compute.spawn("echo", {}, run_id="r"))) is NotDeployed


async def test_what_is_not_on_a_volume_is_empty_or_none_whatever_the_client_raises(place: Place) -> None:
    await place.run("write_files", {"files": {"a.txt": "a"}})
    assert await place.compute.listdir("kev-contract", "nowhere") == []
    assert await place.compute.listdir("no-such-volume", "/") == []
    assert await place.compute.read("kev-contract", "nothing.txt", limit=10) is None


async def test_a_token_that_is_not_known_is_auth_failed(place: Place) -> None:
    known = {name: getattr(place.settings, name) for name in ModalSettings.__slots__}
    async with ModalCompute(ModalSettings(**known | {"token_secret": "as-wrong"})) as compute:
        for question in (compute.ping(), compute.app(), compute.poll(CallRef("fc-01NOSUCHCALL000000000000"))):
            assert type(await raised_by(question)) is AuthFailed


async def test_without_a_token_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("modal.config._user_config", {})
    async with ModalCompute(ModalSettings(server_url="http://127.0.0.1:1")) as compute:
        error = await raised_by(compute.ping())
    assert type(error) is AuthFailed
    assert "modal token new" in str(error)
    assert "\n" not in str(error)


async def test_too_often_is_throttled_with_the_wait_that_was_asked_for(place: Place) -> None:
    place.fault(rpc=("poll",), kind="throttle", message="too many requests", retry_after_s=5)
    ref = await place.start("echo")
    error = await raised_by(place.compute.poll(ref))
    assert type(error) is Throttled
    assert error.retry_after_s == 5


async def test_a_server_that_died_is_unavailable(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kev.emulator", "up", "--root", str(tmp_path), "--print-env"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as emulator:
        assert emulator.stdout is not None
        printed = [emulator.stdout.readline() for _ in range(4)]
        given = dict(line.removeprefix("export ").strip().split("=", 1) for line in printed)
        async with ModalCompute(settings_from(given, "nothing")) as compute:
            assert (await compute.ping()).simulated
            emulator.kill()
            emulator.wait()
            error = await raised_by(compute.poll(CallRef("fc-01NOSUCHCALL000000000000")))
    assert type(error) is Unavailable
    assert error.retryable


async def test_a_server_that_was_never_there_is_unavailable_at_our_deadline(unused_tcp_port: int) -> None:
    settings = ModalSettings(
        server_url=f"http://127.0.0.1:{unused_tcp_port}", token_id="ak-x", token_secret="as-x",
        deadlines=Deadlines(ping=0.3, question=0.3),
    )  # fmt: skip
    async with ModalCompute(settings) as compute:
        for question in (compute.ping(), compute.poll(CallRef("fc-01NOSUCHCALL000000000000"))):
            assert type(await raised_by(question)) is Unavailable


async def test_a_server_that_hangs_is_unavailable_at_our_deadline_and_not_active(open_place: OpenPlace) -> None:
    place = await open_place(deadlines=Deadlines(question=0.4))
    ref = await place.start("linger")
    place.fault(rpc=("poll",), kind="hang", times=-1)
    error = await raised_by(place.compute.poll(ref))
    assert type(error) is Unavailable
    assert "0.4 s" in str(error)


async def test_passing_trouble_is_ridden_out_by_the_client(place: Place) -> None:
    ref = await place.start("echo", {"say": "through"})
    await place.end_of(ref)
    place.fault(rpc=("poll",), kind="unavailable", times=2)
    assert (await place.compute.poll(ref)).phase is Phase.SUCCEEDED
    place.fault(rpc=("poll",), kind="unavailable", times=-1)
    assert type(await raised_by(place.compute.poll(ref))) is Unavailable


# One status code with two faces.


async def test_a_rate_limit_never_ends_in_a_phase_and_a_spend_limit_stops_spawns_only(open_place: OpenPlace) -> None:
    place = await open_place(
        {
            "fault": [
                {"name": "rate", "kind": "throttle", "retry_after_s": 7, "message": "slow down"},
                {"name": "money", "kind": "refuse", "message": "This workspace has hit its monthly spend limit"},
            ],
            "sequence": [
                {"rpc": ["spawn"], "steps": ["ok", "rate", "money", "rate", "ok"]},
                {"rpc": ["poll"], "steps": ["rate", "rate", "ok"]},
            ],
        }
    )
    running = await place.start("linger")
    errors = [await raised_by(place.start("echo")) for _ in range(3)]
    assert [type(error) for error in errors] == [Throttled, SpendLimitReached, Throttled]
    rate, money = errors[0], errors[1]
    assert isinstance(rate, Throttled)
    assert isinstance(money, RemoteError)
    assert (rate.retry_after_s, money.retryable, money.may_have_happened) == (7, False, False)
    assert "\n" not in str(money)
    polls = [await raised_by(place.compute.poll(running)) for _ in range(2)]
    assert [type(error) for error in polls] == [Throttled, Throttled]
    assert (await place.compute.poll(running)).phase is Phase.ACTIVE
    assert (await place.run("echo", {"say": "on"})).phase is Phase.SUCCEEDED


async def test_the_cap_of_the_emulator_itself_is_a_spend_limit(open_place: OpenPlace) -> None:
    place = await open_place({"money": {"spend_cap_usd": 0}})
    assert type(await raised_by(place.start("echo"))) is SpendLimitReached
