"""Prints the cells that changed, and only those.

Textual 8.2 prints each changed span from the left edge of its widget: in a table as wide as the screen, one changed
digit at the right costs the whole row, and two cost it twice. And when widgets appear it prints the whole screen up
to three times over: laid out, resumed, and told of their size.
"""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.control import Control
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Size
from textual.strip import Strip


class TerminalRows:
    """What the terminal shows of each row, as far as whole rows were printed."""

    def __init__(self) -> None:
        self._rows: dict[int, str] = {}
        self._size = Size()

    def forget(self) -> None:
        """Something else may have written on the terminal: nothing is taken to be there."""
        self._rows.clear()

    def exact(self, update: object, size: Size) -> "ExactUpdate | ExactLayout | None":
        """`update` without what a terminal of `size` shows already; None for a kind of update that is not known."""
        if size != self._size:
            self._size = size
            self.forget()
        if isinstance(update, ChopsUpdate):
            return ExactUpdate(update.chops, update.spans, update.chop_ends, self)
        if isinstance(update, LayoutUpdate):
            return ExactLayout(update, self)
        return None

    def take(self, y: int, start: int, stop: int, printed: str) -> bool:
        """Note what is printed in a row; false if it is there already."""
        if start > 0 or stop < self._size.width:
            self._rows.pop(y, None)
            return True
        if self._rows.get(y) == printed:
            return False
        self._rows[y] = printed
        return True


class ExactUpdate(ChopsUpdate):
    """A partial update of the screen whose spans are cut at both ends."""

    def __init__(
        self,
        chops: Sequence[Mapping[int, Strip | None]],
        spans: list[tuple[int, int, int]],
        chop_ends: list[list[int]],
        rows: TerminalRows,
    ) -> None:
        super().__init__(chops, spans, chop_ends)
        self._terminal = rows

    def render_segments(self, console: Console) -> str:
        return "".join([self._span(y, start, stop, console) for y, start, stop in self.spans])

    def _span(self, y: int, start: int, stop: int, console: Console) -> str:
        moves, printed = [], []
        for end, (x, strip) in zip(self.chop_ends[y], self.chops[y].items(), strict=False):
            if strip is None or x >= stop or end <= start:
                continue
            left, right = max(x, start), min(end, stop)
            if (left, right) != (x, end):
                strip = strip.crop(left - x, right - x)
            moves.append(Control.move_to(left, y).segment.text)
            printed.append(strip.render(console))
        if not self._terminal.take(y, start, stop, "".join(printed)):
            return ""
        return "".join([part for pair in zip(moves, printed, strict=True) for part in pair])


class ExactLayout(LayoutUpdate):
    """A region of the screen, without the rows that are there already."""

    def __init__(self, update: LayoutUpdate, rows: TerminalRows) -> None:
        super().__init__(update.strips, update.region)
        self._terminal = rows

    def render_segments(self, console: Console) -> str:
        region, printed_rows = self.region, []
        for y, line in enumerate(self.strips, region.y):
            printed = "".join([strip.render(console) for strip in line])
            if self._terminal.take(y, region.x, region.right, printed):
                printed_rows.append(Control.move_to(region.x, y).segment.text + printed)
        return "".join(printed_rows)
