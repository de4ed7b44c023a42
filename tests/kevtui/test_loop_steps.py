"""No step of the event loop is long: a key waits for one at most, whatever the studies report meanwhile."""

import asyncio
import gc
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.style import Style
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widgets import Static

sys.path.insert(0, str(Path(__file__).parents[1] / "terminal"))

from session_files import NAME, SessionFiles

from kev.clock import SystemClock
from kevtui.app import KevApp
from kevtui.observe.observer import Observer
from kevtui.observe.target import resolve
from kevtui.screens.over import OverScreen
from kevtui.screens.watch import WatchScreen

REPORT_CPU_S = 0.05
"""Of any step while 20 studies report. On an idle machine the longest takes a tenth of it."""

KEY_CPU_S = 0.1
"""Of any step that a key causes: opening a dialog is the longest of them."""


TRIES = 3
"""The best of them counts: CPU time, too, is longer on a busy machine."""

KEYS = ("j", "z", "z", "question_mark", "escape", "enter", "escape", "ctrl+p", "escape", "e", "escape", "i", "escape")
"""All that opens or rearranges something, and back."""


@contextmanager
def steps() -> Iterator[list[tuple[float, str]]]:
    """CPU seconds of each step that the event loop of this thread makes in the block, and what it was."""
    taken: list[tuple[float, str]] = []
    run = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        begun = time.thread_time()
        run(handle)
        taken.append((time.thread_time() - begun, repr(handle)[:200]))

    gc.collect()
    gc.freeze()  # as the dashboard does once it stands: what tests left behind is not its own
    asyncio.Handle._run = timed  # type: ignore[method-assign]
    try:
        yield taken
    finally:
        asyncio.Handle._run = run  # type: ignore[method-assign]


def watch(app: KevApp) -> WatchScreen:
    screen = app.screen_stack[0]
    assert isinstance(screen, WatchScreen)
    return screen


async def shown(app: KevApp, pilot: Pilot[int]) -> None:
    for _ in range(500):
        await pilot.pause(0.02)
        if watch(app).snapshot is not None:
            break
    await pilot.pause()


@pytest.fixture
def session(tmp_path: Path) -> SessionFiles:
    return SessionFiles(tmp_path, studies=20, trials=1).write()


def app_over(session: SessionFiles) -> KevApp:
    target = resolve(NAME, root=session.root, cwd=session.root)
    return KevApp(lambda: Observer(target, clock=SystemClock(), poll=True), title=target.title)


async def test_twenty_studies_that_report_keep_no_key_waiting(session: SessionFiles) -> None:
    app, longest = app_over(session), []
    async with app.run_test(size=(160, 50)) as pilot:
        await shown(app, pilot)
        for tick in range(1, 1 + TRIES):
            with steps() as taken:
                for study in range(20):
                    session.step(study, 0, session.first_step + tick)
                before = watch(app).snapshot
                for _ in range(300):
                    await pilot.pause(0.02)
                    if watch(app).snapshot is not before:
                        break
                await pilot.pause()
            longest.append(max(taken))
        lines = app.screen._compositor.render_strips()
        assert f"{session.first_step + TRIES}/" in "".join(line.text for line in lines), "the reports are on the screen"
    assert min(longest)[0] < REPORT_CPU_S, longest


async def test_no_key_makes_a_long_step(session: SessionFiles) -> None:
    app, longest = app_over(session), []
    async with app.run_test(size=(160, 50)) as pilot:
        await shown(app, pilot)
        for key in KEYS:  # once unmeasured: the first time imports what it opens
            await pilot.press(key)
        for _ in range(TRIES):
            with steps() as taken:
                for key in KEYS:
                    await pilot.press(key)
                    await pilot.pause()
            longest.append(max(taken))
        assert app.screen is watch(app)
    assert min(longest)[0] < KEY_CPU_S, longest


class Ours(OverScreen[None]):
    def compose(self) -> ComposeResult:
        yield Static("above")


class Theirs(ModalScreen[None]):
    compose = Ours.compose


@pytest.mark.parametrize("background", ["$background 60%", "transparent", "red"])
async def test_what_is_under_a_dialog_is_drawn_as_textual_draws_it(background: str) -> None:
    class Under(App[None]):
        CSS = f"Ours, Theirs {{ background: {background}; align: center middle; }} Static {{ width: 9; }}"

        def compose(self) -> ComposeResult:
            yield Static("[bold red on blue]red[/] plain [@click=app.bell]a link[/] 日本", classes="under")

    app, drawn = Under(), []
    async with app.run_test(size=(40, 6)) as pilot:
        for screen in (Ours(), Theirs()):
            await app.push_screen(screen)
            await pilot.pause()
            drawn.append([cells(strip) for strip in screen._compositor.render_strips()])
            await app.pop_screen()
    assert drawn[0] == drawn[1]
    letters = {letter for line in drawn[0] for letter, *_ in line}
    assert ("p" in letters) is (background != "red"), "what is under it shows through"


def cells(strip: Strip) -> list[tuple[object, ...]]:
    """Each letter with what can be seen of its style, and what a click on it would do."""
    found: list[tuple[object, ...]] = []
    for text, style, _ in strip:
        style = style or Style()
        found += [(letter, style.bgcolor, None if letter == " " else style, bool(style.meta)) for letter in text]
    return found
