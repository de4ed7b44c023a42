"""The scores of a run as a curve: lines of plain text, and a picture for those who have matplotlib."""

import io
from collections.abc import Sequence

from kev.autorl.scores import Scores
from kev.errors import UsageError

SCORE, BEST, NONE, BASELINE = "o", "@", "x", "-"


def draw_text(scores: Scores, *, width: int = 64, height: int = 10) -> list[str]:
    """The curve in ASCII, `height` rows and at most `width` columns of submissions, with a legend below.

    Where there are more submissions than columns, a column shows the best of those that share it; what has no score
    is an `x` on the lowest row.
    """
    values = [entry.score if entry.is_valid else None for entry in scores.entries]
    known = [value for value in values if value is not None]
    if not values:
        return ["no submissions"]
    baseline = scores.baseline
    span = known + ([] if baseline is None else [baseline])
    low, high = (min(span), max(span)) if span else (0.0, 1.0)
    columns = _columns(values, width)
    best = max(known, default=None)
    grid = [[" "] * len(columns) for _ in range(height)]

    def row(value: float) -> int:
        # Halved before they are subtracted: two far figures may be further apart than a float can say.
        share = 0.5 if high == low else (value / 2 - low / 2) / (high / 2 - low / 2)
        return height - 1 - round(share * (height - 1))

    if baseline is not None:
        grid[row(baseline)] = [BASELINE] * len(columns)
    for place, value in enumerate(columns):
        if value is None:
            grid[height - 1][place] = NONE
        else:
            grid[row(value)][place] = BEST if value == best else SCORE
    labels = {0: f"{high:g}", height - 1: f"{low:g}"}
    margin = max(len(label) for label in labels.values())
    lines = [f"{labels.get(at, ''):>{margin}} |{''.join(cells)}" for at, cells in enumerate(grid)]
    return [*lines, f"{'':>{margin}} +{'-' * len(columns)}", _legend(scores, baseline)]


def draw_picture(scores: Scores) -> bytes:
    """The curve as a PNG. Raises UsageError where matplotlib is not installed."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("a picture needs matplotlib: install the extra `plot`, or read the curve as text") from None
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    ranked = scores.valid
    axes.plot([each.submission_id for each in ranked], [each.score or 0.0 for each in ranked], "o-", label="score")
    failed = [each.submission_id for each in scores.entries if not each.is_valid]
    if failed:
        axes.plot(failed, [0.02] * len(failed), "x", transform=axes.get_xaxis_transform(), label="no score")
    baseline, best = scores.baseline, scores.best
    if baseline is not None:
        axes.axhline(baseline, linestyle="--", color="grey", label=f"baseline {baseline:g}")
    if best is not None and best.score is not None:
        axes.plot([best.submission_id], [best.score], "*", markersize=14, label=f"best {best.score:g}")
    axes.set_xlabel("submission")
    axes.set_ylabel("score")
    if scores.entries:
        axes.legend(loc="best")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=120)
    return buffer.getvalue()


def _columns(values: Sequence[float | None], width: int) -> list[float | None]:
    if len(values) <= width:
        return list(values)
    parts = [values[at * len(values) // width : (at + 1) * len(values) // width] for at in range(width)]
    return [max((value for value in part if value is not None), default=None) for part in parts]


def _legend(scores: Scores, baseline: float | None) -> str:
    best = scores.best
    words = [f"{len(scores.entries)} submissions", f"{len(scores.errors)} errors"]
    if scores.not_finite:
        words.append(f"{len(scores.not_finite)} not finite")
    words.append("no baseline" if baseline is None else f"baseline {baseline:g} ({BASELINE})")
    if best is not None:
        words.append(f"best {best.score:g} by submission {best.submission_id} ({BEST})")
    return ", ".join(words)
