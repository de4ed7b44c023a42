"""The scores of a run over its time, with its baseline and its best as dotted lines."""

from collections.abc import Sequence
from dataclasses import dataclass

from kevtui.bench import words
from kevtui.bench.panels.panel import BenchPanel
from kevtui.bench.snapshot import BenchSnapshot, Run, RunRow
from kevtui.plotting import Sample, plot
from kevtui.plotting import words as words_in_the_middle
from kevtui.widgets.ink import Ink
from kevtui.widgets.painting import Painting, Row, View

LEAST_ROWS = 8


@dataclass(frozen=True, slots=True)
class Trajectory:
    """`samples` are (minutes, score)."""

    samples: tuple[Sample, ...] = ()
    baseline: float | None = None
    best: float | None = None

    @property
    def title(self) -> str:
        dotted = [("baseline", self.baseline), ("best", self.best)]
        told = ", ".join(f"{name} {words.score(value)}" for name, value in dotted if value is not None)
        return f"score; dotted: {told}" if told else "score"

    def rows(self, width: int, height: int, *, ascii_only: bool) -> list[str]:
        if not any(score is not None for _, score in self.samples):
            return words_in_the_middle("no score to draw", width, height)
        levels = [value for value in (self.baseline, self.best) if value is not None]
        return plot(self.samples, width, height, x="min", y=self.title, levels=levels, ascii_only=ascii_only)


class TrajectoryPanel(BenchPanel):
    NAME = "9 Scores"

    def __init__(self, ink: Ink, *, id: str) -> None:  # noqa: A002
        self._chosen: RunRow | None = None
        super().__init__(ink, id=id)

    def choose(self, row: RunRow | None) -> None:
        """Draw the scores of `row`, where several runs are compared."""
        if row != self._chosen:
            self._chosen = row
            self.repaint()

    def paint(self, snapshot: BenchSnapshot, view: View) -> Painting:
        if snapshot.run is not None:
            curve, note = of_run(snapshot.run), ""
        else:
            curve = of_row(self._chosen)
            note = f" · {self._chosen.agent} on {self._chosen.task}" if self._chosen is not None else ""
        rows = curve.rows(max(view.width, 1), max(view.height, LEAST_ROWS), ascii_only=view.ink.ascii_only)
        return Painting([Row.of(view.pen().add(row).line()) for row in rows], note=note)

    def has_nothing(self, snapshot: BenchSnapshot) -> bool:
        if snapshot.run is not None:
            return not snapshot.run.submissions
        return snapshot.comparison is None or not any(row.trajectory for row in snapshot.comparison.rows)


def of_run(run: Run) -> Trajectory:
    """What is drawn of a run that is watched by itself."""
    best = run.best
    samples = [(each.at_s, each.score) for each in run.submissions if each.at_s is not None]
    return Trajectory(_in_minutes(samples), run.baseline, best.score if best else None)


def of_row(row: RunRow | None) -> Trajectory:
    """What is drawn of a run among others."""
    return Trajectory() if row is None else Trajectory(_in_minutes(row.trajectory), row.baseline, row.best)


def _in_minutes(samples: Sequence[tuple[float, float | None]]) -> tuple[Sample, ...]:
    return tuple((at / 60, score) for at, score in samples)
