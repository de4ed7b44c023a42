"""Waking those who wait, without losing a wake-up between looking and waiting."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

log = logging.getLogger(__name__)


class Ear:
    """One wait for a bell, begun before the waiter looks at what it waits for."""

    def __init__(self, rung: asyncio.Event) -> None:
        self._rung = rung

    async def wait(self, seconds: float | None = None) -> bool:
        """True once the bell has rung since `listen`, False after `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            return False
        return True


class Bell:
    """Wakes everyone who listens now, and nobody who begins to listen later."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def listen(self) -> Ear:
        return Ear(self._rung)

    def ring(self) -> None:
        self._rung.set()
        self._rung = asyncio.Event()


async def first_of(*ears: Ear, seconds: float | None = None) -> None:
    """Return when any of the bells has rung, or after `seconds`."""
    waits = [asyncio.create_task(ear.wait(seconds)) for ear in ears]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()


class Jobs:
    """Coroutines at work in the background. One that fails says so in the log, since nobody awaits it."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, job: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(job)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def wait(self) -> None:
        """Return when none is left."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a background job failed", exc_info=error)
