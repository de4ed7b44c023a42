"""Waiting as long as the provider asks for: whoever asks too often is told so, which is no failure of anything."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from kev.compute.errors import Throttled
from kev.gate import Gate

PAUSE_S = 2.0
"""Of a throttle that does not say how long it lasts."""

PATIENCE_S = 1800.0
"""For throttles, in all: as long as a session waits for anything before it goes on without."""

Answer = TypeVar("Answer")


async def patiently(gate: Gate, ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """What `ask` answers. Who asks too often is told how long to wait, and waits; that says nothing of the app."""
    return await wait_out(ask, gate.say, gate.sleep)


async def wait_out(
    ask: Callable[[], Awaitable[Answer]], say: Callable[[str], None], sleep: Callable[[float], Awaitable[None]]
) -> Answer:
    """As `patiently`, where there is no gate yet."""
    waited = 0.0
    while True:
        try:
            return await ask()
        except Throttled as error:
            pause = error.retry_after_s or PAUSE_S
            if waited + pause > PATIENCE_S:
                raise
            if not waited:
                say(f"asked too often, going on in {pause:g} s ({error})")
            waited += pause
            await sleep(pause)
