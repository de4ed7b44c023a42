"""Text is selected with the mouse where it stands, and painting does not pay for that."""

from pathlib import Path

import sample_snapshots as samples
from shown_app import PATIENCE, Shown, shown
from textual.app import App, ComposeResult
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.widgets import Input

from kevtui.widgets.log_rows import LogRows
from kevtui.widgets.log_view import LogView
from kevtui.widgets.text_lines import TextLines


async def drag(pilot: Pilot[object], start: Offset, end: Offset) -> str | None:
    await pilot.mouse_down(offset=start)
    await pilot.hover(offset=end)
    await pilot.mouse_up(offset=end)
    await pilot.pause()
    return pilot.app.screen.get_selected_text()


def place_of(it: Shown, text: str) -> Offset:
    """Where `text` is first shown."""
    y, line = next((y, line) for y, line in enumerate(it.lines()) if text in line)
    return Offset(line.index(text), y)


async def test_text_of_a_panel_is_selected_from_where_the_mouse_went_down_to_where_it_came_up() -> None:
    async with shown(samples.night()) as it:
        words = "headroom"
        place = place_of(it, words)
        assert await drag(it.pilot, place, place + Offset(len(words) - 1, 0)) == words


async def test_text_of_the_help_is_selected_where_it_was_scrolled_to() -> None:
    async with shown(samples.night(), size=(120, 24)) as it:
        await it.pilot.press("question_mark", "pagedown")
        await it.pilot.pause()
        assert it.app.screen.query_one(TextLines).scroll_y == 10
        line = it.app.screen.query_one(TextLines).text().split("\n")[12].strip()
        place = place_of(it, line)
        marked = await drag(it.pilot, place, place + Offset(len(line) - 1, 0))
        assert marked == line
        shown_style = it.app.screen.get_component_rich_style("screen--selection")
        row = it.app.screen._compositor.render_strips()[place.y]
        assert shown_style.bgcolor in {segment.style.bgcolor for segment in row if segment.style}


class LogApp(App[None]):
    def compose(self) -> ComposeResult:
        yield LogView()


async def test_text_of_a_log_that_was_scrolled_sideways_is_selected(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("".join(f"{n:>40} the line {n}\n" for n in range(5)))
    app = LogApp()
    async with app.run_test(size=(40, 10)) as pilot:
        app.query_one(LogView).open(log)
        rows = app.query_one(LogRows)
        for _ in range(PATIENCE):
            if rows.rows:
                break
            await pilot.pause(0.01)
        app.query_one(LogView).focus()
        await pilot.press("right")
        assert rows.x == 20
        y = next(y for y, row in enumerate(rows.rows) if "line 3" in row.text)
        x = rows.rows[y].text.index("line 3") - rows.x
        assert await drag(pilot, Offset(x, y), Offset(x + 5, y)) == "line 3"


async def test_what_is_painted_does_not_have_a_style_for_each_piece_of_text() -> None:
    async with shown(samples.night()) as it:
        await it.pilot.press("question_mark")
        for screen in it.app.screen_stack:
            painted = [segment for strip in screen._compositor.render_strips() for segment in strip]
            own = [segment.text for segment in painted if segment.style and "offset" in segment.style.meta]
            assert "".join(own).strip() in ("", Input.placeholder), own
            assert len({id(segment.style) for segment in painted}) < len(painted) / 4
