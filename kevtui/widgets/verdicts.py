"""The confirmation stages of each size, passed, failed or not there."""

from kevtui import glyphs
from kevtui.observe.snapshot import Section, Snapshot, StageVerdict
from kevtui.widgets import criteria
from kevtui.widgets.line import Line, Role
from kevtui.widgets.painting import Painting, Row, View
from kevtui.widgets.panel import Panel


class VerdictsPanel(Panel):
    NAME = "5 Verdicts"
    SECTIONS = (Section.VERDICTS,)

    def paint(self, snapshot: Snapshot, view: View) -> Painting:
        every = [criterion for verdict in snapshot.verdicts for criterion in verdict.criteria]
        columns = criteria.Columns.fit(every, view.width - 2)
        rows = []
        for verdict in snapshot.verdicts:
            key = f"{verdict.size} {verdict.stage}"
            rows.append(Row.of(_stage(verdict, view), key))
            rows += [
                Row.of(criteria.line(criterion, columns, view, indent=2), f"{key} {criterion.name}")
                for criterion in verdict.criteria
            ]
        return Painting(rows)

    def has_nothing(self, snapshot: Snapshot) -> bool:
        return not snapshot.verdicts


def _stage(verdict: StageVerdict, view: View) -> Line:
    pen = view.pen()
    match verdict.passed:
        case True:
            pen.add(f"{glyphs.GOOD} pass   ", Role.GOOD)
        case False:
            pen.add(f"{glyphs.BAD} fail   ", Role.BAD)
        case None:
            pen.add(f"{glyphs.NOTHING} absent ", Role.DIM)
    pen.add(f"{verdict.size} ", Role.STRONG).add(verdict.stage, Role.STRONG)
    if verdict.source:
        pen.gap(2).add(verdict.source, Role.DIM)
    return pen.line()
