"""Two read-outs side by side: which arm passes what in either, and by how much the values differ."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from kev.errors import KevError
from kev.text import visible
from kevtui import format as figures
from kevtui import glyphs
from kevtui.observe.snapshot import Arm, Criterion, Readout, Snapshot
from kevtui.screens.over import OverScreen
from kevtui.screens.palette import Command, PaletteScreen
from kevtui.widgets import criteria
from kevtui.widgets.ink import Ink
from kevtui.widgets.line import Line, Pen, Role, text_of
from kevtui.widgets.readout import summary
from kevtui.widgets.state import VERDICT_ROLE

if TYPE_CHECKING:
    from kevtui.screens.watch import WatchScreen

WIDTH, WIDEST = 70, 120
"""Cells of the comparison: what a phone has, and what the longest names of criteria need."""

_SIDE, _DIFFERENCE = 17, 9

Pair = tuple[Arm | None, Arm | None]


# ---------------------------------------------------------------------------------------------------- what is compared


def pairs(left: Readout, right: Readout) -> list[Pair]:
    """Arms of one name, then the only arm left of a size on either side; every other one stands alone.

    Two arms that merely come in the same place have nothing to do with each other.
    """
    names = {arm.name: arm for arm in right.arms}
    found: list[Pair] = [(arm, names.pop(arm.name, None)) for arm in left.arms]
    for position, (one, other) in enumerate(found):
        if one is None or other is not None or not one.size:
            continue
        alike = [arm for arm in names.values() if arm.size == one.size]
        alone = sum(a is not None and b is None and a.size == one.size for a, b in found) == 1
        if alone and len(alike) == 1:
            found[position] = (one, names.pop(alike[0].name))
    found += [(None, arm) for arm in names.values()]
    return sorted(found, key=lambda pair: None in pair)  # what can be compared comes first


def needed(left: Readout, right: Readout) -> int:
    """Cells that show every name in full, within WIDTH and WIDEST."""
    longest = max(
        (len(each.name) + 2 for side in (left, right) for arm in side.arms for each in arm.criteria), default=0
    )
    return max(WIDTH, min(WIDEST, longest + 2 * _SIDE + _DIFFERENCE + 3))


def lines(left: Readout, right: Readout, titles: tuple[str, str], pen: Callable[[], Pen]) -> list[Line]:
    """The comparison as lines that fill a pen each."""
    name = pen().width - 2 * _SIDE - _DIFFERENCE - 3
    head = pen().gap(name + 1).add(titles[0], Role.DIM, width=_SIDE).gap()
    rows = [head.add(titles[1], Role.DIM, width=_SIDE).gap().add("Δ", Role.DIM, width=_DIFFERENCE, right=True).line()]
    for pair in pairs(left, right):
        rows += _arms(pair, name, pen)
    return rows


def _arms(pair: Pair, width: int, pen: Callable[[], Pen]) -> list[Line]:
    one, other = pair
    names = list(dict.fromkeys(arm.name for arm in pair if arm is not None))
    heading = pen().add(" | ".join(names), Role.STRONG, width=width)
    for arm in pair:
        heading.gap().add(summary(arm) if arm else figures.MISSING, Role.TEXT if arm else Role.DIM, width=_SIDE)
    rows = [heading.line()]
    known = [{c.name: c for c in arm.criteria} if arm else {} for arm in pair]
    both = dict.fromkeys([*known[0], *known[1]])
    rows += [_criterion(name, known[0].get(name), known[1].get(name), width, pen()) for name in both]
    temperatures = [arm.temperature if arm else None for arm in (one, other)]
    if any(value is not None for value in temperatures):
        line = pen().gap(2).add("temperature", width=width - 2)
        for value in temperatures:
            line.gap().add(figures.MISSING if value is None else f"{value:.2f}", width=_SIDE, right=value is not None)
        rows.append(_difference(line, *temperatures).line())
    return rows


def _criterion(name: str, one: Criterion | None, other: Criterion | None, width: int, line: Pen) -> Line:
    line.gap(2).add(name, width=width - 2)
    for side in (one, other):
        if side is None:
            line.gap().add(figures.MISSING, Role.DIM, width=_SIDE)
            continue
        line.gap().add(f"{glyphs.VERDICT[side.verdict]} {side.verdict}", VERDICT_ROLE[side.verdict], width=9)
        line.add(criteria.number(side.value), width=_SIDE - 9, right=True)
    return _difference(line, one.value if one else None, other.value if other else None).line()


def _difference(line: Pen, one: float | None, other: float | None) -> Pen:
    differ = None if one is None or other is None else other - one
    return line.gap().add(criteria.number(differ, signed=True), width=_DIFFERENCE, right=True)


# --------------------------------------------------------------------------------------------------------- the screen


class BesideScreen(OverScreen[None]):
    """`y` copies all of it, escape closes. It shows what was read when it was opened."""

    DEFAULT_CSS = """
    BesideScreen { align: center middle; }
    BesideScreen > VerticalScroll {
        width: auto; max-width: 100%; height: auto; max-height: 90%; padding: 0 1;
        background: $background; border: solid $kev-accent; scrollbar-size: 0 0;
    }
    BesideScreen.ascii > VerticalScroll { border: ascii $kev-accent; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "dismiss", "close", show=False),
        Binding("y", "copy", "copy all", show=False),
        Binding("j", "scroll_rows(1)", "down", show=False),
        Binding("k", "scroll_rows(-1)", "up", show=False),
    ]

    def __init__(self, ink: Ink, left: Readout, right: Readout, titles: tuple[str, str]) -> None:
        super().__init__(classes="ascii" if ink.ascii_only else None)
        self._left, self._right, self._titles = left, right, titles
        self._ink = ink
        self._lines: list[Line] = []
        self._heading = text_of(ink.pen(WIDTH - 4).add(f"{titles[0]} beside {titles[1]}").line())

    def compose(self) -> ComposeResult:
        with VerticalScroll() as box:
            box.border_title = Content(self._heading)
            yield Static(markup=False)

    def on_resize(self) -> None:
        width = max(WIDTH, min(needed(self._left, self._right), self.size.width - 4))
        self._lines = lines(self._left, self._right, self._titles, lambda: self._ink.pen(width))
        text = Text("\n", no_wrap=True).join(
            Text.assemble(*((span, self._ink.styles[role]) for span, role in line)) for line in self._lines
        )
        self.query_one(VerticalScroll).styles.width = width + 4
        self.query_one(Static).update(text)

    def action_copy(self) -> None:
        self.app.copy_to_clipboard("\n".join(text_of(line).rstrip() for line in self._lines))
        self.query_one(VerticalScroll).border_subtitle = "copied"

    def action_scroll_rows(self, rows: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=rows, animate=False)


