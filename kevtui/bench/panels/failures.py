"""How often what went wrong."""

from kevtui.bench.panels.panel import BenchPanel
from kevtui.bench.snapshot import BenchSnapshot
from kevtui.widgets.line import Role
from kevtui.widgets.painting import Painting, Row, View


class FailuresPanel(BenchPanel):
    NAME = "4 Failures"

    def paint(self, snapshot: BenchSnapshot, view: View) -> Painting:
        failures = snapshot.run.failures if snapshot.run is not None else ()
        gap = 1 if view.narrow else 0
        rows = [
            view.pen().gap(gap).add(str(each.count), Role.WARN, width=4, right=True).gap(2).add(each.kind).line()
            for each in failures
        ]
        return Painting([Row.of(row) for row in rows])

    def has_nothing(self, snapshot: BenchSnapshot) -> bool:
        return snapshot.run is None or not snapshot.run.failures
