"""Several runs compared: a line for each."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from kevtui import format as figures
from kevtui.bench import words
from kevtui.bench.panels.panel import STATE_ROLE, BenchPanel, gain_role, standing_role
from kevtui.bench.snapshot import BenchSnapshot, RunRow, RunState
from kevtui.widgets.ink import Ink
from kevtui.widgets.line import Line, Role
from kevtui.widgets.painting import Painting, Row, View


class Order(NamedTuple):
    name: str
    key: Callable[[RunRow], tuple[bool, float | str]] | None
    """The lowest first; None for the order of the file, from its end."""


ORDERS: Final = (
    Order("the latest", None),
    Order("improvement", lambda row: (row.improvement is None, -(row.improvement or 0.0))),
    Order("best", lambda row: (row.best is None, -(row.best or 0.0))),
    Order("agent", lambda row: (False, row.agent)),
    Order("task", lambda row: (False, row.task)),
)


class _Column(NamedTuple):
    name: str
    width: int
    priority: int
    cell: Callable[[RunRow], tuple[str, Role]]
    right: bool = False


def _state(row: RunRow) -> tuple[str, Role]:
    return str(row.state), STATE_ROLE[row.state]


def _time(row: RunRow) -> tuple[str, Role]:
    running = row.state is RunState.RUNNING
    return words.used(row.used_s, row.timeout_s) if running else figures.age(row.used_s), Role.TEXT


_COLUMNS: Final = (
    _Column("agent", 16, 0, lambda row: (row.agent, Role.STRONG)),
    _Column("task", 16, 2, lambda row: (row.task, Role.TEXT)),
    _Column("state", 10, 3, _state),
    _Column("baseline", 8, 5, lambda row: (words.score(row.baseline), Role.TEXT), right=True),
    _Column("best", 7, 4, lambda row: (words.score(row.best), Role.TEXT), right=True),
    _Column("change", 7, 1, lambda row: (words.gain(row.improvement), gain_role(row.improvement)), right=True),
    _Column(
        "handed in", 9, 6,
        lambda row: (figures.MISSING if row.submissions is None else str(row.submissions), Role.TEXT), right=True,
    ),
    _Column("time", 18, 8, _time, right=True),
    _Column("final", 9, 7, lambda row: (row.verdict or figures.MISSING, standing_role(row.verdict))),
    _Column("rules", 8, 10, lambda row: (row.rules, Role.DIM)),
    _Column("base", 14, 11, lambda row: (row.base_model, Role.DIM)),
    _Column("run", 30, 9, lambda row: (row.run_id, Role.DIM)),
)  # fmt: skip


class RunsPanel(BenchPanel):
    NAME = "1 Runs"
    CURSOR_ALWAYS = True

    def __init__(self, ink: Ink, *, id: str) -> None:  # noqa: A002
        self.order = 0
        super().__init__(ink, id=id)

    def next_order(self) -> None:
        self.order = (self.order + 1) % len(ORDERS)
        self.repaint()

    def paint(self, snapshot: BenchSnapshot, view: View) -> Painting:
        if snapshot.comparison is None:
            return Painting()
        shown = snapshot.comparison.rows
        if not shown:
            return Painting([Row.of(view.pen().add("no run yet", Role.DIM).line())])
        order = ORDERS[self.order]
        ordered = list(reversed(shown)) if order.key is None else sorted(shown, key=order.key)
        columns = _fit(ordered, view)
        rows = [Row(row.key, partial(_draw, row, columns, view)) for row in ordered]
        note = f" · {len(shown)}" + (f" · by {order.name}" if self.order else "")
        return Painting(rows, (_heading(columns, view),), note)

    def has_nothing(self, snapshot: BenchSnapshot) -> bool:
        return snapshot.comparison is None

    @property
    def row(self) -> RunRow | None:
        """The run under the cursor."""
        rows = self.snapshot.comparison.rows if self.snapshot and self.snapshot.comparison else ()
        return next((row for row in rows if row.key == self.key), None)


def _fit(rows: Sequence[RunRow], view: View) -> list[_Column]:
    """The columns there is room for, in their order; names are as wide as the longest of them, within reason."""
    widest = {"agent": max(len(row.agent) for row in rows), "task": max(len(row.task) for row in rows)}
    columns = [
        column._replace(width=max(6, min(widest[column.name], 24, view.width // 4)))
        if column.name in widest
        else column
        for column in _COLUMNS
    ]
    left = view.width - (1 if view.narrow else 0)
    kept = []
    for column in sorted(columns, key=lambda column: column.priority):
        if column.width + 2 <= left:
            kept.append(column)
            left -= column.width + 2
    return [column for column in columns if column in kept]


def _heading(columns: list[_Column], view: View) -> Line:
    pen = view.pen().gap(1 if view.narrow else 0)
    for column in columns:
        pen.add(column.name, Role.DIM, width=column.width, right=column.right).gap(2)
    return pen.line()


def _draw(row: RunRow, columns: list[_Column], view: View) -> Line:
    pen = view.pen().gap(1 if view.narrow else 0)
    for column in columns:
        text, role = column.cell(row)
        pen.add(text, role, width=column.width, right=column.right).gap(2)
    return pen.line()
