"""What opens over the panels closes once, whatever keys are still on their way to it."""

import asyncio
import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest
import sample_snapshots as samples
from shown_app import PATIENCE, shown
from textual._compositor import Compositor, LayoutUpdate, ReflowResult
from textual.geometry import Size
from textual.widget import Widget
from textual.widgets import Input


async def test_enter_and_escape_together_close_the_palette_and_nothing_under_it() -> None:
    async with shown(samples.night()) as it:
        await it.pilot.press("ctrl+p")
        palette = it.app.screen
        field = palette.query_one(Input)
        field.post_message(Input.Submitted(field, "", None))
        palette.dismiss("")
        await it.pilot.pause()
        assert it.app.screen_stack == [it.screen]
        palette.dismiss("")
        await it.pilot.pause()
        assert it.app.screen_stack == [it.screen] and it.app.is_running


async def test_what_lies_under_a_dialog_that_opens_is_not_laid_out_again() -> None:
    async with shown(samples.night()) as it:
        laid_out: list[str] = []
        with following(laid_out):
            await it.pilot.press("question_mark")
            await it.pilot.pause()
        assert set(laid_out) == {"HelpScreen"}
        assert "escape closes" in it.text()


async def test_the_panels_show_through_around_a_dialog_from_its_first_painting() -> None:
    async with shown(samples.night()) as it:
        panels = it.lines()
        await it.pilot.press("question_mark")
        assert it.lines()[0] == panels[0] != ""
        assert it.lines()[-1] == panels[-1] != ""


async def test_the_screen_can_be_painted_again_while_a_dialog_is_open() -> None:
    async with shown(samples.night()) as it:
        await it.pilot.press("question_mark")
        displayed: list[object] = []
        with patch.object(it.app, "_display", lambda _screen, update: displayed.append(update)):
            await it.pilot.press("ctrl+l")
            await it.pilot.pause()
        assert any(isinstance(update, LayoutUpdate) for update in displayed)


@pytest.mark.parametrize("key", ["question_mark", "ctrl+p", "enter", "v"])
async def test_ctrl_z_suspends_whatever_is_open_over_the_panels(key: str) -> None:
    async with shown(samples.night()) as it:
        await it.pilot.press(key)
        assert len(it.app.screen_stack) == 2
        suspended: list[bool] = []
        with patch.object(it.app, "action_suspend_process", lambda: suspended.append(True)):
            await it.pilot.press("ctrl+z")
        assert suspended == [True] and len(it.app.screen_stack) == 2


@contextmanager
def following(laid_out: list[str]) -> Iterator[None]:
    """Notes the screens that are laid out meanwhile."""
    reflow = Compositor.reflow

    def noting(self: Compositor, parent: Widget, size: Size) -> ReflowResult:
        laid_out.append(type(parent).__name__)
        return reflow(self, parent, size)

    with patch.object(Compositor, "reflow", noting):
        yield


async def test_what_a_dialog_painted_does_not_stay_in_memory_after_it() -> None:
    async with shown(samples.night()) as it:
        await it.pilot.press("enter")
        painted = [weakref.ref(widget._styles_cache) for widget in it.app.screen.walk_children(with_self=True)]
        assert any(each()._cache for each in painted)
        await it.pilot.press("escape")
        for _ in range(PATIENCE):
            gc.collect()
            if not any(each() for each in painted):
                break
            await it.pilot.pause(0.01)
        assert [each() for each in painted if each() is not None] == []


async def test_a_dialog_that_opens_while_painting_is_held_back_is_painted_after_that() -> None:
    async with shown(samples.night()) as it:
        displayed: list[object] = []
        with patch.object(it.app, "_display", lambda _screen, update: displayed.append(update)):
            with it.app.batch_update():
                it.screen.action_help()
                for _ in range(PATIENCE):
                    if it.app.screen is not it.screen and it.app.screen._compositor.size:
                        break
                    await asyncio.sleep(0)
                displayed.clear()
            await it.pilot.press("down")
            await it.pilot.pause()
        assert any(isinstance(update, LayoutUpdate) for update in displayed)
