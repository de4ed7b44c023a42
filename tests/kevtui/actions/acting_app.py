"""The dashboard over a real checkout, in memory: real keys, real `kevtui act`, and an engine that counts its calls."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from action_lab import ActionLab
from textual.pilot import Pilot

from kev.clock import SystemClock
from kevtui.actions.hands import ACT, Hands
from kevtui.actions.sight import Eyes
from kevtui.app import KevApp, Options
from kevtui.observe.observer import Observer
from kevtui.observe.target import resolve
from kevtui.screens.action_dialog import ActionDialog
from kevtui.screens.watch import WatchScreen

PATIENCE = 1500


@dataclass
class Acting:
    app: KevApp
    pilot: Pilot[int]
    lab: ActionLab

    @property
    def screen(self) -> WatchScreen:
        screen = self.app.screen_stack[0]
        assert isinstance(screen, WatchScreen)
        return screen

    def text(self) -> str:
        return "\n".join(strip.text for strip in self.app.screen._compositor.render_strips())

    async def until(self, condition: Any, what: str) -> None:
        for _ in range(PATIENCE):
            if condition():
                await self.pilot.pause()
                return
            await self.pilot.pause(0.02)
        raise AssertionError(f"waited in vain for {what}:\n{self.text()}")

    async def until_shown(self, words: str) -> None:
        await self.until(lambda: words in self.text(), words)

    async def press(self, *keys: str) -> None:
        """Press keys as a person does, with enough quiet before each."""
        for key in keys:
            self.app.typing._last -= 10
            await self.pilot.press(key)

    async def dialog(self) -> ActionDialog:
        """The dialog, once its figures are there."""
        await self.until(lambda: isinstance(self.app.screen, ActionDialog), "a dialog")
        screen = self.app.screen
        assert isinstance(screen, ActionDialog)
        await self.until(lambda: screen._painted_at < float("inf"), "the dialog's figures")
        return screen

    async def type(self, text: str) -> None:
        await self.pilot.press(*text)


@asynccontextmanager
async def acting(
    lab: ActionLab, *, size: tuple[int, int] = (110, 40), undo_window_s: float = 0.0, read_only: bool = False,
    argument: str = "r201", in_control: bool = True, command: tuple[str, ...] = ACT, **options: Any,
) -> AsyncIterator[Acting]:  # fmt: skip
    clock = SystemClock()
    target = resolve(argument, root=lab.root, cwd=lab.root)

    def open_eyes() -> Eyes:
        return (
            Eyes(lab.root, clock) if read_only else Hands(lab.root, clock, undo_window_s=undo_window_s, command=command)
        )

    app = KevApp(
        lambda: Observer(target, clock=clock, leases=None, poll=True), title=target.title,
        options=Options(open_eyes=open_eyes, may_act=not read_only, **options),
    )  # fmt: skip
    async with app.run_test(size=size, notifications=True) as pilot:
        it = Acting(app, pilot, lab)
        await it.until(lambda: it.screen.actions._sight is not None, "the first look")
        if in_control and not read_only:
            await it.until_shown("CONTROL")
        yield it
