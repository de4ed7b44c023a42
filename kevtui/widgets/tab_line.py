"""The sessions of a dashboard that shows several, on one line: which is looked at, what is wrong with the others."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from textual import events
from textual.message import Message

from kevtui.widgets.ink import Ink
from kevtui.widgets.line import Line, Role
from kevtui.widgets.painting import Painting, Row, View
from kevtui.widgets.panel import Panel

_LEAST = 4
"""Cells of a title that still tell one tab from another."""


class Mark(NamedTuple):
    """A tab as the line of tabs shows it."""

    title: str
    here: bool = False
    """Whether it is the one that is looked at."""
    text: str = ""
    """What is wrong with it; "" for the one that is looked at, whose panels say it."""
    role: Role = Role.DIM


class TabLine(Panel[Any], can_focus=False):
    """Shows the marks that it is told."""

    def __init__(self, ink: Ink, *, id: str) -> None:  # noqa: A002
        super().__init__(ink, id=id)
        self._marks: tuple[Mark, ...] = ()

    class Chosen(Message):
        """A tab was pointed at."""

        def __init__(self, number: int) -> None:
            self.number = number
            super().__init__()

    def tell(self, marks: Sequence[Mark]) -> None:
        if tuple(marks) != self._marks:
            self._marks = tuple(marks)
            self.repaint()

    def show(self, snapshot: Any) -> None:
        """Tabs do not depend on what one of them shows."""

    def content_lines(self) -> int:
        return 1

    def on_click(self, event: events.Click) -> None:
        size = self.content_size
        ends = places(self._marks, View(size.width, size.height, self.ink))
        number = next((number for number, end in enumerate(ends) if event.x < end), None)
        if number is not None:
            self.post_message(self.Chosen(number))

    def _make_painting(self) -> Painting:
        size = self.content_size
        return Painting([Row.of(tabs(self._marks, View(size.width, size.height, self.ink)))])


def tabs(marks: Sequence[Mark], view: View) -> Line:
    """Every tab with its number; where there is no room, titles are cut, never what is wrong."""
    pen = view.pen()
    pen.gap()
    for number, (mark, width) in enumerate(zip(marks, _titles(marks, view), strict=True), 1):
        left, right = ("[", "]") if mark.here else (" ", " ")
        pen.add(f"{left}{number} ", Role.STRONG if mark.here else Role.DIM)
        pen.add(mark.title, Role.STRONG if mark.here else Role.TEXT, width=width)
        if mark.text:
            pen.add(f" {mark.text}", mark.role)
        pen.add(right, Role.STRONG if mark.here else Role.DIM).gap()
    return pen.line()


def places(marks: Sequence[Mark], view: View) -> list[int]:
    """Where each tab ends: its first cell after it."""
    sizes = [fixed + title for fixed, title in zip(_fixed(marks, view), _titles(marks, view), strict=True)]
    return [1 + end for end in accumulate(sizes)]


def _fixed(marks: Sequence[Mark], view: View) -> list[int]:
    """Cells of each tab beside its title."""
    pen = view.pen()
    return [pen.measure(f"[{number} ]{f' {mark.text}' if mark.text else ''} ") for number, mark in enumerate(marks, 1)]


def _titles(marks: Sequence[Mark], view: View) -> list[int]:
    """Cells of each title."""
    pen = view.pen()
    return _shares([pen.measure(mark.title) for mark in marks], view.width - sum(_fixed(marks, view)) - 1)


def _shares(wanted: list[int], room: int) -> list[int]:
    """`room` cells among titles: the longest give first, none below the least."""
    given = list(wanted)
    while given and sum(given) > room and max(given) > _LEAST:
        given[given.index(max(given))] -= 1
    return given
