"""What needs somebody: alerts, the gravest first, then files that cannot be believed; what is known is only counted.

Before all of them comes what is true of everything on the screen: that the folder of all runs cannot be read.
"""

from functools import partial

from kevtui import format as figures
from kevtui import glyphs
from kevtui.observe.snapshot import Alert, Finding, Section, Snapshot
from kevtui.observe.states import RANK
from kevtui.widgets.line import Line, Role
from kevtui.widgets.painting import Painting, Row, View
from kevtui.widgets.panel import Panel
from kevtui.widgets.state import SEVERITY_ROLE

_WORD = 9
"""Cells for the widest severity word, "critical", and a blank."""

_READY = (glyphs.GOOD, "ready", Role.GOOD)
"""How an alert stands there that is no bad news: a candidate."""

CANDIDATE = "candidate"
"""The kind of that alert."""

KEY = "alert "
"""The key of an alert's row is this and the alert's id."""

DAMAGED = "damaged"
"""The kind of the alert that each finding has; the finding's own row says more, so only that is shown."""


EVERYTHING = "runs"
"""What cannot be read of this folder is true of all that is shown."""


class AttentionPanel(Panel):
    NAME = "8 Attention"
    SECTIONS = (Section.ALERTS, Section.FINDINGS)

    def paint(self, snapshot: Snapshot, view: View) -> Painting:
        alerts, findings = standing(snapshot), unknown_findings(snapshot)
        subject = min(max((len(alert.subject) for alert in alerts), default=0), view.width // 4)
        # A thousand trials can all be wrong at once: only what is in view is painted.
        rows = [_row(found, view) for found in findings if found.path == EVERYTHING]
        rows += [Row(f"{KEY}{alert.id}", partial(_alert, alert, subject, view)) for alert in alerts]
        rows += [_row(found, view) for found in findings if found.path != EVERYTHING]
        known = sum(alert.acknowledged for alert in snapshot.alerts)
        note = f" · {len(rows)}" if len(rows) > 1 else ""
        return Painting(rows, note=f"{note} · {known} acknowledged" if known else note)

    def has_nothing(self, snapshot: Snapshot) -> bool:
        return not standing(snapshot) and not unknown_findings(snapshot)

    @property
    def alert_id(self) -> str | None:
        """The id of the alert under the cursor; of a file that cannot be believed, of the alert that says so."""
        if self.key.startswith(KEY):
            return self.key.removeprefix(KEY)
        return f"{DAMAGED}:{self.key.removeprefix('finding ')}" if self.key else None


def standing(snapshot: Snapshot) -> list[Alert]:
    """The alerts that have a row: the gravest first, without those that somebody knows of."""
    found = {finding.path for finding in snapshot.findings}
    shown = [
        alert for alert in snapshot.alerts
        if not alert.acknowledged and not (alert.code == DAMAGED and alert.subject in found)
    ]  # fmt: skip
    return sorted(shown, key=lambda alert: RANK[alert.severity])


def unknown_findings(snapshot: Snapshot) -> list[Finding]:
    """The findings that nobody has acknowledged."""
    known = {alert.subject for alert in snapshot.alerts if alert.acknowledged and alert.code == DAMAGED}
    return [found for found in snapshot.findings if found.path not in known]


def _alert(alert: Alert, subject: int, view: View) -> Line:
    sign, word, role = glyphs.SEVERITY[alert.severity], alert.severity.value, SEVERITY_ROLE[alert.severity]
    if alert.code == CANDIDATE:
        sign, word, role = _READY
    pen = view.pen().gap(1 if view.narrow else 0).add(f"{sign} ", role).add(word, role, width=_WORD)
    if subject:
        pen.add(alert.subject, Role.STRONG, width=subject).gap(2)
    return pen.add(alert.text).line()


def _row(finding: Finding, view: View) -> Row:
    return Row(f"finding {finding.path}", partial(finding_line, finding, view))


def finding_line(finding: Finding, view: View) -> Line:
    pen = view.pen().gap(1 if view.narrow else 0).add(f"{glyphs.BAD} ", Role.BAD).add(DAMAGED, Role.BAD, width=_WORD)
    pen.add(f"{finding.path}  ", Role.STRONG).add(finding.reason)
    if finding.last_good_age_s is not None:
        pen.add(f"; shown as it was {figures.age(finding.last_good_age_s)} ago", Role.DIM)
    return pen.line()
