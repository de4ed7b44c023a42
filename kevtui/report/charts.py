"""The plots of the page as SVG, sized by their viewBox and coloured by the page's classes. Pure.

Nothing is told by colour alone: every line has its words, and every plot a title and a description.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeGuard, TypeVar

from kev.text import shorten
from kevtui.format import MISSING
from kevtui.format import dollars as shown_dollars
from kevtui.format import money as shown_money
from kevtui.observe.snapshot import Arm, Criterion, Money, Trial, Verdict
from kevtui.plotting import figure
from kevtui.report.markup import Markup, tag
from kevtui.report.tables import moment

MOST_POINTS = 600
"""More than a plot has pixels for: of longer series every n-th is drawn, and always the last."""

Sample = TypeVar("Sample")

SIGN = {Verdict.PASS: "✓ pass", Verdict.FAIL: "✗ fail", Verdict.MISSING: "? missing"}

_WIDTH, _HEIGHT = 760.0, 260.0
_ROW = 26.0


@dataclass(frozen=True, slots=True)
class _Scale:
    """From values to places; `low` < `high`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def spend(money: Money, *, identity: str = "spend") -> Markup:
    """Spend since the baseline over time, against the authorization."""
    if not money.readings:
        return tag("p", "No reading of the meter: there is no spend to plot.", class_="missing")
    readings = _thin(money.readings)
    first, last = readings[0][0], readings[-1][0]
    limit = money.authorization
    reach = money.readings[-1][1] + (money.committed or 0)
    top = max(float(limit or 0), float(reach), *(float(usd) for _, usd in readings)) * 1.08 or 1.0
    bottom = min(0.0, *(float(usd) for _, usd in readings))
    across = _Scale(0, max((last - first).total_seconds(), 1.0), 74, _WIDTH - 150)
    up = _Scale(bottom, top, _HEIGHT - 34, 16)
    word = "simulated US dollars" if money.simulated else "US dollars"
    parts = [*_vertical(up, across, word), *_moments(first, last, across)]
    if limit is not None:
        parts += _level(up, across, float(limit), f"authorization {shown_dollars(limit)}", "limit")
        if money.reserve:
            parts += _level(up, across, float(limit - money.reserve), "less what is kept back", "reserve", above=False)
    places = [(across((at - first).total_seconds()), up(float(usd))) for at, usd in readings]
    parts.append(tag("polyline", points=_points(places), class_="line"))
    parts += [tag("circle", cx=_at(x), cy=_at(y), r=3, class_="dot") for x, y in places[-60:]]
    x, y = places[-1]
    parts.append(_label(x + 8, y + 4, f"spent {shown_dollars(readings[-1][1])}"))
    if money.committed:
        parts.append(tag("line", x1=_at(x), x2=_at(x), y1=_at(y), y2=_at(up(float(reach))), class_="committed"))
        unknown = "" if money.committed_complete else " or more"
        parts.append(
            _label(x + 8, min(up(float(reach)), y - 14) + 4, f"+ committed {shown_dollars(money.committed)}{unknown}")
        )
    told = (
        f"{len(money.readings)} readings from {moment(first)} to {moment(last)}. Spent {shown_money(money.spent)} of "
        f"{shown_money(limit)}; committed beyond it {shown_money(money.committed)}. In {word}."
    )
    return _svg(identity, "Spend against the authorization", told, _HEIGHT, parts)


def step_rate(trial: Trial, *, identity: str) -> Markup | None:
    """Steps per minute of one trial over its time; None where its log has no clock."""
    known = [(point.at_s / 60, point.steps_per_minute) for point in trial.points
             if _finite(point.at_s) and _finite(point.steps_per_minute)]  # fmt: skip
    if len(known) < 2:
        return None
    drawn = _thin(known)
    rates = [rate for _, rate in known]
    height = 150.0
    across = _Scale(known[0][0], max(known[-1][0], known[0][0] + 1e-6), 74, _WIDTH - 150)
    up = _Scale(0.0, max(*rates, 1e-9) * 1.15, height - 34, 16)
    parts = [*_vertical(up, across, "steps / min", most=3)]
    parts += [
        _label(across(value), height - 14, f"{figure(value)} min", anchor="middle")
        for value in _ticks(across.low, across.high, 6)
    ]
    places = [(across(at), up(rate)) for at, rate in drawn]
    parts.append(tag("polyline", points=_points(places), class_="line"))
    parts.append(tag("circle", cx=_at(places[-1][0]), cy=_at(places[-1][1]), r=3, class_="dot"))
    parts.append(_label(places[-1][0] + 8, places[-1][1] + 4, f"last {figure(rates[-1])}"))
    told = (
        f"{len(known)} logged steps. Steps per minute between {figure(min(rates))} and {figure(max(rates))}, "
        f"at last {figure(rates[-1])}."
    )
    return _svg(identity, f"Step rate of {trial.id}", told, height, parts)


