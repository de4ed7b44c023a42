"""Texts, marks and tables of `--once`: file text is painted as data, never read as markup."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kev.text import shorten, visible
from kevtui import glyphs
from kevtui.headless.output import Output
from kevtui.headless.styled import Text

Row = tuple[str | Text, ...]

LONGEST: Final = 2000
"""Characters of one file text in one cell; a log line can have millions."""

# A state is a sign, a word and a colour: any one of them may be missing from the terminal. States of different things
# that share a word share the sign too.
SIGNS: Final[dict[str, str]] = {
    str(state): sign
    for signs in (glyphs.TRIAL, glyphs.LEASE, glyphs.READ, glyphs.WATCHER, glyphs.VERDICT, glyphs.SEVERITY)
    for state, sign in signs.items()
}

STYLES: Final[dict[str, str]] = {
    "running": "green", "done": "green", "fresh": "green", "landed": "green", "alive": "green", "pass": "green",
    "pending": "yellow", "timed out": "yellow", "refused": "yellow", "unreachable": "yellow", "late": "yellow",
    "clock ahead": "yellow", "overdue": "yellow", "missing": "yellow", "warning": "yellow",
    "failed": "bold red", "stale": "bold red", "down": "bold red", "fail": "bold red", "critical": "bold red",
    "in flight": "cyan",
}  # fmt: skip
"""The rest is dim."""


@dataclass(frozen=True, slots=True)
class Paint:
    """How to paint for one output."""

    ascii_only: bool
    width: int | None = None
    """Columns there are, None for as many as it takes."""

    def text(self, words: str, style: str = "") -> Text:
        """File text or our own on one line, every control character visible, nothing parsed."""
        words = shorten(visible(words), LONGEST)
        return Text([(glyphs.to_ascii(words) if self.ascii_only else words, style)] if words else [])

    def state(self, state: str, words: str = "") -> Text:
        """A state as sign and word."""
        return self.text(f"{SIGNS.get(state, '?')} {words or state}", STYLES.get(state, "dim"))

    def section(self, title: str, *parts: Iterable[Text], note: str = "") -> Iterator[Text]:
        """An empty line, a heading, and the lines of `parts`."""
        yield Text()
        heading = self.text(title, "bold")
        yield Text.of(heading, self.text(f"   {note}", "dim")) if note else heading
        for part in parts:
            yield from part

    def lines(self, words: Iterable[str], style: str = "") -> Iterator[Text]:
        """One indented line each."""
        return (Text.of("  ", self.text(line, style)) for line in words)

    def table(self, columns: Sequence[str], rows: Iterable[Row]) -> Iterator[Text]:
        """Aligned columns, indented by two; a leading `>` in a column's name aligns it to the right.

        Where the output is too narrow for the columns, each row is a paragraph of "column value" instead: a table
        folded into columns of three letters can be neither read nor searched.
        """
        painted = [[cell if isinstance(cell, Text) else self.text(cell) for cell in row] for row in rows]
        # A column that nothing fills says nothing.
        filled = [index for index in range(len(columns)) if any(row[index].pieces for row in painted)]
        names = [self.text(columns[index].removeprefix(">"), "dim") for index in filled]
        cells = [[row[index] for index in filled] for row in painted]
        widths = [max(cell.width for cell in column) for column in zip(names, *cells, strict=True)]
        if self.width is not None and 2 + sum(widths) + 2 * len(widths) > self.width:
            for row in cells:
                yield from _paragraph(names, row, self.width)
            return
        rights = [columns[index].startswith(">") for index in filled]
        for row in [names, *cells] if any(name.pieces for name in names) else cells:
            yield _aligned(row, widths, rights)


def as_text(lines: Iterable[Text], output: Output) -> str:
    """`lines` as text for `output`: with colours and folded for a terminal, plain and whole elsewhere."""
    width = output.width
    if width is None:
        return "".join([f"{line.plain.rstrip()}\n" for line in lines])
    folded = (piece for line in lines for piece in line.folded(width))
    return "".join([f"{line.escaped() if output.styled else line.plain}\n" for line in folded])


def _aligned(row: Sequence[Text], widths: Sequence[int], rights: Sequence[bool]) -> Text:
    line = Text()
    for cell, width, right in zip(row, widths, rights, strict=True):
        space = " " * (width - cell.width)
        line.append("  " + (space if right else ""))
        line.append(cell)
        line.append("" if right else space)
    return line.stripped()


def _paragraph(names: Sequence[Text], row: Sequence[Text], width: int) -> Iterator[Text]:
    """The first cell, then lines of as many "column value" as fit: a value is not parted from its name."""
    yield Text.of("  ", row[0])
    line, empty = Text.of("    "), True
    for name, cell in zip(names[1:], row[1:], strict=True):
        if not cell.pieces:
            continue
        pair = Text.of(name, " ", cell) if name.pieces else cell
        if not empty and line.width + 3 + pair.width > width:
            yield line
            line, empty = Text.of("    "), True
        line.append("" if empty else "   ")
        line.append(pair)
        empty = False
    yield line
