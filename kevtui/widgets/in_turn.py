"""Work that is done in the order it was asked for, and that no key waits for longer than a moment.

A widget handles one message after another, and every key passes through the widget that has the focus: one that waited
for a disk that hangs would take the whole keyboard with it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

Work = Callable[[], Coroutine[Any, Any, None]]

PATIENCE_S = 0.2
"""A disk that answers does so long before; what comes next then sees what this has done."""

MOST = 32
"""So much is remembered while nothing answers; more is not taken."""


class InTurn:
    """Does one piece of work at a time. Belongs to one event loop."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def busy(self) -> bool:
        """Whether something that was asked for is not done."""
        self._tasks = [task for task in self._tasks if not task.done()]
        return bool(self._tasks)

    async def do(self, work: Work) -> None:
        """Do `work` behind everything before it. Comes back when it is done, or when that takes more than a moment."""
        was_busy = self.busy
        if len(self._tasks) >= MOST:
            return
        task = asyncio.create_task(_after(self._tasks[-1] if was_busy else None, work))
        self._tasks.append(task)
        if not was_busy:
            await asyncio.wait({task}, timeout=self._patience_s)
            if task.done() and not task.cancelled():
                task.result()

    def drop(self) -> None:
        """Forget whatever is not done."""
        for task in self._tasks:
            task.cancel()
        self._tasks = []


async def _after(before: "asyncio.Task[None] | None", work: Work) -> None:
    if before is not None:
        await asyncio.wait({before})
    await work()
