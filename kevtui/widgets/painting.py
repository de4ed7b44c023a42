"""What a panel makes of a Snapshot: rows that are painted when they come into view."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kevtui.widgets.ink import Ink
from kevtui.widgets.line import Line, Pen


@dataclass(frozen=True, slots=True)
class Row:
    """`key` is the identity the cursor follows; "" for a line the cursor passes over. `paint` runs when in view."""

    key: str
    paint: Callable[[], Line]

    @classmethod
    def of(cls, line: Line, key: str = "") -> "Row":
        return cls(key, lambda: line)


@dataclass(frozen=True, slots=True)
class Painting:
    rows: Sequence[Row] = ()
    head: tuple[Line, ...] = ()
    """Lines above the rows that stay when the rows scroll."""
    note: str = ""
    """Goes into the title: how it is sorted, how many are shown."""


@dataclass(frozen=True, slots=True)
class View:
    """What a painting depends on beside the Snapshot."""

    width: int
    height: int
    ink: Ink
    filter: str = ""
    narrow: bool = False
    """True for the phone form: one line where a box would take three."""

    def pen(self) -> Pen:
        return self.ink.pen(self.width)
