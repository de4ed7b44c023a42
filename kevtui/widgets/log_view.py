"""A log pane: opens at the end of a log of any size, follows it, searches it, copies from it.

All reading happens on one thread of its own, in pieces short enough that a key never waits for a search.
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input, Static

from kev.errors import KevError, UsageError
from kev.text import visible
from kevtui.observe import log_page
from kevtui.observe.log_file import Change, LogFile, LogLine
from kevtui.observe.log_page import Page
from kevtui.observe.log_reader import LogReader, ReaderClosed
from kevtui.observe.log_search import Query, Search
from kevtui.widgets.in_turn import InTurn
from kevtui.widgets.log_rows import LogRows, Row

T = TypeVar("T")
Turn = Callable[[LogFile, Page, int], Page]
"""(log, page in view, height of the view) -> the page to show."""

SEARCH_SLICE_S = 0.03
"""How long a search reads before anything else that waits for the file has its turn."""

NUMBERED_BYTES = 64 * 1024 * 1024
"""A log up to this size has its lines counted unasked; a larger one would be read whole for nothing."""


class LogView(Widget, can_focus=True):
    """One log. `open` shows its end; `check` looks for news at once, besides the look every `poll_s` seconds."""

    DEFAULT_CSS = """
    LogView { layout: vertical; }
    LogView > .log-status { height: 1; width: 1fr; text-style: bold; }
    LogView > Input { display: none; }
    LogView.searching > Input { display: block; }
    LogView.searching > .log-status { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "line up", id="log.up", show=False),
        Binding("down,j", "move(1)", "line down", id="log.down", show=False),
        Binding("pageup,ctrl+b", "page(-1)", "page up", id="log.page-up", show=False),
        Binding("pagedown,ctrl+f,space", "page(1)", "page down", id="log.page-down", show=False),
        Binding("home,g", "home", "beginning", id="log.home", show=False),
        Binding("end,G", "end", "end, and follow", id="log.end", show=False),
        Binding("left", "shift(-1)", "left", id="log.left", show=False),
        Binding("right", "shift(1)", "right", id="log.right", show=False),
        Binding("slash", "search", "search", id="log.search", show=False),
        Binding("n", "again(-1)", "next older match", id="log.older", show=False),
        Binding("N", "again(1)", "next newer match", id="log.newer", show=False),
        Binding("v", "mark", "select lines", id="log.mark", show=False),
        Binding("y", "copy", "copy the selected lines", id="log.copy", show=False),
        Binding("escape", "leave", "stop searching or selecting", id="log.leave", show=False),
    ]

    def __init__(self, *, ascii: bool = False, poll_s: float = 1.0, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._ascii = ascii
        self._poll_s = poll_s
        self._reader: LogReader | None = None
        self._in_turn = InTurn()
        self._page = Page()
        self._bytes = 0
        self._number: int | None = None
        """Of the first line in view, once the lines are counted."""
        self._note = ""
        self._query: Query | None = None
        self._match: int | None = None
        self._search_task: asyncio.Task[None] | None = None
        self._selection: tuple[int, int] | None = None
        """Starts of the line where selecting began and of the line it has come to."""
        # Held, not looked up: an answer of the reading thread may come when the pane is being taken away.
        self._rows = LogRows()
        self._status_line = Static(classes="log-status", markup=False)
        self._status_text = ""
        self._input = Input(placeholder="search older lines: text, or ~regular expression", compact=True)
        self._input.cursor_blink = False
        self._input.can_focus = False

    def compose(self) -> ComposeResult:
        yield self._rows
        yield self._status_line
        yield self._input

    def on_mount(self) -> None:
        self.set_interval(self._poll_s, self.check)
        self._show()

    def on_unmount(self) -> None:
        self._close()

    # --------------------------------------------------------------------------------------- opening and following

    def open(self, path: Path) -> None:
        """Show the end of `path` and follow it. What cannot be opened is said in the pane."""
        self._close()
        self._reader = LogReader(path)
        self._page, self._bytes, self._number = Page(), 0, None
        self._note, self._match, self._selection = "", None, None
        self._show()
        self.run_worker(self._open(), exclusive=True, group="log-open")

    async def _open(self) -> None:
        await self._turn(log_page.last_page)
        counting = self._bytes <= NUMBERED_BYTES
        while counting:
            counting = bool(await self._read(LogFile.count_block))
        await self._turn(lambda _log, page, _height: page)

    def _close(self) -> None:
        self._stop_search()
        self._in_turn.drop()
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    async def check(self) -> None:
        """Look whether the log changed, and show what is new. Costs one stat, and no byte where nothing changed."""
        if self._reader is not None and self.is_on_screen and not self._in_turn.busy:
            await self._in_turn.do(self._check)

    async def _check(self) -> None:
        change = await self._read(LogFile.check)
        match change:
            case Change.GREW:
                await self._turn(log_page.grown)
            case Change.TRUNCATED | Change.REPLACED:
                self._match = self._selection = None
                self._note = "was cut back" if change is Change.TRUNCATED else "replaced by a new file"
                await self._turn(log_page.last_page)
            case Change.GONE if self._note != "deleted":
                self._note = "deleted"
                self._show()

    async def _read(self, function: Callable[[LogFile], T]) -> T | None:
        """`function` of the log, on its thread; None where the file fails, with the reason shown, or was closed."""
        if self._reader is None:
            return None
        try:
            return await self._reader.read(function)
        except ReaderClosed:
            return None
        except KevError as error:
            if self._note != (note := visible(str(error))):
                self._note = note
                self._show()
            return None

    async def _turn(self, turn: Turn) -> None:
        page, height = self._page, self._height

        def read(log: LogFile) -> tuple[Page, int, int | None]:
            turned = turn(log, page, height)
            return turned, log.size, log.number_of(turned.top) if log.counted else None

        if (read_back := await self._read(read)) is not None:
            self._page, self._bytes, self._number = read_back
            self._show()

    # ------------------------------------------------------------------------------------------------------ moving

    @property
    def _height(self) -> int:
        return max(1, self._rows.size.height)

    async def on_resize(self) -> None:
        await self._turn_soon(log_page.resized)

    async def _turn_soon(self, turn: Turn) -> None:
        await self._in_turn.do(lambda: self._turn(turn))

    async def action_move(self, rows: int) -> None:
        await self._in_turn.do(lambda: self._move(rows))

    async def _move(self, rows: int) -> None:
        if self._selection is None:
            await self._turn(lambda log, page, height: log_page.moved(log, page, rows, height))
            return
        begun, cursor = self._selection
        there = await self._read(lambda log: log.before(cursor, 1) if rows < 0 else log.after(cursor, 2)[1:])
        if there:
            self._selection = (begun, there[0].start)
            if not self._page.top <= there[0].start < self._page.bottom:
                await self._turn(lambda log, page, height: log_page.moved(log, page, rows, height))
            self._show()

    async def action_page(self, pages: int) -> None:
        await self._turn_soon(lambda log, page, height: log_page.moved(log, page, pages * max(1, height - 1), height))

    async def action_home(self) -> None:
        await self._turn_soon(log_page.first_page)

    async def action_end(self) -> None:
        await self._turn_soon(log_page.last_page)

    def action_shift(self, direction: int) -> None:
        self._show(x=max(0, self._rows.x + direction * max(1, self._rows.size.width // 2)))

    # --------------------------------------------------------------------------------------------------- searching

    def action_search(self) -> None:
        self.add_class("searching")
        self._input.can_focus = True
        self._input.focus()

    @on(Input.Submitted)
    def _search_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._leave_input()
        try:
            self._query = Query.parse(event.value)
        except UsageError as error:
            self._note = visible(str(error))
            self._show()
            return
        self._match = None
        self.action_again(-1)

    def action_again(self, direction: int) -> None:
        """Search on from the last match, or from the page in view: older lines, or newer ones."""
        if self._query is not None and self._reader is not None:
            self._stop_search()
            self._search_task = asyncio.create_task(self._search(self._query, backwards=direction < 0))

    async def _search(self, query: Query, *, backwards: bool) -> None:
        match, page = self._match, self._page

        def begin(log: LogFile) -> Search:
            origin = page.bottom if backwards else page.top
            if match is not None:
                origin = match if backwards else log.end_of(match)
            return Search(log, query, origin, backwards=backwards)

        search = await self._read(begin)
        if search is None:
            return
        while await self._read(lambda _: search.run(SEARCH_SLICE_S, time.monotonic)) is False:
            self._note = f"searching, at {100 * search.position // max(1, self._bytes)} %"
            self._show()
        if (found := search.found) is None:
            self._note = f"no {'older' if backwards else 'newer'} line has “{visible(query.text)}”"
            self._show()
            return
        self._match, self._note = found, "n older, N newer"
        await self._turn(lambda log, _page, height: log_page.page_around(log, found, height))

    def _stop_search(self) -> None:
        if self._search_task is not None:
            self._search_task.cancel()
            self._search_task = None

    def _leave_input(self) -> None:
        if self.has_class("searching"):
            self.remove_class("searching")
            self._input.can_focus = False
            self.focus()

    # --------------------------------------------------------------------------------------------------- selecting

    def action_mark(self) -> None:
        if self._page.lines:
            last = self._page.lines[-1].start
            self._selection = None if self._selection else (last, last)
            self._show()

    async def action_copy(self) -> None:
        await self._in_turn.do(self._copy)

    async def _copy(self) -> None:
        if self._selection is None:
            return
        first, last = sorted(self._selection)
        lines = await self._read(lambda log: log_page.lines_between(log, first, last))
        if lines is not None:
            self.app.copy_to_clipboard("\n".join(line.text for line in lines))
            self._note = f"{len(lines):,} line{'s' if len(lines) != 1 else ''} copied"
            self._selection = None
            self._show()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "leave":
            # With nothing to leave, escape is for whoever holds the pane.
            return self.has_class("searching") or bool(self._query or self._selection or self._search_task)
        return super().check_action(action, parameters)

    def action_leave(self) -> None:
        self._stop_search()
        self._leave_input()
        self._selection, self._query, self._match, self._note = None, None, None, ""
        self._show()

    # ---------------------------------------------------------------------------------------------------- painting

    def _show(self, *, x: int | None = None) -> None:
        if not self.is_attached:
            return
        rows = tuple(self._row(line) for line in self._page.lines)
        pattern = self._query.shown if self._query else None
        self._rows.show(rows, x=self._rows.x if x is None else x, pattern=pattern)
        if (status := self._status()) != self._status_text:
            self._status_text = status
            self._status_line.update(status)

    def _row(self, line: LogLine) -> Row:
        first, last = sorted(self._selection) if self._selection else (-1, -1)
        text = self._printable(("… " if line.continued else "") + line.text)
        selected = first <= line.start <= last or line.start == self._match
        return Row(line.start, text, dim=not line.complete, selected=selected)

    def _status(self) -> str:
        if self._reader is None:
            return "no log"
        parts = [visible(self._reader.path.name)]
        if self._bytes:
            lines = f"line {self._number:,}" if self._number is not None else "lines not counted"
            parts += [lines, f"{100 * self._page.bottom // self._bytes} % of {self._bytes:,} bytes"]
        parts += ["following"] if self._page.following else []
        parts += ["selecting, y copies"] if self._selection else []
        return self._printable(" · ".join([*parts, self._note] if self._note else parts))

    def _printable(self, text: str) -> str:
        if not self._ascii:
            return text
        for glyph, stand_in in (("…", "..."), (" · ", " | "), ("“", '"'), ("”", '"')):
            text = text.replace(glyph, stand_in)
        return text.encode("ascii", "backslashreplace").decode()
