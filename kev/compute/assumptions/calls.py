"""Of calls: their ends, their results, and where they are listed."""

from datetime import UTC, datetime, timedelta

from kev.compute.assumptions.asking import END_S, assumes, end_of, expect, follow_until, raised_by, raw_client, start
from kev.compute.client import load_modal
from kev.compute.contract import Probe
from kev.compute.protocol import CallRef, Phase

LONG_RESULT = 3_000_000


@assumes("succeeded", "with cbor payloads a JSON object goes there and comes back the same")
async def _(probe: Probe) -> None:
    """echo of text outside ASCII, nesting, a float, a large integer and null."""
    sent = {"say": "naïve ✓", "deep": [{"a": None, "b": 0.1}], "large": 2**53 + 1}
    state = await end_of(probe, await start(probe, "echo", sent))
    expect(state.phase is Phase.SUCCEEDED and state.result == sent | {"run_id": f"{probe.run}-echo"}, state)


@assumes("result-kept", "the result of a call can be fetched again")
async def _(probe: Probe) -> None:
    """get twice."""
    ref = await start(probe, "echo", {"say": "twice"})
    states = [await end_of(probe, ref), await end_of(probe, ref)]
    expect(states[0] == states[1] and states[0].phase is Phase.SUCCEEDED, states)


@assumes("result-long", "a result of 3 MB comes back whole, through blob storage")
async def _(probe: Probe) -> None:
    """A call that returns 3,000,000 characters."""
    state = await end_of(probe, await start(probe, "long_text", {"length": LONG_RESULT}))
    expect(state.phase is Phase.SUCCEEDED and len(state.result["text"]) == LONG_RESULT, state.phase)


@assumes("active", "get(timeout=0) of a call that has not ended raises the builtin TimeoutError itself")
async def _(probe: Probe) -> None:
    """A call that waits; the exact class of what get raises."""
    ref = await start(probe, "linger")
    async with raw_client(probe) as client:
        call = load_modal().FunctionCall.from_id(ref.id, client=await client.open())
        error = await raised_by(call.get.aio(timeout=0))
    await probe.compute.cancel(ref, hard=True)
    expect(type(error) is TimeoutError, repr(error))


@assumes("failed", "an exception of remote code is RemoteError with its repr, and FAILURE in the call graph")
async def _(probe: Probe) -> None:
    """A call that raises ValueError."""
    state = await end_of(probe, await start(probe, "fail", {"say": "out loud"}))
    expect(state.phase is Phase.FAILED and "ValueError('failed as asked: out loud')" in state.error, state)


@assumes("remote-timeout-error", "a TimeoutError raised by remote code is RemoteError too, with cbor payloads")
async def _(probe: Probe) -> None:
    """A call that raises the builtin TimeoutError must not look unfinished."""
    state = await end_of(probe, await start(probe, "fail_with_timeout_error"))
    expect(state.phase is Phase.FAILED and "TimeoutError" in state.error, state)


@assumes("timed-out", "a call that passes its function's timeout is FunctionTimeoutError")
async def _(probe: Probe) -> None:
    """A call that sleeps in a function with a timeout of one second."""
    state = await end_of(probe, await start(probe, "outlive"))
    expect(state.phase is Phase.TIMED_OUT, state)


@assumes("cancelled-soft", "a cancelled call is RemoteError, and TERMINATED in the call graph")
async def _(probe: Probe) -> None:
    """A call that waits, cancelled once it printed that it runs."""
    ref = await start(probe, "linger")
    await follow_until(probe, ref, "lingering")
    await probe.compute.cancel(ref)
    state = await end_of(probe, ref)
    expect(state.phase is Phase.CANCELLED, state)


@assumes("cancelled-hard", "terminate_containers ends even code that swallows every exception")
async def _(probe: Probe) -> None:
    """A stubborn call, cancelled softly, then hard."""
    ref = await start(probe, "stubborn", {"seconds": 240})
    await follow_until(probe, ref, "stubborn")
    state = await probe.compute.settle(ref, soft_s=0.5, hard_s=END_S)
    expect(state.phase is Phase.CANCELLED, state)


@assumes("cancel-ended", "cancelling a call that has ended changes nothing and is no error")
async def _(probe: Probe) -> None:
    """cancel after success, and the result again."""
    ref = await start(probe, "echo", {"say": "done"})
    before = await end_of(probe, ref)
    await probe.compute.cancel(ref, hard=True)
    after = await end_of(probe, ref)
    expect(before == after and after.phase is Phase.SUCCEEDED, after)


@assumes("call-missing", "a call id that the workspace does not know is NotFoundError")
async def _(probe: Probe) -> None:
    """get of an invented id of the right form."""
    state = await probe.compute.poll(CallRef("fc-01KEV0NO0SUCH0CALL0000000"))
    expect(state.phase is Phase.MISSING, state)


@assumes("crash-retried", "a container of a deployed app that dies is replaced, and its call tried again")
async def _(probe: Probe) -> None:
    """A call that kills its own process once and returns at the second attempt."""
    state = await end_of(probe, await start(probe, "crash_once"))
    expect(state.phase is Phase.SUCCEEDED and state.result == {"attempts": 2}, state)


@assumes("variants", "a call with options of its own is listed under its function with --all-variants")
async def _(probe: Probe) -> None:
    """spawn with another timeout, then `modal function calls --all-variants --json`."""
    began = datetime.now(UTC) - timedelta(minutes=1)
    ref = await probe.compute.spawn("echo", {"say": "variant"}, run_id=f"{probe.run}-variant", timeout_s=77)
    await end_of(probe, ref)
    calls = await probe.compute.recent_calls("echo", since=began)
    mine = [call for call in calls if call.id == ref.id]
    expect(len(mine) == 1 and mine[0].phase is Phase.SUCCEEDED and mine[0].enqueued_at, calls)
