"""Injected faults, as the real client meets them: each way in which a request can go wrong at the server."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import modal
import pytest
from modal.exception import AuthError, PermissionDeniedError, ResourceExhaustedError, ServiceError

from kev.emulator import Emulator
from kev.errors import LockHeld, UsageError

from .conftest import Begin, Night, Pipe

RATE = {"name": "rate", "kind": "throttle", "retry_after_s": 0.1, "message": "too many requests"}
BILLING = {"name": "billing", "kind": "refuse", "message": "workspace has reached its spend limit"}


def hits(night: Night, rpc: str) -> list[str]:
    return [kind for name, kind in night.plane.faults.injected if name == rpc]


async def test_a_lost_reply_makes_one_call_and_not_two(begin: Begin) -> None:
    night = await begin({"fault": [{"rpc": ["spawn"], "kind": "lost-reply", "times": 2}]})
    call = await night.spawn("echo", 1)

    assert (await call.get.aio(timeout=60))["call"] == call.object_id
    assert len(night.plane.store.calls) == 1
    assert night.plane.dispatcher.counts["FunctionMap"] == 3


async def test_a_reply_lost_for_good_leaves_a_call_that_the_list_of_calls_shows(begin: Begin) -> None:
    night = await begin({"fault": [{"rpc": ["spawn"], "kind": "lost-reply", "times": -1}]})
    with pytest.raises(ServiceError):
        await night.spawn("echo", 1)

    [orphan] = night.plane.store.calls
    assert await modal.FunctionCall.from_id(orphan, client=night.client).get.aio(timeout=60)


async def test_a_short_outage_is_ridden_out_and_a_long_one_is_not(begin: Begin) -> None:
    night = await begin({"fault": [{"rpc": ["poll"], "kind": "unavailable", "times": 7}]})
    call = await night.spawn("echo", 1)
    with pytest.raises(ServiceError):
        await call.get.aio(timeout=0)  # four attempts

    assert (await call.get.aio(timeout=60))["value"] == 1  # three more, and an answer
    assert hits(night, "FunctionGetOutputs") == ["unavailable"] * 7


async def test_streams_are_not_tried_again_after_an_outage(begin: Begin) -> None:
    night = await begin({"fault": [{"rpc": ["VolumeListFiles2"], "kind": "unavailable"}]})
    with pytest.raises(ServiceError):
        await night.volume_names()
    assert await night.volume_names() == []


async def test_a_throttle_with_a_hint_is_waited_out_as_told(begin: Begin) -> None:
    night = await begin({"fault": [{**RATE, "rpc": ["poll"], "times": 4}]})
    call = await night.spawn("echo", 1)
    begun = time.monotonic()

    assert (await call.get.aio(timeout=60))["value"] == 1
    assert hits(night, "FunctionGetOutputs") == ["throttle"] * 4
    assert time.monotonic() - begun >= 4 * 0.1, "the client came back before it was told to"


async def test_a_limit_that_waiting_does_not_lift_fails_at_once(begin: Begin) -> None:
    night = await begin({"fault": [{**BILLING, "rpc": ["spawn"], "times": -1}]})
    with pytest.raises(ResourceExhaustedError, match="spend limit"):
        await night.spawn("echo", 1)

    assert hits(night, "FunctionMap") == ["refuse"]
    assert not night.plane.store.calls


async def test_the_two_faces_of_one_status_code_come_in_the_order_of_the_plan(begin: Begin, tmp_path: Path) -> None:
    plan = {
        "fault": [RATE, BILLING],
        "sequence": [{"rpc": ["spawn"], "steps": ["ok", "rate", "billing", "rate", "ok"]}],
    }
    night = await begin(plan)
    pipe = Pipe(tmp_path / "pipe")
    running = await night.spawn("hold", pipe.path)
    await night.printed("holding")

    with pytest.raises(ResourceExhaustedError, match="spend limit"):
        await night.spawn("echo", 1)  # waits out the rate, and then meets the limit
    call = await night.spawn("echo", 2)  # waits out the rate, and is accepted

    assert hits(night, "FunctionMap") == ["throttle", "refuse", "throttle"]
    assert (await call.get.aio(timeout=60))["value"] == 2
    pipe.release("untouched")
    assert await running.get.aio(timeout=60) == "untouched"


async def test_a_hanging_server_keeps_the_caller_waiting_until_it_answers(begin: Begin) -> None:
    night = await begin({"fault": [{"rpc": ["WorkspaceNameLookup"], "kind": "hang", "delay_s": 0.3}]})
    begun = time.monotonic()
    await modal.Workspace.from_context(client=night.client).hydrate.aio()

    assert time.monotonic() - begun >= 0.3


async def test_a_server_that_hangs_for_ever_lets_go_of_a_caller_that_gave_up(begin: Begin) -> None:
    night = await begin({"fault": [{"rpc": ["WorkspaceNameLookup"], "kind": "hang"}]}, deploy=False)
    lookup = asyncio.ensure_future(modal.Workspace.from_context(client=night.client).hydrate.aio())
    await asyncio.wait({lookup}, timeout=0.2)
    lookup.cancel()

    assert not lookup.done() or lookup.cancelled()
    await modal.Workspace.from_context(client=night.client).hydrate.aio()


async def test_a_slow_log_stream_delays_each_line(begin: Begin) -> None:
    night = await begin({"fault": [{"rpc": ["AppGetLogs"], "kind": "slow", "delay_s": 0.15, "times": -1}]})
    await (await night.spawn("speak", "1", "2", "3")).get.aio(timeout=60)
    await night.printed("3\n")
    app = await modal.App.lookup.aio("night", client=night.client)
    begun, seen = time.monotonic(), 0
    async for _ in app.logs.stream.aio(timeout=20):
        if (seen := seen + 1) == 3:
            break

    assert time.monotonic() - begun >= 3 * 0.15


async def test_containers_are_spared_unless_the_plan_names_them(begin: Begin) -> None:
    night = await begin({"fault": [{"rpc": ["FunctionGetInputs"], "kind": "unavailable", "times": -1}]})
    assert (await night.call("echo", 1))["value"] == 1

    night.plane.faults.clear()
    from kev.emulator.plan import Fault

    night.plane.faults.add(Fault(rpc=("FunctionPutOutputs",), kind="lost-reply", containers=True))
    assert (await night.call("echo", 2))["value"] == 2
    assert hits(night, "FunctionPutOutputs") == ["lost-reply"]


def create_app(night: Night, number: int) -> Any:
    return modal.App.lookup.aio(f"app-{number}", create_if_missing=True, client=night.client)


@pytest.mark.parametrize(
    ("limit", "use"),
    [
        ("listings_per_minute", lambda night, _: night.volume().listdir.aio("/")),
        ("app_creations_per_minute", create_app),
    ],
)
async def test_rates_are_limited_by_the_minute(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, limit: str, use: Callable[[Night, int], Any]
) -> None:
    night = await begin({"limits": {limit: 2}})
    monkeypatch.setenv("MODAL_MAX_THROTTLE_WAIT", "0")
    with pytest.raises(ResourceExhaustedError, match="per minute exceeded"):
        for number in range(3):
            await use(night, number)


@pytest.mark.parametrize("skew", [-3600.0, 90_000.0])
async def test_the_clock_of_containers_can_be_wrong(begin: Begin, skew: float) -> None:
    night = await begin({"clock": {"container_skew_s": skew}})
    stamps = await night.call("clocks")

    assert stamps[2] is True
    for stamp in stamps[:2]:
        assert abs(stamp - skew - datetime.now(UTC).timestamp()) < 60


async def test_a_stopped_container_gives_its_call_to_another_one(night: Night, pipe: Pipe) -> None:
    call = await night.spawn("hold", pipe.path)
    await night.printed("holding")
    night.plane.disrupt(call.object_id, "stop")
    await night.printed("holding", times=2)

    pipe.release("again")
    assert await call.get.aio(timeout=60) == "again"


async def test_a_wrong_token_is_refused(night: Night) -> None:
    stranger = await modal.Client.from_credentials.aio("ak-emulator", "as-wrong")
    with pytest.raises(AuthError):
        await modal.Workspace.from_context(client=stranger).hydrate.aio()
    await stranger.__aexit__(None, None, None)


async def test_a_container_id_that_does_not_run_opens_nothing(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODAL_IS_REMOTE", "1")
    monkeypatch.setenv("MODAL_OVERRIDE_HEADERS", "x-kev-task:ta-0000000000000000000000,x-modal-client-type:3")
    stranger = await modal.Client.from_credentials.aio("ak-x", "as-x")
    with pytest.raises(PermissionDeniedError, match="no running container"):
        await modal.Volume.from_name("night-runs", client=stranger).reload.aio()
    await stranger.__aexit__(None, None, None)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "::1", "192.0.2.1", "example.org", ""])
def test_nothing_but_loopback_is_listened_on(tmp_path: Path, host: str) -> None:
    with pytest.raises(UsageError, match="loopback only"):
        Emulator(tmp_path, host=host)


async def test_two_emulators_do_not_share_a_root_but_can_share_a_process(begin: Begin, tmp_path: Path) -> None:
    first = await begin(deploy=False)
    with pytest.raises(LockHeld):
        await begin(deploy=False)

    second = await begin(deploy=False, root=tmp_path / "other")
    assert first.plane.url != second.plane.url


async def test_a_port_that_is_taken_is_named(begin: Begin, tmp_path: Path) -> None:
    night = await begin(deploy=False)
    with pytest.raises(UsageError, match=f"port {night.plane.port} of 127.0.0.1 cannot be had"):
        await begin(deploy=False, root=tmp_path / "other", port=night.plane.port)
