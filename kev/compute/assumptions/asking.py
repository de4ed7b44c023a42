"""How an assumption gets on the list, and what its check asks with."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

from kev.compute.client import ModalClient
from kev.compute.contract import Assumption, Differs, Probe
from kev.compute.protocol import CallRef, CallState, LogLine

END_S = 120.0
"""Within which every call of the contract app has ended, image and container start included."""

LOG_IDLE_S = 20.0

CHECKED: list[Assumption] = []

Check = Callable[[Probe], Awaitable[None]]


def assumes(identity: str, statement: str) -> Callable[[Check], Check]:
    """Puts the decorated check on the list; its docstring says how it checks."""

    def register(check: Check) -> Check:
        CHECKED.append(Assumption(identity, statement, " ".join((check.__doc__ or "").split()), check))
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
