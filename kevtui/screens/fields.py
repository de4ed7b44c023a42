"""A few fields to fill in before an action can be proposed: a new session's name and authorization, a reason."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from kev.text import visible
from kevtui.screens.over import OverScreen


class FieldsScreen(OverScreen[tuple[str, ...] | None]):
    """Dismissed with what was filled in, or None. Enter goes to the next field, and from the last one on."""

    DEFAULT_CSS = """
    FieldsScreen { align: center middle; }
    FieldsScreen > Vertical {
        width: 90%; max-width: 80; height: auto; padding: 0 1; background: $kev-background; color: $kev-text;
        border: round $kev-accent; border-title-color: $kev-accent;
    }
    FieldsScreen.ascii > Vertical { border: ascii $kev-accent; }
    FieldsScreen Input, FieldsScreen Input:focus {
        height: 1; border: none; padding: 0 1; background: $kev-cursor; color: $kev-text;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", show=False, priority=True)]

    def __init__(self, title: str, fields: tuple[str, ...], *, ascii: bool = False) -> None:  # noqa: A002
        super().__init__(classes="ascii" if ascii else None)
        self._title_text = title
        self._fields = fields

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = Content(visible(self._title_text))
            for words in self._fields:
                yield Static(words, markup=False)
                field = Input()
                field.cursor_blink = False
                yield field
            yield Static("enter goes on, escape leaves; nothing is done yet", markup=False)

    def on_mount(self) -> None:
        self.query(Input).first().focus()

    @on(Input.Submitted)
    def _next(self, event: Input.Submitted) -> None:
        fields = list(self.query(Input))
        here = fields.index(event.input)
        if here + 1 < len(fields):
            fields[here + 1].focus()
        else:
            self.dismiss(tuple(field.value.strip() for field in fields))
