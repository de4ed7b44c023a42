"""One line of the screen as data: spans of text with a role, made by a `Pen` and compared cell by cell.

All text that reaches the screen passes through a `Pen`, which makes it safe: what comes from files is never markup
and never acts on the terminal.
"""

from enum import StrEnum
from typing import NamedTuple

from rich.cells import cell_len, get_character_cell_size, set_cell_size

from kev.text import visible
from kevtui.glyphs import to_ascii


class Role(StrEnum):
    """What a piece of text means; a theme gives each role its colour."""

    TEXT = "text"
    DIM = "dim"
    STRONG = "strong"
    ACCENT = "accent"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    SPENT = "spent"
    COMMITTED = "committed"
    RESERVE = "reserve"
    FREE = "free"


class Span(NamedTuple):
    text: str
    role: Role


Line = tuple[Span, ...]


def text_of(line: Line) -> str:
    return "".join(span.text for span in line)


class Pen:
    """Writes one line from left to right, at most `width` cells of it."""

    def __init__(self, width: int, *, ascii_only: bool = False) -> None:
        self.width = max(0, width)
        self.column = 0
        self._ascii = ascii_only
        self._spans: list[Span] = []

    @property
    def left(self) -> int:
        """Cells still free."""
        return self.width - self.column

    def measure(self, text: str) -> int:
        """How many cells `text` will take."""
        return cell_len(self._safe(text))

    def add(self, text: str, role: Role = Role.TEXT, *, width: int | None = None, right: bool = False) -> "Pen":
        """Write `text`, padded or cut to `width` cells where one is given; a cut ends in an ellipsis."""
        text = self._safe(text)
        room = self.left if width is None else min(width, self.left)
        size = cell_len(text)
        if size > room:
            text, size = self._cut(text, room), room
        elif width is not None:
            padding = " " * (room - size)
            text, size = (padding + text if right else text + padding), room
        if text:
            self._spans.append(Span(text, role))
            self.column += size
        return self

    def fits(self, *texts: str) -> bool:
        return sum(self.measure(text) for text in texts) <= self.left

    def gap(self, cells: int = 1) -> "Pen":
        return self.add(" " * max(0, min(cells, self.left)))

    def to(self, column: int) -> "Pen":
        """Fill up with blanks to `column`."""
        return self.gap(column - self.column)

    def line(self) -> Line:
        return tuple(self._spans)

    def _safe(self, text: str) -> str:
        text = visible(text)
        return to_ascii(text) if self._ascii else text

    def _cut(self, text: str, room: int) -> str:
        if room <= 0:
            return ""
        mark = "~" if self._ascii else "…"
        return set_cell_size(text, room - 1) + mark if room > 1 else set_cell_size(text, 1)


def differing(old: Line, new: Line, width: int, *, join: int = 4) -> list[tuple[int, int]]:
    """The (start, end) columns where two lines differ; runs closer than `join` are one.

    Moving the terminal's cursor costs about eight bytes, so a short run of equal cells is cheaper to print again.
    """
    before, after = _cells(old, width), _cells(new, width)
    runs: list[tuple[int, int]] = []
    for column, (one, other) in enumerate(zip(before, after, strict=True)):
        if one == other:
            continue
        if runs and column - runs[-1][1] < join:
            runs[-1] = (runs[-1][0], column + 1)
        else:
            runs.append((column, column + 1))
    return runs


def _cells(line: Line, width: int) -> list[tuple[str, Role]]:
    cells: list[tuple[str, Role]] = []
    for text, role in line:
        if text.isascii():
            cells.extend((character, role) for character in text)
            continue
        for character in text:
            match get_character_cell_size(character):
                case 0 if cells:
                    cells[-1] = (cells[-1][0] + character, role)
                case 2:
                    cells += [(character, role), ("", role)]
                case _:
                    cells.append((character, role))
    del cells[width:]
    cells += [(" ", Role.TEXT)] * (width - len(cells))
    return cells