def criteria(arm: Arm, *, identity: str) -> Markup | None:
    """The criteria of an arm, each on a scale of its own: interval, point and threshold. None where it has none."""
    if not arm.criteria:
        return None
    height = _ROW * len(arm.criteria) + 12
    parts = [part for row, each in enumerate(arm.criteria) for part in _criterion(each, 6 + _ROW * row)]
    counts = {verdict: sum(each.verdict is verdict for each in arm.criteria) for verdict in Verdict}
    told = ", ".join(f"{count} {verdict.value}" for verdict, count in counts.items()) + (
        ". Bar: the 95 % interval of the difference; dot: the figure; upright line: the threshold. "
        "Each row has a scale of its own; the table below has every number."
    )
    return _svg(identity, f"Criteria of {arm.name}", told, height, parts)


def _criterion(each: Criterion, y: float) -> Iterable[Markup]:
    middle = y + _ROW / 2
    yield _label(6, middle + 4, SIGN[each.verdict], class_=f"verdict {each.verdict.value}")
    yield _label(84, middle + 4, shorten(each.name, 38))
    bounds = (each.lower, each.upper)
    # The threshold is on the scale of the operand; an interval of something else would be compared with it by eye.
    of_interval = each.value is None or each.value in (each.delta, *bounds)
    point = each.delta if of_interval else each.value
    shown = (*(bounds if of_interval else ()), point, each.threshold)
    numbers = [float(value) for value in shown if _finite(value)]
    if not numbers:
        yield _label(370, middle + 4, "no figures", class_="missing")
        return
    spread = (max(numbers) - min(numbers)) or max(abs(numbers[0]), 1e-6)
    scale = _Scale(min(numbers) - 0.12 * spread, max(numbers) + 0.12 * spread, 370, 610)
    yield tag("line", x1=370, x2=610, y1=_at(middle), y2=_at(middle), class_="grid")
    if of_interval and _finite(each.lower) and _finite(each.upper):
        left, right = sorted((scale(each.lower), scale(each.upper)))
        yield tag("rect", x=_at(left), y=_at(middle - 4), width=_at(right - left), height=8,
                  class_=f"interval {each.verdict.value}")  # fmt: skip
    if _finite(each.threshold):
        place = _at(scale(each.threshold))
        yield tag("line", x1=place, x2=place, y1=_at(middle - 11), y2=_at(middle + 11), class_="limit")
    if _finite(point):
        yield tag("circle", cx=_at(scale(point)), cy=_at(middle), r=4, class_="dot")
    yield _label(622, middle + 4, f"{number(each.value)} {each.op} {number(each.threshold)}")


def number(value: float | None) -> str:
    """Four places, or the sign of what is missing."""
    return f"{value:.4f}" if _finite(value) else MISSING


def _svg(identity: str, title: str, told: str, height: float, parts: Iterable[str]) -> Markup:
    return tag(
        "svg",
        tag("title", title, id=f"{identity}-title"), tag("desc", told, id=f"{identity}-desc"), *parts,
        xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {_at(_WIDTH)} {_at(height)}", role="img",
        aria_labelledby=f"{identity}-title {identity}-desc",
    )  # fmt: skip


def _vertical(up: _Scale, across: _Scale, unit: str, *, most: int = 5) -> Iterable[Markup]:
    yield _label(6, 12, unit)
    for value in _ticks(up.low, up.high, most):
        y = up(value)
        yield tag("line", x1=_at(across.start), x2=_at(across.end), y1=_at(y), y2=_at(y), class_="grid")
        yield _label(across.start - 6, y + 4, figure(value), anchor="end")


def _moments(first: datetime, last: datetime, across: _Scale) -> Iterable[Markup]:
    span = (last - first).total_seconds()
    for share in (0.0, 0.5, 1.0) if span > 0 else (0.0,):
        words = moment(first + timedelta(seconds=span * share))
        anchor = "start" if share == 0 else "end" if share == 1 else "middle"
        yield _label(across.start + (across.end - across.start) * share, _HEIGHT - 12, words, anchor=anchor)


def _level(up: _Scale, across: _Scale, value: float, words: str, class_: str, *, above: bool = True) -> list[Markup]:
    y = up(value)
    line = tag("line", x1=_at(across.start), x2=_at(across.end), y1=_at(y), y2=_at(y), class_=class_)
    return [line, _label(across.start + 6, y - 5 if above else y + 14, words)]


def _label(x: float, y: float, words: str, *, anchor: str = "start", class_: str | None = None) -> Markup:
    return tag("text", words, x=_at(x), y=_at(y), text_anchor=anchor if anchor != "start" else None, class_=class_)


def _ticks(low: float, high: float, most: int) -> list[float]:
    """Round values within the bounds, about `most` of them."""
    size: float = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(size * factor for factor in (1, 2, 5, 10) if (high - low) / (size * factor) <= most)
    first = math.ceil(low / step)
    return [step * place for place in range(first, math.floor(high / step) + 1)]


def _thin(series: Sequence[Sample]) -> list[Sample]:
    stride = -(-len(series) // MOST_POINTS)
    return [*series[:-1:stride], series[-1]]


def _points(places: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{_at(x)},{_at(y)}" for x, y in places)


def _at(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _finite(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)
