"""The log pane, driven by keys, over real files."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.pilot import Pilot
from textual.widgets import Input

from kevtui.observe import log_reader
from kevtui.observe.log_file import LogFile, LogLine
from kevtui.widgets.log_rows import LogRows
from kevtui.widgets.log_view import LogView


class LogApp(App[None]):
    BINDINGS: ClassVar = [("x", "take('x')"), ("z", "take('z')")]  # keys of whoever holds the pane

    def __init__(self, path: Path, *, ascii_only: bool = False) -> None:
        super().__init__()
        self.path = path
        self.ascii_only = ascii_only
        self.taken: list[str] = []

    def action_take(self, key: str) -> None:
        self.taken.append(key)

    def compose(self) -> ComposeResult:
        yield LogView(ascii=self.ascii_only, poll_s=3600)

    def on_mount(self) -> None:
        view = self.query_one(LogView)
        view.open(self.path)
        view.focus()


def shown(app: LogApp) -> list[str]:
    return [row.text for row in app.query_one(LogRows).rows]


def status(app: LogApp) -> str:
    return str(app.query_one(".log-status").render())


async def until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        await pilot.pause(0.005)
    raise AssertionError(f"still {shown(pilot.app)}, {status(pilot.app)}")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "train.log"
    path.write_text("".join(f"step {step}\n" for step in range(1, 1001)))
    return path


async def test_it_opens_at_the_end_with_line_numbers_and_pages_to_both_ends(log: Path) -> None:
    app = LogApp(log)
    async with app.run_test(size=(60, 11)) as pilot:
        await until(pilot, lambda: "line 991" in status(app))
        assert shown(app) == [f"step {step}" for step in range(991, 1001)]
        assert "following" in status(app) and "100 %" in status(app)
        await pilot.press("home")
        await until(pilot, lambda: shown(app)[0] == "step 1")
        assert "following" not in status(app)
        await pilot.press("pagedown", "down")
        await until(pilot, lambda: shown(app)[0] == "step 11")
        await pilot.press("end")
        await until(pilot, lambda: shown(app)[-1] == "step 1000")


async def test_new_lines_repaint_only_their_own_rows_between_two_scrolls(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = LogApp(log)
    async with app.run_test(size=(60, 13)) as pilot:
        view, rows = app.query_one(LogView), app.query_one(LogRows)
        await until(pilot, lambda: "line 989" in status(app))
        painted: list[Region] = []
        monkeypatch.setattr(rows, "refresh", lambda *regions, **_: painted.extend(regions))
        await view.check()
        assert painted == []
        with log.open("a") as stream:
            stream.write("step 1001\n")
        await view.check()
        assert len(painted) == 12 and shown(app)[-1] == "step 1001"
        assert len(shown(app)) == 9
        painted.clear()
        with log.open("a") as stream:
            stream.write("step 1002\nstep 10")
        await view.check()
        assert [region.y for region in painted] == [9, 10]
        assert shown(app)[-2:] == ["step 1002", "step 10"]


async def test_search_goes_to_older_matches_and_back(log: Path) -> None:
    app = LogApp(log)
    async with app.run_test(size=(60, 11)) as pilot:
        await until(pilot, lambda: shown(app)[-1:] == ["step 1000"])
        await pilot.press("slash")
        app.query_one(Input).value = "step 5"
        await pilot.press("enter")
        await until(pilot, lambda: "step 599" in shown(app))
        await pilot.press("n")
        await until(pilot, lambda: "step 598" in shown(app) and "step 595" in shown(app))
        await pilot.press("N")
        await until(pilot, lambda: app.query_one(LogRows).rows[3].text == "step 599")
        assert app.query_one(LogRows).rows[3].selected
        await pilot.press("slash")
        app.query_one(Input).value = "no such [thing]"
        await pilot.press("enter")
        await until(pilot, lambda: "no older line has “no such [thing]”" in status(app))


async def test_selected_lines_are_copied_as_text(log: Path) -> None:
    app = LogApp(log)
    async with app.run_test(size=(60, 11)) as pilot:
        await until(pilot, lambda: shown(app)[-1:] == ["step 1000"])
        await pilot.press("v", "up", "up", "y")
        await until(pilot, lambda: "3 lines copied" in status(app))
        assert app.clipboard == "step 998\nstep 999\nstep 1000"


async def test_escape_leaves_search_and_selection_and_then_is_for_the_app(log: Path) -> None:
    app = LogApp(log)
    left = []
    app.bind("escape", "left")
    app.action_left = lambda: left.append(True)  # type: ignore[attr-defined]
    async with app.run_test(size=(60, 11)) as pilot:
        await until(pilot, lambda: shown(app)[-1:] == ["step 1000"])
        await pilot.press("v", "escape")
        await until(pilot, lambda: not any(row.selected for row in app.query_one(LogRows).rows))
        await pilot.press("slash", "escape")
        assert not app.query_one(LogView).has_class("searching") and not left
        await pilot.press("escape")
        assert left == [True]


async def test_hostile_lines_are_shown_escaped_and_never_as_markup(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(b"[bold]x[/] [@click=app.quit]go[/]\n\x1b]0;t\x07\rzur\xc3\xbcck \xff\n" + b"#" * 10_000_000)
    app = LogApp(path)
    async with app.run_test(size=(80, 60)) as pilot:
        await until(pilot, lambda: len(shown(app)) > 2)
        await pilot.press("home")
        await until(pilot, lambda: shown(app)[0].startswith("[bold]"))
        assert shown(app)[0] == "[bold]x[/] [@click=app.quit]go[/]"
        assert shown(app)[1] == "\\x1b]0;t\\x07\\rzurück \\xff"


async def test_with_ascii_only_ascii_is_painted(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes("zurück – 日本\n".encode() + b"x" * 600_000)
    app = LogApp(path, ascii_only=True)
    async with app.run_test(size=(80, 12)) as pilot:
        await until(pilot, lambda: len(shown(app)) > 2)
        strips = [app.query_one(LogRows).render_line(y).text for y in range(11)]
        assert "".join(strips).isascii() and status(app).isascii()
        assert "zur\\xfcck" in strips[0]


async def test_a_missing_log_a_cut_one_and_a_deleted_one_are_said(log: Path) -> None:
    app = LogApp(log.with_name("absent.log"))
    async with app.run_test(size=(100, 11)) as pilot:
        await until(pilot, lambda: "no such log" in status(app))
        view = app.query_one(LogView)
        view.open(log)
        await until(pilot, lambda: shown(app)[-1:] == ["step 1000"])
        log.write_text("fresh\n")
        await view.check()
        assert shown(app) == ["fresh"] and "was cut back" in status(app)
        log.unlink()
        await view.check()
        assert shown(app) == ["fresh"] and "deleted" in status(app)


async def test_a_pane_taken_away_in_the_middle_of_reading_leaves_no_error(log: Path) -> None:
    app = LogApp(log)
    async with app.run_test(size=(60, 11)) as pilot:
        await until(pilot, lambda: shown(app)[-1:] == ["step 1000"])
        view = app.query_one(LogView)
        view.open(log)
        moving = asyncio.gather(view.action_home(), view.check(), view.on_resize())
        await view.remove()
        await moving
        view.open(log)
        await view.action_home()
        view.action_shift(1)


@pytest.mark.parametrize("size", [(1, 1), (2, 1), (1, 2), (3, 3), (500, 200)])
async def test_any_size_of_pane_is_survived(log: Path, size: tuple[int, int]) -> None:
    app = LogApp(log)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: len(shown(app)) > 0)
        await pilot.press("home", "right", "end", "left", "slash", "escape")
        await pilot.resize_terminal(40, 10)
        await until(pilot, lambda: len(shown(app)) == 9)


async def test_keys_go_on_working_while_the_log_hangs_and_are_made_up_for_when_it_answers(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()
    answers.set()

    class HangingFile(LogFile):
        def before(self, offset: int, rows: int) -> list[LogLine]:
            assert answers.wait(60)
            return super().before(offset, rows)

    monkeypatch.setattr(log_reader, "LogFile", HangingFile)
    app = LogApp(log)
    async with app.run_test(size=(60, 11)) as pilot:
        await until(pilot, lambda: "line 991" in status(app))
        answers.clear()
        await pilot.press("pageup", "up", "up", "x", "z")
        assert app.taken == ["x", "z"]
        assert "line 991" in status(app), "it still hangs"
        answers.set()
        await until(pilot, lambda: "line 980" in status(app))


async def test_a_pane_can_be_taken_away_and_opened_on_another_log_while_one_hangs(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()

    class HangingFile(LogFile):
        def __init__(self, path: Path) -> None:
            if path == log:
                assert answers.wait(60)
            super().__init__(path)

    monkeypatch.setattr(log_reader, "LogFile", HangingFile)
    other = log.with_name("other.log")
    other.write_text("another line\n")
    app = LogApp(log)
    async with app.run_test(size=(60, 11)) as pilot:
        await pilot.press("pageup", "up")
        assert "train.log" in status(app)
        app.query_one(LogView).open(other)
        await until(pilot, lambda: shown(app) == ["another line"])
        app.query_one(LogView).open(log)
        await pilot.press("up")
        await app.query_one(LogView).remove()
    answers.set()
