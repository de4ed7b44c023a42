"""Starting, ending and listing calls; deploying; containers and money, as the stock client tells of them."""

import os
from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from kev.compute.calls import summary_of
from kev.compute.client import FORCED
from kev.compute.errors import Unavailable, Unreadable
from kev.compute.fleet import container_of
from kev.compute.protocol import DeployEventKind, Phase
from kev.emulator.plan import ENDLESS, Fault
from kev.errors import UsageError

from .conftest import OpenPlace, Place


async def raised_by(question: Awaitable[Any]) -> BaseException | None:
    try:
        await question
    except Exception as error:
        return error
    return None


async def test_a_call_goes_there_and_comes_back_as_json_with_its_run_id(place: Place) -> None:
    payload = {"say": "naïve ✓\u2028", "deep": [{"a": None, "b": 0.1}], "large": 2**60}
    ref = await place.compute.spawn("echo", payload, run_id="r41/00-trial-0")
    assert (ref.function, ref.run_id) == ("echo", "r41/00-trial-0")
    state = await place.end_of(ref)
    assert (state.phase, state.result) == (Phase.SUCCEEDED, payload | {"run_id": "r41/00-trial-0"})
    assert await place.end_of(ref) == state


async def test_a_result_that_is_no_json_is_a_success_that_says_so(place: Place) -> None:
    state = await place.run("not_json")
    assert (state.phase, state.result) == (Phase.SUCCEEDED, None)
    assert "not JSON" in state.error


@pytest.mark.parametrize("payload", [{"a": float("nan")}, {"a": b"bytes"}, {"a": (1, 2)}, {"a": datetime.now(UTC)},
                                     {"run_id": "another"}, {1: "a"}])  # fmt: skip
async def test_a_payload_that_would_not_arrive_as_it_is_is_refused_before_anything_is_asked(
    place: Place, payload: dict[str, Any]
) -> None:
    with pytest.raises(UsageError, match="payload of r"):
        await place.compute.spawn("echo", payload, run_id="r")
    assert place.asked("FunctionGet") == 0


async def test_one_lost_answer_is_repaired_by_the_client_and_starts_one_call(place: Place) -> None:
    place.fault(rpc=("spawn",), kind="lost-reply")
    ref = await place.start("echo")
    calls = await place.compute.recent_calls("echo", since=datetime.now(UTC) - timedelta(minutes=5))
    assert [call.id for call in calls] == [ref.id]


async def test_when_every_answer_is_lost_the_error_says_that_the_call_may_exist_and_the_list_shows_it(
    place: Place,
) -> None:
    place.fault(rpc=("spawn",), kind="lost-reply", times=-1)
    error = await raised_by(place.start("echo"))
    assert isinstance(error, Unavailable)
    assert error.may_have_happened
    calls = await place.compute.recent_calls("echo", since=datetime.now(UTC) - timedelta(minutes=5))
    assert len(calls) == 1


async def test_trouble_before_the_request_left_says_that_nothing_was_started(place: Place) -> None:
    await place.compute.ping()
    place.fault(rpc=("FunctionGet",), kind="unavailable", times=-1)
    error = await raised_by(place.start("echo"))
    assert isinstance(error, Unavailable)
    assert not error.may_have_happened
    assert place.asked("FunctionMap") == 0


async def test_a_call_can_have_a_timeout_of_its_own(place: Place) -> None:
    ref = await place.start("linger", timeout_s=1)
    assert (await place.end_of(ref)).phase is Phase.TIMED_OUT


async def test_settling_ends_what_swallows_every_exception(place: Place) -> None:
    ref = await place.start("stubborn", {"seconds": 240})
    await place.printed(ref, "stubborn")
    state = await place.compute.settle(ref, soft_s=0.5, hard_s=30)
    assert state.phase is Phase.CANCELLED
    assert place.asked("FunctionCallCancel") == 2


async def test_settling_what_heeds_the_first_word_needs_no_second(place: Place) -> None:
    ref = await place.start("linger")
    await place.printed(ref, "lingering")
    assert (await place.compute.settle(ref, soft_s=30, hard_s=1)).phase is Phase.CANCELLED
    assert place.asked("FunctionCallCancel") == 1


