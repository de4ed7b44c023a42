"""Texts, marks and tables of `--once`: file text is painted as data, never read as markup."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kev.text import shorten, visible
from kevtui.headless.stand_ins import to_ascii
from kevtui.observe.snapshot import LeaseState, ReadState, Severity, TrialState, Verdict, WatcherState

Row = tuple[str | Text, ...]

LONGEST: Final = 2000
"""Characters of one file text in one cell; a log line can have millions."""

MARKS: Final[dict[str, tuple[str, str]]] = {
    # A state is a mark, a word and a colour: any one of them may be missing from the terminal.
    TrialState.PLANNED: ("·", "dim"),
    TrialState.PENDING: ("○", "yellow"),
    TrialState.RUNNING: ("●", "green"),
    TrialState.DONE: ("✓", "green"),
    TrialState.TIMED_OUT: ("✗", "yellow"),
    TrialState.REFUSED: ("✗", "yellow"),
    TrialState.FAILED: ("✗", "bold red"),
    TrialState.CANCELLED: ("✗", "dim"),
    TrialState.UNREACHABLE: ("▲", "yellow"),
    TrialState.UNKNOWN: ("?", "dim"),
    LeaseState.FRESH: ("●", "green"),
    LeaseState.LATE: ("◐", "yellow"),
    LeaseState.STALE: ("✗", "bold red"),
    LeaseState.RELEASED: ("○", "dim"),
    LeaseState.CLOCK_AHEAD: ("▲", "yellow"),
    ReadState.ABSENT: ("·", "dim"),
    ReadState.IN_FLIGHT: ("◐", "cyan"),
    ReadState.OVERDUE: ("▲", "yellow"),
    ReadState.LANDED: ("✓", "green"),
    WatcherState.ALIVE: ("●", "green"),
    WatcherState.DOWN: ("✗", "bold red"),
    WatcherState.FINISHED: ("✓", "green"),
    WatcherState.NONE: ("·", "dim"),
    Verdict.PASS: ("✓", "green"),
    Verdict.FAIL: ("✗", "bold red"),
    Verdict.MISSING: ("?", "yellow"),
    Severity.INFO: ("·", "dim"),
    Severity.WARNING: ("▲", "yellow"),
    Severity.CRITICAL: ("✗", "bold red"),
}


@dataclass(frozen=True, slots=True)
class Paint:
    """How to paint for one output."""

    ascii_only: bool
    width: int | None = None
    """Columns there are, None for as many as it takes."""

    def text(self, words: str, style: str = "") -> Text:
        """File text or our own on one line, every control character visible, nothing parsed."""
        words = shorten(visible(words), LONGEST)
        return Text(to_ascii(words) if self.ascii_only else words, style=style, overflow="fold")

    def state(self, state: str, words: str = "") -> Text:
        """A state as mark and word."""
        mark, style = MARKS.get(state, ("?", ""))
        return self.text(f"{mark} {words or state}", style)

    def section(self, title: str, *parts: RenderableType, note: str = "") -> Group:
        """A titled block with an empty line before it."""
        heading = self.text(title, "bold")
        if note:
            heading = Text.assemble(heading, self.text(f"   {note}", "dim"))
        return Group(Text(""), heading, *parts)

    def table(self, columns: Sequence[str], rows: Iterable[Row]) -> RenderableType:
        """Aligned columns, indented by two; a leading `>` in a column's name aligns it to the right.

        Where the output is too narrow for the columns, each row is a paragraph of "column value" instead: a table
        folded into columns of three letters can be neither read nor searched.
        """
        painted = [[cell if isinstance(cell, Text) else self.text(cell) for cell in row] for row in rows]
        # A column that nothing fills says nothing.
        filled = [index for index in range(len(columns)) if any(row[index].plain for row in painted)]
        names = [self.text(columns[index].removeprefix(">")) for index in filled]
        cells = [[row[index] for index in filled] for row in painted]
        if self.width is not None and _natural_width(names, cells) > self.width:
            return Group(*(_paragraph(names, row) for row in cells))
        table = Table(
            box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_header=any(n.plain for n in names)
        )
        table.add_column("", width=0)
        for name, index in zip(names, filled, strict=True):
            right = columns[index].startswith(">")
            table.add_column(name, justify="right" if right else "left", overflow="fold")
        for row in cells:
            table.add_row("", *row)
        return table

    def lines(self, words: Iterable[str], style: str = "") -> Group:
        """One indented line each."""
        return Group(*(Text.assemble("  ", self.text(line, style)) for line in words))


def _natural_width(names: Sequence[Text], rows: Sequence[Sequence[Text]]) -> int:
    columns = zip(names, *rows, strict=True)
    return 2 + sum(2 + max(int(cell.cell_len) for cell in column) for column in columns)


def _paragraph(names: Sequence[Text], row: Sequence[Text]) -> RenderableType:
    pairs = [
        Text.assemble((f"{name.plain} ", "dim"), cell) if name.plain else cell
        for name, cell in zip(names[1:], row[1:], strict=True)
        if cell.plain
    ]
    return Group(Padding(row[0], (0, 0, 0, 2)), Padding(Text("   ").join(pairs), (0, 0, 0, 4)))
