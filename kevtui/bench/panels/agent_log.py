"""The end of what the agent prints."""

from kevtui import format as figures
from kevtui.bench.panels.panel import BenchPanel
from kevtui.bench.snapshot import BenchSnapshot
from kevtui.widgets.line import Role
from kevtui.widgets.painting import Painting, Row, View


class AgentLogPanel(BenchPanel):
    """As many of the last lines as there is room for; the whole file opens with the log key."""

    NAME = "5 Agent log"

    def paint(self, snapshot: BenchSnapshot, view: View) -> Painting:
        log = snapshot.run.log if snapshot.run is not None else None
        gap = 1 if view.narrow else 0
        if log is None or not log.lines:
            return Painting([Row.of(view.pen().gap(gap).add("nothing printed yet", Role.DIM).line())])
        # Before it has a place of its own the panel says how many lines would fill one.
        shown = log.lines[-view.height :] if view.height else log.lines
        note = f" · written {figures.age(log.age_s)} ago" if log.age_s is not None and log.age_s >= 60 else ""
        return Painting([Row.of(view.pen().gap(gap).add(line).line()) for line in shown], note=note)

    def has_nothing(self, snapshot: BenchSnapshot) -> bool:
        return snapshot.run is None