# ---------------------------------------------------------------------------------------------------------- opening it


def choose(screen: "WatchScreen") -> None:
    """Ask what to compare with: the sessions and rounds of the same folder."""
    from kevtui.completion import targets

    snapshot = screen.snapshot
    if snapshot is None:
        return
    here = f"r{snapshot.round}" if snapshot.round is not None else snapshot.session
    names = sorted(targets(Path(snapshot.root)) - {here or ""}, reverse=True)
    if not names:
        screen.notify("No other session or round in this folder", timeout=3)
        return
    offered = [Command(name, "", "", name) for name in names]
    asked = "a round to compare with; enter opens it, escape closes"

    def chosen(name: str | None) -> None:
        if name:
            open_beside(screen, name)

    screen.app.push_screen(PaletteScreen(offered, ascii_only=screen.ink.ascii_only, asked=asked), chosen)


def open_beside(screen: "WatchScreen", name: str) -> None:
    """Show the read-out of `screen` beside that of the session or round called `name`, read by a thread."""
    snapshot, look = screen.snapshot, screen.look
    if snapshot is None or look is None:
        return

    def work() -> None:
        try:
            other = look(name, Path(snapshot.root))
        except (KevError, OSError) as error:
            screen.app.call_from_thread(screen.notify, visible(str(error)), markup=False, timeout=5)
        else:
            screen.app.call_from_thread(show, screen, snapshot, other)

    threading.Thread(target=work, name="beside", daemon=True).start()


def show(screen: "WatchScreen", here: Snapshot, other: Snapshot) -> None:
    """Open the comparison, or say which of the two has no read-out."""
    for snapshot in (here, other):
        if snapshot.readout is None or not snapshot.readout.arms:
            screen.notify(f"{snapshot.title}: no read-out to compare", markup=False, timeout=5)
            return
    if here.readout and other.readout:
        titles = (visible(here.title), visible(other.title))
        screen.app.push_screen(BesideScreen(screen.ink, here.readout, other.readout, titles))
