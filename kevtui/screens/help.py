"""All keys, from the table that also handles them; typing narrows them down."""

from collections.abc import Iterable
from typing import ClassVar, Protocol

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input

from kevtui.screens.hanging import hanging
from kevtui.screens.over import OverScreen
from kevtui.widgets.line import Line, Role, Span
from kevtui.widgets.text_lines import TextLines

WIDEST, BESIDE_TEXT = 100, 6
"""Cells of the dialog, and of its border, padding and scroll bar."""

TO_ASCII = {ord("↑"): "^", ord("↓"): "v", ord("…"): "."}


class HelpRow(Protocol):
    """What the help reads of a row of the bindings table."""

    @property
    def label(self) -> str: ...
    @property
    def verb(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def danger(self) -> bool: ...


def matching(rows: Iterable[HelpRow], words: str) -> list[HelpRow]:
    """The rows that hold every one of `words`, in any case, in their key, verb, text or group."""
    wanted = words.lower().split()
    return [
        row for row in rows if all(word in f"{row.label} {row.verb} {row.text} {row.group}".lower() for word in wanted)
    ]


def help_lines(rows: Iterable[HelpRow], width: int = 1000) -> list[Line]:
    """The rows under the names of their groups, keys in one column, in lines of at most `width` cells."""
    rows = list(rows)
    if not rows:
        return [(Span("no key matches", Role.DIM),)]
    keys = max(len(row.label) for row in rows)
    lines: list[Line] = []
    for group in dict.fromkeys(row.group for row in rows):
        lines += [()] if lines else []
        lines.append((Span(group, Role.STRONG),))
        for row in rows:
            if row.group == group:
                found = "" if row.label else f"  (palette: {row.verb})"
                asks = "  (asks first)" if row.danger else ""
                first, *others = hanging(f"{row.text}{found}{asks}", keys + 4, width).split("\n")
                lines.append((Span(f"  {row.label:<{keys}}  ", Role.STRONG), Span(first, Role.TEXT)))
                lines += [(Span(other, Role.TEXT),) for other in others]
    return lines


class HelpScreen(OverScreen[None]):
    """Every binding of `rows`. Letters search, the arrows scroll, escape closes."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > Vertical {
        width: 90%; max-width: 100; height: 90%; padding: 0 1; background: $surface; border: solid $primary;
    }
    HelpScreen Input { margin-bottom: 1; }
    HelpScreen TextLines { scrollbar-gutter: stable; }
    HelpScreen.ascii > Vertical { border: ascii $primary; }
    HelpScreen.ascii TextLines { scrollbar-size: 0 0; }
    """
    AUTO_FOCUS = "Input"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "close", show=False),
        Binding("up", "scroll_rows(-1)", "up", show=False, priority=True),
        Binding("down", "scroll_rows(1)", "down", show=False, priority=True),
        Binding("pageup", "scroll_rows(-10)", "page up", show=False, priority=True),
        Binding("pagedown", "scroll_rows(10)", "page down", show=False, priority=True),
    ]

    def __init__(self, rows: Iterable[HelpRow] = (), *, ascii: bool = False) -> None:  # noqa: A002
        # A scroll bar is drawn with half blocks.
        super().__init__(classes="ascii" if ascii else None)
        self._rows = tuple(rows)
        self._ascii = ascii

    def begin(self, rows: Iterable[HelpRow]) -> None:
        """Show all of `rows` from the first on, whatever was shown and searched for before."""
        self._rows = tuple(rows)
        if self.is_mounted:
            self.query_one(Input).value = ""
            self.query_one(TextLines).scroll_home(animate=False)
            self._show()

    def compose(self) -> ComposeResult:
        with Vertical():
            search = Input(placeholder="type to search the keys; escape closes", compact=True)
            search.cursor_blink = False
            yield search
            lines = self._lines("")
            yield TextLines(lines, scrolls=len(lines) > self.app.size.height)

    @on(Input.Changed)
    @on(events.Resize)
    def _show(self) -> None:
        rows, lines = self._lines(self.query_one(Input).value), self.query_one(TextLines)
        if rows != lines.lines:
            lines.show(rows)

    def action_scroll_rows(self, rows: int) -> None:
        self.query_one(TextLines).scroll_relative(y=rows, animate=False)

    def _lines(self, words: str) -> list[Line]:
        lines = help_lines(matching(self._rows, words), min(WIDEST, self.app.size.width * 9 // 10) - BESIDE_TEXT)
        if not self._ascii:
            return lines
        return [tuple(Span(text.translate(TO_ASCII), role) for text, role in line) for line in lines]
