"""Files of the bench that cannot be believed."""

from functools import partial

from kevtui.bench.panels.panel import BenchPanel
from kevtui.bench.snapshot import BenchSnapshot
from kevtui.observe.snapshot import Finding
from kevtui.widgets.attention import finding_line
from kevtui.widgets.painting import Painting, Row, View


class FindingsPanel(BenchPanel):
    NAME = "8 Attention"

    def paint(self, snapshot: BenchSnapshot, view: View) -> Painting:
        found = snapshot.findings
        rows = [Row(key_of(at, each), partial(finding_line, each, view)) for at, each in enumerate(found)]
        return Painting(rows, note=f" · {len(rows)}" if len(rows) > 1 else "")

    def has_nothing(self, snapshot: BenchSnapshot) -> bool:
        return not snapshot.findings


def key_of(place: int, finding: Finding) -> str:
    return f"finding {place} {finding.path}"
