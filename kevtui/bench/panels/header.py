"""The strip at the top: which run, how it stands, and that nothing can be changed from here."""

from kevtui import glyphs
from kevtui.bench import words
from kevtui.bench.panels.panel import STATE_ROLE, BenchPanel
from kevtui.bench.snapshot import BenchSnapshot, RunState
from kevtui.widgets.ink import Ink
from kevtui.widgets.line import Line, Role
from kevtui.widgets.painting import Painting, Row, View

READ_ONLY = "READ-ONLY"
_SIGN = {
    RunState.RUNNING: glyphs.LIVE,
    RunState.TIME_UP: glyphs.RISK,
    RunState.ENDED: glyphs.GOOD,
    RunState.UNKNOWN: "?",
}


class BenchHeader(BenchPanel, can_focus=False):
    def __init__(self, ink: Ink, *, id: str, title: str) -> None:  # noqa: A002
        super().__init__(ink, id=id)
        self._title_text = title
        self._silence = ""

    def tell_silence(self, text: str) -> None:
        """Say that nothing more is heard of what is shown; "" says that something is."""
        if text != self._silence:
            self._silence = text
            self.repaint()

    def paint(self, snapshot: BenchSnapshot, view: View) -> Painting:
        return Painting([Row.of(strip(self._title_text, snapshot, view, self._silence))])

    def _make_painting(self) -> Painting:
        if self.snapshot is not None:
            return super()._make_painting()
        size = self.content_size
        return Painting([Row.of(strip(self._title_text, None, View(size.width, size.height, self.ink), self._silence))])


def strip(title: str, snapshot: BenchSnapshot | None, view: View, silence: str = "") -> Line:
    right = [(READ_ONLY, Role.ACCENT)]
    if silence:
        right.insert(0, (silence, Role.BAD))
    if snapshot is not None and snapshot.polling:
        right.insert(0, (snapshot.polling, Role.DIM))
    pen = view.pen()
    reserved = sum(pen.measure(text) + 2 for text, _ in right)
    pen.gap().add(title, Role.STRONG, width=min(pen.measure(title), max(8, view.width - reserved - 2)))
    for text, role in _standing(snapshot):
        if pen.measure(text) + 3 <= pen.left - reserved:
            pen.gap(3).add(text, role)
    pen.to(view.width - reserved)
    for text, role in right:
        pen.gap().add(text, role).gap()
    return pen.line()


def _standing(snapshot: BenchSnapshot | None) -> list[tuple[str, Role]]:
    if snapshot is None:
        return []
    if snapshot.run is not None:
        state = snapshot.run.time.state
        return [(f"{_SIGN[state]} {state}", STATE_ROLE[state]), (words.left(snapshot.run), Role.TEXT)]
    rows = snapshot.comparison.rows if snapshot.comparison is not None else ()
    running = sum(row.state is RunState.RUNNING for row in rows)
    return [(f"{len(rows)} runs", Role.TEXT), (f"{glyphs.LIVE} {running} running", Role.GOOD if running else Role.DIM)]
