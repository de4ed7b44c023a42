"""What happened, the newest first."""

from collections.abc import Callable

from kevtui import format as figures
from kevtui import glyphs
from kevtui.observe.snapshot import Event, Section, Snapshot
from kevtui.widgets.line import Line, Role
from kevtui.widgets.painting import Painting, Row, View
from kevtui.widgets.panel import Panel
from kevtui.widgets.state import SEVERITY_ROLE


class EventsPanel(Panel):
    NAME = "6 Events"
    SECTIONS = (Section.EVENTS,)
    NEWEST_FIRST = True

    def paint(self, snapshot: Snapshot, view: View) -> Painting:
        newest_first = list(enumerate(snapshot.events))[::-1]
        return Painting([Row(f"event {i} {event.at}", _painter(event, view)) for i, event in newest_first])

    def has_nothing(self, snapshot: Snapshot) -> bool:
        return not snapshot.events


def _painter(event: Event, view: View) -> Callable[[], Line]:
    return lambda: _line(event, view)


def _line(event: Event, view: View) -> Line:
    role = SEVERITY_ROLE[event.severity]
    pen = view.pen().gap(1 if view.narrow else 0).add(figures.clock(event.at), Role.DIM, width=7)
    pen.add(f"{glyphs.SEVERITY[event.severity]} ", role)
    if event.subject:
        pen.add(f"{event.subject} ", Role.STRONG)
    return pen.add(event.text, role if role is Role.BAD else Role.TEXT).line()
