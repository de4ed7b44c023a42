"""Several runs compared: the best improvement of each agent on each task."""

from functools import partial

from kevtui import format as figures
from kevtui import glyphs
from kevtui.bench import words
from kevtui.bench.panels.panel import BenchPanel, gain_role
from kevtui.bench.snapshot import BenchSnapshot, Cell, Comparison
from kevtui.widgets.line import Line, Pen, Role
from kevtui.widgets.painting import Painting, Row, View

_CELL = 14


class MatrixPanel(BenchPanel):
    NAME = "2 Best improvement and number of runs, agent by task"

    def paint(self, snapshot: BenchSnapshot, view: View) -> Painting:
        several = snapshot.comparison
        if several is None or not several.cells:
            return Painting()
        rows = [Row(f"agent {agent}", partial(_row, several, agent, view)) for agent in several.agents]
        return Painting(rows, (_heading(several, view),))

    def has_nothing(self, snapshot: BenchSnapshot) -> bool:
        return snapshot.comparison is None or not snapshot.comparison.cells


def _begin(several: Comparison, view: View, text: str, role: Role) -> Pen:
    widest = max(view.pen().measure(agent) for agent in several.agents)
    pen = view.pen().gap(1 if view.narrow else 0)
    return pen.add(text, role, width=min(max(widest, 5), max(8, view.width // 3)))


def _heading(several: Comparison, view: View) -> Line:
    pen = _begin(several, view, "agent", Role.DIM)
    for task in several.tasks:
        pen.gap(2).add(task, Role.DIM, width=max(_CELL, min(24, pen.measure(task))), right=True)
    return pen.line()


def _row(several: Comparison, agent: str, view: View) -> Line:
    pen = _begin(several, view, agent, Role.STRONG)
    for task in several.tasks:
        width = max(_CELL, min(24, pen.measure(task)))
        cell = several.cell(agent, task)
        pen.gap(2).add(_words(cell), Role.DIM if cell is None else gain_role(cell.improvement), width=width, right=True)
    return pen.line()


def _words(cell: Cell | None) -> str:
    if cell is None:
        return figures.MISSING
    running = f" {glyphs.LIVE}{cell.running}" if cell.running else ""
    return f"{words.gain(cell.improvement)} of {cell.runs}{running}"
