"""Choose the columns of the studies: space shows or hides one, left and right move it."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static

from kevtui import columns
from kevtui.screens.over import OverScreen
from kevtui.widgets.ink import Ink
from kevtui.widgets.line import text_of

HINT = "space shows or hides · ← → move · r as it came · enter takes it"


class ColumnsScreen(OverScreen[tuple[str, ...] | None]):
    """Dismissed with the ids that are wanted, in their order; None where nothing was to change."""

    DEFAULT_CSS = """
    ColumnsScreen { align: center middle; }
    ColumnsScreen > Vertical {
        width: 74; max-width: 100%; height: auto; max-height: 100%; padding: 0 1;
        background: $kev-background; color: $kev-text; border: round $kev-accent; border-title-color: $kev-accent;
    }
    ColumnsScreen.ascii > Vertical { border: ascii $kev-accent; }
    ColumnsScreen OptionList, ColumnsScreen OptionList:focus {
        height: auto; max-height: 12; border: none; padding: 0; scrollbar-size: 0 0;
        background: $kev-background; background-tint: $kev-background 0%;
    }
    ColumnsScreen OptionList:focus > .option-list--option-highlighted { background: $kev-cursor; color: $kev-text; }
    ColumnsScreen Static { color: $kev-dim; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "leave", show=False),
        Binding("space", "flip", "show or hide", show=False, priority=True),
        Binding("enter", "take", "take", show=False, priority=True),
        Binding("left", "shift(-1)", "to the left", show=False, priority=True),
        Binding("right", "shift(1)", "to the right", show=False, priority=True),
        Binding("j", "point(1)", "down", show=False),
        Binding("k", "point(-1)", "up", show=False),
        Binding("r", "reset", "as it came", show=False),
    ]

    def __init__(self, shown: tuple[str, ...], first: tuple[str, ...], ink: Ink) -> None:
        super().__init__(classes="ascii" if ink.ascii_only else None)
        self._ink = ink
        self._first = first
        self._shown = set(shown)
        self._order = [*shown, *(each for each in columns.EVERY if each not in shown)]

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = Content("Columns of the studies")
            yield OptionList(*self._rows(), markup=False)
            yield Static(text_of(self._ink.pen(70).add(HINT).line()), markup=False)

    def on_mount(self) -> None:
        self.query_one(OptionList).highlighted = 0

    def _rows(self) -> list[Text]:
        return [
            Text.assemble((f"[{'x' if each in self._shown else ' '}] ", "bold"), f"{each:<9} ", columns.ABOUT[each])
            for each in self._order
        ]

    def _repaint(self, highlighted: int) -> None:
        listed = self.query_one(OptionList)
        listed.clear_options()
        listed.add_options(self._rows())
        listed.highlighted = highlighted

    @property
    def _here(self) -> int:
        return self.query_one(OptionList).highlighted or 0

    def action_point(self, step: int) -> None:
        self.query_one(OptionList).highlighted = (self._here + step) % len(self._order)

    def action_flip(self) -> None:
        name = self._order[self._here]
        if name != "trial":
            self._shown ^= {name}
        self._repaint(self._here)

    def action_shift(self, step: int) -> None:
        here, there = self._here, self._here + step
        if 0 <= there < len(self._order):
            self._order[here], self._order[there] = self._order[there], self._order[here]
            self._repaint(there)

    def action_reset(self) -> None:
        self._shown = set(self._first)
        self._order = [*self._first, *(each for each in columns.EVERY if each not in self._first)]
        self._repaint(0)

    def action_take(self) -> None:
        self.dismiss(tuple(each for each in self._order if each in self._shown))