async def test_settling_rides_out_a_throttle(place: Place) -> None:
    ref = await place.start("linger")
    await place.printed(ref, "lingering")
    place.fault(rpc=("poll",), kind="throttle", retry_after_s=0.01, times=5)
    assert (await place.compute.settle(ref, soft_s=30, hard_s=1)).phase is Phase.CANCELLED


async def test_the_settings_that_compute_depends_on_hold_whatever_the_user_set(
    open_place: OpenPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODAL_PAYLOAD_FORMAT", "pickle")
    monkeypatch.setenv("MODAL_MAX_THROTTLE_WAIT", "1000")
    place = await open_place()
    await place.compute.ping()
    assert {name: os.environ[name] for name in FORCED} == FORCED
    assert "MODAL_TOKEN_SECRET" not in os.environ


async def test_a_secret_is_not_in_the_text_of_the_settings(place: Place) -> None:
    assert place.settings.token_secret
    assert place.settings.token_secret not in repr(place.settings)


async def test_a_deployment_is_told_line_by_line_and_ends_in_one_event(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "small_app.py"
    file.write_text("import modal\napp = modal.App('x')\n@app.function()\ndef f(payload):\n    return payload\n")
    events = [event async for event in place.compute.deploy(str(file), tag="v1")]
    assert [event.kind for event in events[-2:]] == [DeployEventKind.OUTPUT, DeployEventKind.DEPLOYED]
    app = await place.compute.app()
    assert app is not None and (app.version, app.functions) == (2, ("f",))
    file.write_text("raise ValueError('\\x1b[31mnot an app')\n")
    events = [event async for event in place.compute.deploy(str(file))]
    assert events[-1].kind is DeployEventKind.FAILED
    assert "not an app" in events[-1].text
    assert not any("\x1b" in event.text for event in events)
    app = await place.compute.app()
    assert app is not None and app.version == 2


async def test_a_deployment_that_nobody_waits_for_any_more_is_ended(place: Place, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    file = tmp_path / "slow_app.py"
    file.write_text(
        f"import os, time\nopen({str(pid_file)!r}, 'w').write(str(os.getpid()))\nprint('begun', flush=True)\n"
        "while True:\n    try: time.sleep(60)\n    except KeyboardInterrupt: raise SystemExit(1)\n"
    )
    events = place.compute.deploy(str(file))
    assert (await anext(events)).text == "begun"
    await events.aclose()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


def test_rows_of_older_command_lines_and_strange_ones_are_read_too() -> None:
    old = container_of({"Container ID": "ta-1", "App ID": "ap-1", "App Name": "x\x1b", "Start Time": "Pending"})
    assert (old.id, old.app_id, old.app_name, old.started_at) == ("ta-1", "ap-1", "x\\x1b", None)
    assert container_of({}).id == ""
    call = summary_of({"function_call_id": None, "status": "kernel oom kill", "enqueued_at": "2027-01-01T00:00:00"})
    assert (call.id, call.phase, call.enqueued_at, call.execution_s) == ("", Phase.FAILED, None, None)


async def test_money_of_an_emulator_is_exact_and_marked_as_simulated(place: Place) -> None:
    await place.run("echo")
    now = datetime.now(UTC)
    (row,) = await place.compute.billing(now - timedelta(hours=1), now + timedelta(hours=1))
    assert row.simulated and isinstance(row.cost, Decimal) and row.cost > 0
    summary = await place.compute.billing_summary()
    assert summary.simulated and summary.metered >= row.cost and summary.billed == 0
    assert (await place.compute.ping()).simulated


@pytest.mark.parametrize("text", ["", "12,40", "unlimited"])
async def test_a_bill_that_cannot_be_read_is_told_from_one_that_did_not_come(
    place: Place, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kev.emulator.money._text", lambda _: text)
    with pytest.raises(Unreadable, match="read the bill"):
        await place.compute.billing_summary()
    monkeypatch.undo()
    place.plane.faults.add(Fault(rpc=("billing",), kind="unavailable", times=ENDLESS))
    with pytest.raises(Unavailable):
        await place.compute.billing_summary()


async def test_prices_are_asked_for_once_a_day(place: Place) -> None:
    first = await place.compute.rates()
    assert first["H200"] == Decimal("4.54")
    first.clear()
    assert (await place.compute.rates())["H200"] == Decimal("4.54")
    assert place.asked("WorkspaceBillingRates") == 1
