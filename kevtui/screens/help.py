"""All keys, from the table that also handles them; typing narrows them down."""

from collections.abc import Iterable
from typing import ClassVar, Protocol

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Input, Static

from kevtui.screens.hanging import hanging
from kevtui.screens.over import OverScreen

WIDEST, BESIDE_TEXT = 100, 6
"""Cells of the dialog, and of its border, padding and scroll bar."""


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


def help_text(rows: Iterable[HelpRow], width: int = 1000) -> Text:
    """The rows under the names of their groups, keys in one column, in lines of at most `width` cells."""
    rows = list(rows)
    if not rows:
        return Text("no key matches", style="dim")
    keys = max(len(row.label) for row in rows)
    text = Text()
    for group in dict.fromkeys(row.group for row in rows):
        text.append(f"\n{group}\n" if text else f"{group}\n", style="bold")
        for row in rows:
            if row.group == group:
                text.append(f"  {row.label:<{keys}}  ", style="bold")
                found = "" if row.label else f"  (palette: {row.verb})"
                asks = "  (asks first)" if row.danger else ""
                text.append(f"{hanging(f'{row.text}{found}{asks}', keys + 4, width)}\n")
    text.rstrip()
    return text


class HelpScreen(OverScreen[None]):
    """Every binding of `rows`. Letters search, the arrows scroll, escape closes."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > Vertical {
        width: 90%; max-width: 100; height: 90%; padding: 0 1; background: $surface; border: solid $primary;
    }
    HelpScreen Input { margin-bottom: 1; }
    HelpScreen VerticalScroll { height: 1fr; scrollbar-gutter: stable; }
    HelpScreen.ascii > Vertical { border: ascii $primary; }
    HelpScreen.ascii VerticalScroll { scrollbar-size: 0 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "close", show=False),
        Binding("up", "scroll_rows(-1)", "up", show=False, priority=True),
        Binding("down", "scroll_rows(1)", "down", show=False, priority=True),
        Binding("pageup", "scroll_rows(-10)", "page up", show=False, priority=True),
        Binding("pagedown", "scroll_rows(10)", "page down", show=False, priority=True),
    ]

    def __init__(self, rows: Iterable[HelpRow], *, ascii: bool = False) -> None:  # noqa: A002
        # A scroll bar is drawn with half blocks.
        super().__init__(classes="ascii" if ascii else None)
        self._rows = tuple(rows)
        self._ascii = ascii

    def compose(self) -> ComposeResult:
        with Vertical():
            search = Input(placeholder="type to search the keys; escape closes", compact=True)
            search.cursor_blink = False
            yield search
            with VerticalScroll(can_focus=False):
                yield Static(markup=False)

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    @on(Input.Changed)
    @on(events.Resize)
    def _show(self) -> None:
        self.query_one(Static).update(self._text(self.query_one(Input).value))

    def action_scroll_rows(self, rows: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=rows, animate=False)

    def _text(self, words: str) -> Text:
        text = help_text(matching(self._rows, words), min(WIDEST, self.size.width * 9 // 10) - BESIDE_TEXT)
        if self._ascii:
            text.plain = text.plain.translate({ord("↑"): "^", ord("↓"): "v", ord("…"): "."})
        return text
