"""Step rate and loss of one trial as curves."""

from dataclasses import dataclass

from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

from kev.text import visible
from kevtui.observe.snapshot import Point, Trial
from kevtui.plotting import Sample, plot, words

STACKED_HEIGHT = 14
"""From this height on the two curves stand one over the other; below, side by side, or only the first one."""

BESIDE_WIDTH = 70


@dataclass(frozen=True, slots=True)
class Curve:
    """What to draw: the samples with their units, or the reason why there is nothing to draw."""

    title: str
    """What the curve shows, and in which unit."""
    samples: tuple[Sample, ...] = ()
    x: str = "step"
    reason: str = ""


def curves_of(trial: Trial) -> tuple[Curve, Curve]:
    """The step rate and the loss of `trial`, over time where its points have a clock and over steps where not."""
    points = trial.points
    timed = bool(points) and all(point.at_s is not None for point in points)
    divisor, x = _time_unit(points) if timed else (1.0, "step")

    def at(point: Point) -> float:
        return point.at_s / divisor if timed and point.at_s is not None else float(point.step)

    rates = tuple((at(point), point.steps_per_minute) for point in points)
    losses = tuple((at(point), point.loss) for point in points)
    has_rate = any(rate is not None for _, rate in rates)
    reason = "" if has_rate else trial.rate_note or "no rate known yet"
    return (
        Curve("step rate, steps/min", rates if has_rate else (), x, reason),
        Curve("loss", losses, x, "" if points else "no step line yet"),
    )


def _time_unit(points: tuple[Point, ...]) -> tuple[float, str]:
    span = max((point.at_s or 0.0) for point in points)
    if span >= 3 * 3600:
        return 3600.0, "h"
    return (60.0, "min") if span >= 180 else (1.0, "s")


class PlotPanel(Widget):
    """The curves of the trial last shown. Repaints only when that trial's curves change."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    PlotPanel { width: 1fr; height: 1fr; }
    """

    def __init__(self, *, ascii: bool = False, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._ascii = ascii
        self._trial_id = ""
        self._curves: tuple[Curve, ...] = ()
        self._drawn: tuple[tuple[int, int], list[str]] | None = None

    def show(self, trial: Trial | None) -> None:
        """Draw `trial`, or say that none is chosen."""
        curves = curves_of(trial) if trial else ()
        trial_id = trial.id if trial else ""
        if (curves, trial_id) != (self._curves, self._trial_id):
            self._curves, self._trial_id = curves, trial_id
            self._drawn = None
            self.refresh()

    def render_line(self, y: int) -> Strip:
        width, height = self.size
        if self._drawn is None or self._drawn[0] != (width, height):
            self._drawn = (width, height), self._draw(width, height)
        style, rows = self.rich_style, self._drawn[1]
        text = rows[y] if y < len(rows) else ""
        return Strip([Segment(text, style)]).adjust_cell_length(width, style)

    def _draw(self, width: int, height: int) -> list[str]:
        if not self._curves:
            return self._block(Curve("", reason="no trial chosen"), width, height)
        rate, loss = self._curves
        if height >= STACKED_HEIGHT:
            above = height // 2
            return self._block(rate, width, above) + self._block(loss, width, height - above)
        if width >= BESIDE_WIDTH:
            left = width // 2
            pairs = zip(self._block(rate, left - 1, height), self._block(loss, width - left, height), strict=True)
            return [f"{first} {second}" for first, second in pairs]
        return self._block(loss if rate.reason and not loss.reason else rate, width, height)

    def _block(self, curve: Curve, width: int, height: int) -> list[str]:
        """The curve, or the reason in its place: `height` rows of `width` characters."""
        if not curve.reason:
            return plot(curve.samples, width, height, x=curve.x, y=curve.title, ascii_only=self._ascii)
        text = visible(f"{curve.title}: {curve.reason}" if curve.title else curve.reason)
        return words(text.encode("ascii", "backslashreplace").decode() if self._ascii else text, width, height)
