"""The rows of a log on the screen: paints what it is given, and only the rows that differ from before."""

import re
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.selection import Selection
from textual.strip import Strip

from kevtui.widgets.selectable import Selectable

MARKS_PER_ROW = 100
"""A pattern that matches everywhere must not turn one row into thousands of segments."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line as it is shown. `text` is safe for a terminal; `start` is the line's byte offset."""

    start: int
    text: str
    dim: bool = False
    selected: bool = False


class LogRows(Selectable):
    """A window on a log, one line a row, scrolled sideways by `x`."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"log-rows--dim", "log-rows--match", "log-rows--selected"}
    DEFAULT_CSS = """
    LogRows { width: 1fr; height: 1fr; }
    LogRows > .log-rows--dim { text-style: dim; }
    LogRows > .log-rows--match { text-style: reverse; }
    LogRows > .log-rows--selected { background: $primary; color: $text; text-style: bold; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._rows: tuple[Row, ...] = ()
        self._x = 0
        self._pattern: re.Pattern[str] | None = None

    @property
    def rows(self) -> tuple[Row, ...]:
        return self._rows

    @property
    def x(self) -> int:
        """The first column shown."""
        return self._x

    def show(self, rows: tuple[Row, ...], *, x: int = 0, pattern: re.Pattern[str] | None = None) -> None:
        """Show `rows` from the top, from column `x` on, with the matches of `pattern` marked."""
        before, self._rows = self._rows, rows
        if (x, pattern) != (self._x, self._pattern):
            self._x, self._pattern = x, pattern
            self.refresh()
            return
        width = self.size.width
        changed = [y for y in range(max(len(before), len(rows))) if before[y : y + 1] != rows[y : y + 1]]
        if changed and width:
            self.refresh(*(Region(0, y, width, 1) for y in changed))

    def line(self, y: int) -> tuple[Strip, tuple[int, int]]:
        width, style = self.size.width, self.rich_style
        if y >= len(self._rows):
            return Strip.blank(width, style), (self._x, y)
        row = self._rows[y]
        if row.selected:
            style += self.get_component_rich_style("log-rows--selected")
        if row.dim:
            style += self.get_component_rich_style("log-rows--dim", partial=True)
        strip = Strip(list(self._segments(y, row.text, style)), cell_len(row.text))
        return strip.crop_extend(self._x, self._x + width, style), (self._x, y)

    def _segments(self, y: int, text: str, style: Style) -> list[Segment]:
        marks = self._marks(y, text)
        segments, position = [], 0
        for start, end, mark in marks:
            if start >= position:
                segments += [Segment(text[position:start], style), Segment(text[start:end], style + mark)]
                position = end
        segments.append(Segment(text[position:], style))
        return segments

    def _marks(self, y: int, text: str) -> list[tuple[int, int, Style]]:
        if (selection := self.text_selection) is not None and (span := selection.get_span(y)) is not None:
            start, end = span
            return [(start, len(text) if end == -1 else end, self.screen.get_component_rich_style("screen--selection"))]
        if self._pattern is None:
            return []
        style = self.get_component_rich_style("log-rows--match", partial=True)
        marks = []
        for match in self._pattern.finditer(text):
            marks.append((match.start(), match.end(), style))
            if len(marks) == MARKS_PER_ROW:
                break
        return marks

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selection.extract("\n".join(row.text for row in self._rows)), "\n"

    def selection_updated(self, selection: Selection | None) -> None:  # noqa: ARG002
        self.refresh()
