"""The assumptions about Modal's server, one by one, each with its check. See `kev.compute.contract`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from kev.compute.client import ModalClient, load_modal
from kev.compute.contract import DICT, VOLUME, Assumption, Differs, Probe
from kev.compute.errors import AuthFailed, NotDeployed
from kev.compute.modal_compute import ModalCompute
from kev.compute.protocol import CallRef, CallState, LogLine, Phase
from kev.compute.volumes import sum_of

END_S = 120.0
"""Within which every call of the contract app has ended, image and container start included."""

LOG_IDLE_S = 20.0
LONG_RESULT = 3_000_000

ASSUMPTIONS: list[Assumption] = []

Check = Callable[[Probe], Awaitable[None]]


def assumes(identity: str, statement: str) -> Callable[[Check], Check]:
    """Puts the decorated check on the list; its docstring says how it checks."""

    def register(check: Check) -> Check:
        ASSUMPTIONS.append(Assumption(identity, statement, " ".join((check.__doc__ or "").split()), check))
        return check

    return register


def expect(condition: object, observed: object) -> None:
    """Raises Differs, with what was observed, unless `condition` holds."""
    if not condition:
        raise Differs(str(observed))


async def start(probe: Probe, function: str, payload: dict[str, Any] | None = None) -> CallRef:
    return await probe.compute.spawn(function, payload or {}, run_id=f"{probe.run}-{function}")


async def end_of(probe: Probe, ref: CallRef) -> CallState:
    return await probe.compute.poll(ref, wait_s=END_S)


async def follow_until(probe: Probe, ref: CallRef, text: str) -> LogLine:
    """The first line of a call that holds `text`. Raises Differs if the log falls silent before."""
    async with aclosing(probe.compute.log_stream(idle_s=LOG_IDLE_S)) as lines:
        async for line in lines:
            if line.call_id == ref.id and text in line.text:
                return line
    raise Differs(f"no line {text!r} of {ref.id} in the stream of the app")


@asynccontextmanager
async def raw_client(probe: Probe) -> AsyncIterator[ModalClient]:
    client = ModalClient(probe.settings)
    try:
        yield client
    finally:
        await client.close()


async def raised_by(question: Awaitable[Any]) -> BaseException | None:
    """What `question` raises, or None."""
    try:
        await question
    except Exception as error:
        return error
    return None


# ---------------------------------------------------------------------------------------------- account and app


@assumes("workspace-name", "the workspace of a token has a name")
async def _(probe: Probe) -> None:
    """Workspace.from_context().hydrate(), and its name is not empty."""
    identity = await probe.compute.ping()
    expect(identity.workspace, identity)


@assumes("bad-token", "a token that is not known is AuthError, at once")
async def _(probe: Probe) -> None:
    """A lookup of the workspace with an invented token."""
    settings = replace(probe.settings, token_id="ak-nobody", token_secret="as-nothing")
    async with ModalCompute(settings) as stranger:
        error = await raised_by(stranger.ping())
    expect(isinstance(error, AuthFailed), repr(error))


@assumes("app-missing", "looking up an app that is not deployed is NotFoundError, and creates nothing")
async def _(probe: Probe) -> None:
    """App.lookup of an invented name, twice."""
    settings = replace(probe.settings, app=f"kev-nothing-{probe.run}")
    async with ModalCompute(settings) as nobody:
        found = [await nobody.app(), await nobody.app()]
    expect(found == [None, None], found)


@assumes("app-info", "a deployed app says its version, when it was deployed, and its functions")
async def _(probe: Probe) -> None:
    """App.lookup().info() of the contract app."""
    app = await probe.compute.app()
    expect(app and app.version >= 1 and app.deployed_at and {"echo", "fail"} <= set(app.functions), app)


@assumes("function-missing", "a function that the app lacks is NotFoundError before anything starts")
async def _(probe: Probe) -> None:
    """spawn of an invented function name."""
    error = await raised_by(start(probe, "no_such_function"))
    expect(isinstance(error, NotDeployed) and not error.may_have_happened, repr(error))


# --------------------------------------------------------------------------------------------------------- calls


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


# ---------------------------------------------------------------------------------------------- logs and containers


@assumes("log-ids", "a line of the app's log stream carries its call (fc-), container (ta-) and function (fu-)")
async def _(probe: Probe) -> None:
    """A call that prints, found in the stream of the whole app."""
    ref = await start(probe, "echo", {"say": "find me"})
    line = await follow_until(probe, ref, "echo find me")
    expect(line.container_id.startswith("ta-") and line.function_id.startswith("fu-"), line)


@assumes("log-tail", "the lines of a call can be fetched after it ended")
async def _(probe: Probe) -> None:
    """FunctionCall.logs.tail, asked until the line is there or a minute has passed."""
    ref = await start(probe, "echo", {"say": "last words"})
    await end_of(probe, ref)
    await follow_until(probe, ref, "last words")
    lines = await probe.compute.log_tail(ref, 10)
    expect(any("last words" in line.text for line in lines), lines)


@assumes("containers-json", "`modal container list --json` names container, app and start under keys that are known")
async def _(probe: Probe) -> None:
    """The list while a call waits in its container."""
    ref = await start(probe, "linger")
    line = await follow_until(probe, ref, "lingering")
    found = [each for each in await probe.compute.containers() if each.id == line.container_id]
    await probe.compute.cancel(ref, hard=True)
    expect(found and found[0].app_id.startswith("ap-") and found[0].started_at, found)


# ------------------------------------------------------------------------------------------------------- volumes


async def write(probe: Probe, name: str, text: str) -> str:
    """Commit a file from within a container; its path on the volume."""
    path = f"{probe.run}/{name}"
    state = await end_of(probe, await start(probe, "write_files", {"files": {path: text}}))
    expect(state.phase is Phase.SUCCEEDED, state)
    return path


@assumes("volume-commit", "what a container committed is listed outside with its size, and reads the same")
async def _(probe: Probe) -> None:
    """A container writes a file and commits; listdir and read_file from here."""
    path = await write(probe, "listed/hello.txt", "hello, volume")
    listed = await probe.compute.listdir(VOLUME, f"{probe.run}/listed")
    expect([(entry.path, entry.size) for entry in listed] == [(path, 13)], listed)
    data = await probe.compute.read(VOLUME, path, limit=1000)
    expect(data == b"hello, volume", data)


@assumes("volume-pull", "a tree can be listed recursively and read file by file")
async def _(probe: Probe) -> None:
    """A pull of three files, two levels deep, one of them empty."""
    for name, text in {"tree/a.txt": "a", "tree/b/c.txt": "c" * 100, "tree/b/empty": ""}.items():
        await write(probe, name, text)
    home = probe.scratch / "tree"
    report = await probe.compute.pull(VOLUME, f"{probe.run}/tree", home)
    expect(report.fetched == ("a.txt", "b/c.txt", "b/empty"), report)
    expect(len(sum_of(home / "b/c.txt")) == 64 and (home / "b/c.txt").stat().st_size == 100, report)


@assumes("volume-missing-path", "listing a directory that is not there is NotFoundError")
async def _(probe: Probe) -> None:
    """Volume.listdir of an invented path, as the client raises it."""
    async with raw_client(probe) as client:
        modal = load_modal()
        volume = modal.Volume.from_name(VOLUME, environment_name=probe.settings.environment, client=await client.open())
        error = await raised_by(volume.listdir.aio(f"{probe.run}/nowhere"))
    expect(isinstance(error, modal.exception.NotFoundError), repr(error))


@assumes("volume-missing-file", "reading a file that is not there is FileNotFoundError")
async def _(probe: Probe) -> None:
    """read of an invented path."""
    found = await probe.compute.read(VOLUME, f"{probe.run}/nothing.txt", limit=10)
    expect(found is None, found)


@assumes("volume-missing", "a volume that does not exist is NotFoundError, and is not created by asking")
async def _(probe: Probe) -> None:
    """listdir of an invented volume, twice."""
    name = f"kev-nothing-{probe.run}"
    found = [await probe.compute.listdir(name, "/"), await probe.compute.listdir(name, "/")]
    expect(found == [[], []], found)


# ---------------------------------------------------------------------------------------------------------- claims


@assumes("claim-once", "Dict.put with skip_if_exists tells exactly one of many callers that the key is new")
async def _(probe: Probe) -> None:
    """Ten claims of one key at once, over two connections."""
    modal = load_modal()
    async with raw_client(probe) as one, raw_client(probe) as other:
        clients = [await one.open(), await other.open()]
        named = [
            modal.Dict.from_name(
                DICT, environment_name=probe.settings.environment, create_if_missing=True, client=client
            )
            for client in clients
        ]
        key = f"{probe.run}/claim"
        answers = await asyncio.gather(*(named[turn % 2].put.aio(key, True, skip_if_exists=True) for turn in range(10)))
        there = await named[0].contains.aio(key)
    expect(sorted(answers) == [False] * 9 + [True] and there, answers)


# ---------------------------------------------------------------------------------------------------------- money


@assumes("billing-report", "the billing report gives rows by app and hour, with exact costs")
async def _(probe: Probe) -> None:
    """The report of the last two hours; it may be empty, since billing is late."""
    now = datetime.now(UTC)
    rows = await probe.compute.billing(now - timedelta(hours=2), now)
    expect(all(row.cost >= 0 and row.app_id for row in rows), rows[:3])


@assumes("billing-summary", "the billing summary has a metered cost from zero up")
async def _(probe: Probe) -> None:
    """The summary of this cycle."""
    summary = await probe.compute.billing_summary()
    expect(summary.metered >= 0 and summary.start <= summary.end, summary)


@assumes("billing-rates", "the platform tells its prices")
async def _(probe: Probe) -> None:
    """The rates; at least one, and none below zero."""
    rates = await probe.compute.rates()
    expect(rates and min(rates.values()) >= 0, rates)


# ------------------------------------------------------------------------------------- what a client cannot check

ASSUMPTIONS += [
    Assumption(
        "spawn-deduplicated",
        "a spawn that the client sends again because the answer was lost starts one call only",
        "Not checkable: an answer cannot be lost on purpose. Nothing relies on it; a doubtful spawn is looked for.",
    ),
    Assumption(
        "throttle-hint",
        "RESOURCE_EXHAUSTED for a rate carries a retry instruction, for a spend limit it carries none",
        "Not checked: it would take hammering the service, or spending up to the limit.",
    ),
    Assumption(
        "result-expiry",
        "a result is kept for seven days after the end of its call, then OutputExpiredError",
        "Not checked: it takes a week.",
    ),
    Assumption(
        "lost-container",
        "a call that the platform gives up is InternalFailure",
        "Not checkable: the platform cannot be made to lose a container for good.",
    ),
    Assumption(
        "claim-kept",
        "a Dict entry is dropped only after a week in which nobody asked for it",
        "Not checked: it takes a week. A lease whose claims are gone is judged by its file alone.",
    ),
]
