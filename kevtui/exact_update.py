"""Prints the cells that changed, and only those.

Textual 8.2 prints each changed span from the left edge of its widget: in a table as wide as the screen, one changed
digit at the right costs the whole row, and two cost it twice. And as widgets come and go it prints the whole screen
several times over: laid out, resumed, told of their size, and once more when what lay over them is gone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby

from rich.cells import get_character_cell_size
from rich.console import Console
from rich.control import Control
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Size
from textual.strip import Strip

from kevtui.colour_codes import CODE, RESET, RESETS

Cell = tuple[str, str]
"""The colour codes of a cell, and its character."""

UNKNOWN: Cell = ("", "")
"""Equal to no cell that is printed."""

GAP = 8
"""So many equal cells between two that differ are printed with them: to move over them costs as much."""


class TerminalRows:
    """What the terminal shows of each row, as far as it is known."""

    def __init__(self) -> None:
        self._rows: dict[int, list[Cell]] = {}
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

    def take(self, y: int, start: int, stop: int, text: str) -> str:
        """What must be sent so that `text`, with its colour codes, stands in the columns from `start` up to `stop`."""
        row = self._rows.setdefault(y, [UNKNOWN] * self._size.width)
        old, new = tuple(row[start:stop]), cells(text)
        if new is None or len(new) != len(old):
            row[start:stop] = [UNKNOWN] * len(old)
            return _move(start, y) + text
        if new == old:
            return ""
        row[start:stop] = new
        return "".join([_move(start + first, y) + _coloured(new[first:last]) for first, last in _runs(old, new)])


class ExactUpdate(ChopsUpdate):
    """A partial update of the screen, without the cells that are there already."""

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
        printed = []
        for end, (x, strip) in zip(self.chop_ends[y], self.chops[y].items(), strict=False):
            if strip is None or x >= stop or end <= start:
                continue
            left, right = max(x, start), min(end, stop)
            if (left, right) != (x, end):
                strip = strip.crop(left - x, right - x)
            printed.append(self._terminal.take(y, left, right, strip.render(console)))
        return "".join(printed)


class ExactLayout(LayoutUpdate):
    """A region of the screen, without the cells that are there already."""

    def __init__(self, update: LayoutUpdate, rows: TerminalRows) -> None:
        super().__init__(update.strips, update.region)
        self._terminal = rows

    def render_segments(self, console: Console) -> str:
        left, right = self.region.x, self.region.right
        lines = enumerate(self.strips, self.region.y)
        return "".join(
            [
                self._terminal.take(y, left, right, "".join([strip.render(console) for strip in line]))
                for y, line in lines
            ]
        )


@lru_cache(maxsize=512)
def cells(text: str) -> tuple[Cell, ...] | None:
    """`text` cell by cell; None where a character may take more or less than one, or a code is more than a colour."""
    found: list[Cell] = []
    codes = ""
    for i, piece in enumerate(CODE.split(text)):
        if i % 2:
            codes = "" if piece in RESETS else codes + piece
        elif not piece.isprintable() or not (piece.isascii() or all(get_character_cell_size(c) == 1 for c in piece)):
            return None
        else:
            found += [(codes, character) for character in piece]
    return tuple(found)


def _runs(old: Sequence[Cell], new: Sequence[Cell]) -> Iterator[tuple[int, int]]:
    """From where to where they differ, runs that are close together as one."""
    first = last = -1
    for at, (one, other) in enumerate(zip(old, new, strict=True)):
        if one == other:
            continue
        if first >= 0 and at - last > GAP:
            yield first, last + 1
            first = -1
        first, last = (at if first < 0 else first), at
    if first >= 0:
        yield first, last + 1


def _coloured(run: Iterable[Cell]) -> str:
    parts = (
        (codes, "".join([character for _, character in same])) for codes, same in groupby(run, lambda cell: cell[0])
    )
    return "".join([f"{codes}{text}{RESET}" if codes else text for codes, text in parts])


def _move(x: int, y: int) -> str:
    return Control.move_to(x, y).segment.text
