"""The dashboard over Snapshots that a test holds, without a terminal."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from sample_snapshots import HeldSource
from textual.pilot import Pilot

from kevtui.app import KevApp, Options
from kevtui.observe.snapshot import Snapshot
from kevtui.screens.watch import WatchScreen

PATIENCE = 500
"""Turns of the event loop; a healthy one needs about five."""


@dataclass
class Shown:
    app: KevApp
    pilot: Pilot[int]
    source: HeldSource

    @property
    def screen(self) -> WatchScreen:
        screen = self.app.screen_stack[0]
        assert isinstance(screen, WatchScreen)
        return screen

    def lines(self) -> list[str]:
        return [strip.text for strip in self.app.screen._compositor.render_strips()]

    def text(self) -> str:
        return "\n".join(self.lines())

    async def arrives(self, snapshot: Snapshot) -> None:
        """The source yields `snapshot`, and it is on the screen when this returns."""
        self.source.put(snapshot)
        await until_shown(self.pilot, snapshot)

    async def arrives_marked(self, snapshot: Snapshot) -> None:
        """The same where something of it was acknowledged here, so that another object is shown for it."""
        self.source.put(snapshot)
        for _ in range(PATIENCE):
            if self.screen.snapshot is not None and self.screen.snapshot.studies is snapshot.studies:
                break
            await self.pilot.pause(0.01)
        await self.pilot.pause()


async def until_shown(pilot: Pilot[Any], snapshot: Snapshot) -> None:
    screen = pilot.app.screen_stack[0]
    assert isinstance(screen, WatchScreen)
    for _ in range(PATIENCE):
        if screen.snapshot is snapshot:
            break
        await pilot.pause(0.01)
    assert screen.snapshot is snapshot, "the Snapshot never came to the screen"
    await pilot.pause()


@asynccontextmanager
async def shown(snapshot: Snapshot, size: tuple[int, int] = (160, 50), **options: Any) -> AsyncIterator[Shown]:
    source = HeldSource(snapshot)
    app = KevApp(lambda: source, title="r41 · night-7", options=Options(**options))
    async with app.run_test(size=size, notifications=True) as pilot:
        await until_shown(pilot, snapshot)
        yield Shown(app, pilot, source)
