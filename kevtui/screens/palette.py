"""Find a command by its name: every binding and every theme, narrowed down as one types."""

from collections.abc import Iterable
from typing import ClassVar, NamedTuple

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding as TextualBinding
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from kevtui.glyphs import to_ascii
from kevtui.keymap import Binding
from kevtui.screens.hanging import hanging
from kevtui.screens.over import OverScreen

ASKED = "a command; enter runs it, escape closes"

_KEY = 9
"""Cells for the widest key, "shift+tab"."""

WIDEST, BESIDE_TEXT = 90, 4
"""Cells of the dialog, and of its border and padding."""


class Command(NamedTuple):
    title: str
    text: str
    key: str
    action: str


def commands(bindings: Iterable[Binding], theme_names: Iterable[str]) -> list[Command]:
    """What the palette offers. Moving about and the palette itself are left out."""
    offered = [
        Command(binding.verb, binding.text, binding.label, binding.action)
        for binding in bindings
        if binding.id != "palette" and not binding.action.startswith(("screen.move", "screen.page"))
    ]
    return offered + [
        Command(f"theme {name}", f"Use the colours of {name}", "", f"app.use_theme({name!r})") for name in theme_names
    ]


def matching(offered: Iterable[Command], words: str) -> list[Command]:
    """The commands that hold every word; those whose title begins with the first one come first."""
    wanted = words.casefold().split()
    found = [c for c in offered if all(word in f"{c.title} {c.text}".casefold() for word in wanted)]
    return sorted(found, key=lambda c: not (wanted and c.title.casefold().startswith(wanted[0])))


class PaletteScreen(OverScreen[str]):
    """Dismissed with the action of the chosen command."""

    DEFAULT_CSS = """
    PaletteScreen { align: center top; }
    PaletteScreen > Vertical {
        width: 90%; max-width: 90; height: auto; max-height: 70%; padding: 0 1; margin-top: 2;
        background: $background; border: solid $kev-accent;
    }
    PaletteScreen.ascii > Vertical { border: ascii $kev-accent; }
    PaletteScreen Input, PaletteScreen Input:focus { height: 1; border: none; padding: 0; background: $background; }
    PaletteScreen OptionList {
        height: auto; max-height: 20; border: none; padding: 0; background: $background; scrollbar-size-vertical: 0;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        TextualBinding("escape,ctrl+p", "dismiss", "close", show=False, priority=True),
        TextualBinding("up", "choose(-1)", "up", show=False, priority=True),
        TextualBinding("down", "choose(1)", "down", show=False, priority=True),
    ]

    def __init__(self, offered: list[Command], *, ascii_only: bool = False, asked: str = ASKED) -> None:
        super().__init__(classes="ascii" if ascii_only else None)
        self._offered = offered
        self._found = offered
        self._ascii = ascii_only
        self._asked = asked

    def compose(self) -> ComposeResult:
        with Vertical():
            search = Input(placeholder=self._asked)
            search.cursor_blink = False
            yield search
            options = OptionList(markup=False)
            options.can_focus = False
            yield options

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def _options(self) -> list[Option]:
        width = max((len(command.title) for command in self._offered), default=0)
        keys = _KEY if any(command.key for command in self._offered) else 0
        return [Option(self._prompt(command, width, keys)) for command in self._found]

    def _prompt(self, command: Command, width: int, keys: int) -> Text:
        title, key, text = f"{command.title:<{width}}  ", f"{command.key:<{keys}}  " if keys else "", command.text
        if self._ascii:
            title, key, text = to_ascii(title), to_ascii(key), to_ascii(text)
        room = min(WIDEST, self.size.width * 9 // 10) - BESIDE_TEXT
        return Text.assemble((title, "bold"), (key, "dim"), hanging(text, len(title) + len(key), room))

    @on(Input.Changed)
    def _narrow(self, event: Input.Changed) -> None:
        self._found = matching(self._offered, event.value)
        self._fill(0)

    def on_resize(self) -> None:
        self._fill(self.query_one(OptionList).highlighted or 0)

    def _fill(self, highlighted: int) -> None:
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options(self._options())
        options.highlighted = highlighted if self._found else None

    @on(Input.Submitted)
    def _run(self) -> None:
        here = self.query_one(OptionList).highlighted
        self.dismiss(self._found[here].action if here is not None and here < len(self._found) else "")

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._found[event.option_index].action)

    def action_choose(self, step: int) -> None:
        options = self.query_one(OptionList)
        if self._found:
            options.highlighted = ((options.highlighted or 0) + step) % len(self._found)
