"""One container from the start of its process to its end: its turn, its output, and its commits in the background."""

import asyncio
import os
from collections.abc import Callable

from kev.clock import Clock
from kev.emulator.container import Container
from kev.emulator.launch import Launcher
from kev.emulator.narrator import Narrator
from kev.emulator.process import Output
from kev.emulator.store import Store
from kev.emulator.termination import Terminator
from kev.emulator.timings import Timings
from kev.emulator.volume_views import VolumeViews

STARTS_PER_CORE = 2
"""Containers that start at the same time. All at once, none of a hundred would be ready before the last."""


class Runner:
    """Runs containers, of which a few start at a time."""

    def __init__(
        self, store: Store, clock: Clock, launcher: Launcher, views: VolumeViews, narrator: Narrator,
        terminator: Terminator, timings: Timings,
    ) -> None:  # fmt: skip
        self._store = store
        self._clock = clock
        self._launcher = launcher
        self._views = views
        self._narrator = narrator
        self._terminator = terminator
        self._timings = timings
        self._starts = asyncio.Semaphore(max(2, (os.cpu_count() or 1) * STARTS_PER_CORE))

    async def run(self, container: Container, is_needed: Callable[[], bool]) -> None:
        """Start a container when it is its turn, if it is still needed then, and return when its process is gone."""
        task = container.task
        async with self._starts:
            if container.ending or not is_needed():
                return
            task.started = self._clock.now().timestamp()
            self._store.save(task)
            process = await self._launcher.start(
                task, container.function, lambda output: self._printed(container, output)
            )
            container.process = process
            # The container exists: it must be on record before it can do anything that outlives it.
            await self._store.journal.sync()
            if container.ending:
                self._terminator.stop(container, container.ending)
            end = asyncio.ensure_future(process.wait())
            up = asyncio.ensure_future(container.is_up.wait())
            await asyncio.wait((end, up), return_when=asyncio.FIRST_COMPLETED)
            up.cancel()
        commits = asyncio.create_task(self._commit_now_and_then(container))
        try:
            await end
        finally:
            commits.cancel()
            await self._views.close(task.id)

    async def clear(self, container: Container) -> None:
        """Remove what a container that is gone no longer needs."""
        await asyncio.to_thread(self._launcher.clear, container.task)

    async def _commit_now_and_then(self, container: Container) -> None:
        while container.background_volumes:
            await asyncio.sleep(self._timings.background_commit)
            for volume_id in container.background_volumes:
                await self._views.commit(container.task.id, volume_id)

    def _printed(self, container: Container, output: Output) -> None:
        self._narrator.print(container.task, output)
        self._terminator.printed(container, output.text)
