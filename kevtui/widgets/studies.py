"""Every trial of every study: is it moving, will it be in time, is it held, what is it bound to cost."""

from functools import partial

from kevtui.columns import EVERY, chosen
from kevtui.observe.snapshot import Section, Snapshot, Trial
from kevtui.widgets.ink import Ink
from kevtui.widgets.line import Line
from kevtui.widgets.painting import Painting, Row, View
from kevtui.widgets.panel import Panel
from kevtui.widgets.state import counts
from kevtui.widgets.study_columns import draw, fit, heading
from kevtui.widgets.trial_rows import SORTS, entries, matching


class StudiesPanel(Panel):
    NAME = "1 Studies"
    SECTIONS = (Section.STUDIES, Section.LEASES)
    CURSOR_ALWAYS = True

    def __init__(self, ink: Ink, *, id: str, columns: tuple[str, ...] = EVERY, sort: str = "") -> None:  # noqa: A002
        self.sort = next((place for place, each in enumerate(SORTS) if each.name == sort), 0)
        super().__init__(ink, id=id)
        self.columns = columns
        """Ids of the columns that are wanted, in their order; see kevtui.columns."""

    def paint(self, snapshot: Snapshot, view: View) -> Painting:
        everything = entries(snapshot)
        rows = matching(everything, view.filter)
        sort = SORTS[self.sort]
        if sort.key is not None:
            rows = sorted(rows, key=sort.key)  # type: ignore[arg-type]
        columns = fit(everything, view, self.columns)
        lines = [Row(row.key, partial(draw, row, columns, view)) for row in rows]
        return Painting(lines, (heading(columns, view),), self._note(snapshot, view, len(rows), len(everything)))

    def head(self, view: View) -> tuple[Line, ...]:
        return (heading(fit([], view, self.columns), view),)

    @property
    def trial(self) -> Trial | None:
        """The trial under the cursor."""
        trials = self.snapshot.trials if self.snapshot else ()
        return next((trial for trial in trials if trial.id == self.key), None)

    @property
    def sorted_by(self) -> str:
        """Name of the order of the rows; "" for that of the files."""
        return SORTS[self.sort].name

    def next_sort(self) -> None:
        self.sort = (self.sort + 1) % len(SORTS)
        self.repaint()

    def choose_columns(self, ids: tuple[str, ...]) -> None:
        self.columns = chosen(ids)
        self.repaint()

    def set_filter(self, words: str) -> None:
        self.filter = words
        self.repaint()

    def _note(self, snapshot: Snapshot, view: View, shown: int, total: int) -> str:
        note = ""
        if view.filter:
            note += f" · {shown} of {total} match {view.filter!r}"
        elif not view.narrow:
            note += "".join(f" · {number} {word}" for _, word, _, number in counts(snapshot))
        if SORTS[self.sort].name:
            note += f" · by {SORTS[self.sort].name}"
        return note
