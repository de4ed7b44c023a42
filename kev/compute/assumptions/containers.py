"""Of containers, and of what they print."""

from kev.compute.assumptions.asking import assumes, end_of, expect, follow_until, start
from kev.compute.contract import Probe


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


@assumes("workdir", "a function begins in the working directory that its image names")
async def _(probe: Probe) -> None:
    """A call that tells where it is, with an image that ends in .workdir(...)."""
    state = await end_of(probe, await start(probe, "tell_place"))
    expect(str((state.result or {}).get("place", "")).endswith("/kev-contract"), state)
