"""What is wrong: alerts, the most severe first, then files that cannot be believed."""

from functools import partial

from kevtui import format as figures
from kevtui import glyphs
from kevtui.observe.snapshot import Alert, Finding, Section, Snapshot
from kevtui.widgets.line import Line, Role
from kevtui.widgets.painting import Painting, Row, View
from kevtui.widgets.panel import Panel
from kevtui.widgets.state import SEVERITY_ROLE, URGENCY

_WORD = 9
"""Cells for the widest severity word, "critical", and a blank."""


class AttentionPanel(Panel):
    NAME = "8 Attention"
    SECTIONS = (Section.ALERTS, Section.FINDINGS)

    def paint(self, snapshot: Snapshot, view: View) -> Painting:
        alerts = sorted(snapshot.alerts, key=lambda alert: URGENCY[alert.severity])
        subject = min(max((len(alert.subject) for alert in alerts), default=0), view.width // 4)
        # A thousand trials can all be wrong at once: only what is in view is painted.
        rows = [Row(f"alert {alert.code} {alert.subject}", partial(_alert, alert, subject, view)) for alert in alerts]
        rows += [Row(f"finding {found.path}", partial(finding_line, found, view)) for found in snapshot.findings]
        return Painting(rows, note=f" · {len(rows)}" if len(rows) > 1 else "")

    def has_nothing(self, snapshot: Snapshot) -> bool:
        return not snapshot.alerts and not snapshot.findings


def _alert(alert: Alert, subject: int, view: View) -> Line:
    role = SEVERITY_ROLE[alert.severity]
    pen = view.pen().gap(1 if view.narrow else 0).add(f"{glyphs.SEVERITY[alert.severity]} ", role)
    pen.add(alert.severity.value, role, width=_WORD)
    if subject:
        pen.add(alert.subject, Role.STRONG, width=subject).gap(2)
    return pen.add(alert.text).line()


def finding_line(finding: Finding, view: View) -> Line:
    pen = view.pen().gap(1 if view.narrow else 0).add(f"{glyphs.BAD} ", Role.BAD).add("damaged", Role.BAD, width=_WORD)
    pen.add(f"{finding.path}  ", Role.STRONG).add(finding.reason)
    if finding.last_good_age_s is not None:
        pen.add(f"; shown as it was {figures.age(finding.last_good_age_s)} ago", Role.DIM)
    return pen.line()
