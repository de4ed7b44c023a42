"""Criteria as a table: the verdict first, then the comparison that was registered, then what it was made from."""

from dataclasses import dataclass

from kevtui import format as figures
from kevtui import glyphs
from kevtui.observe.snapshot import Criterion
from kevtui.widgets.line import Line, Role
from kevtui.widgets.painting import View
from kevtui.widgets.state import VERDICT_ROLE

VERDICT, _KIND, _NUMBER, _NEED, _INTERVAL = 11, 13, 9, 10, 20


_NAME = "criterion"
_SHORT_KIND = 9
_SHORT = {"calibration": "calibr."}
_SIGN = {"<=": "≤", ">=": "≥"}


@dataclass(frozen=True, slots=True)
class Columns:
    """How many cells name and kind have, and which of the columns on the right there is room for."""

    name: int
    kind: int
    operands: bool
    interval: bool

    @classmethod
    def fit(cls, criteria: list[Criterion], width: int) -> "Columns":
        wanted = max((len(criterion.name) for criterion in criteria), default=0)
        wanted = max(wanted, len(_NAME))
        name = min(wanted, 24)
        left = width - VERDICT - _SHORT_KIND - name - 1 - _NUMBER - 1 - _NEED
        kind = _KIND if left >= _KIND - _SHORT_KIND else _SHORT_KIND
        left -= kind - _SHORT_KIND
        has_interval = any(criterion.lower is not None or criterion.upper is not None for criterion in criteria)
        interval = has_interval and left >= _INTERVAL
        left -= _INTERVAL if interval else 0
        has_operands = any(c.candidate is not None or c.parent is not None for c in criteria)
        operands = has_operands and left >= 3 * _NUMBER
        left -= 3 * _NUMBER if operands else 0
        return cls(max(len(_NAME), min(wanted, name + left)), kind, operands, interval)


def heading(columns: Columns, view: View, indent: int = 0) -> Line:
    pen = view.pen().gap(indent).add("verdict", Role.DIM, width=VERDICT)
    pen.add("kind", Role.DIM, width=columns.kind)
    pen.add(_NAME, Role.DIM, width=columns.name).gap()
    pen.add("value", Role.DIM, width=_NUMBER, right=True).gap().add("needs", Role.DIM, width=_NEED)
    if columns.operands:
        for title in ("candidate", "parent", "Δ"):
            pen.add(title, Role.DIM, width=_NUMBER, right=True)
    if columns.interval:
        pen.add("interval", Role.DIM, width=_INTERVAL, right=True)
    return pen.line()


def line(criterion: Criterion, columns: Columns, view: View, indent: int = 0) -> Line:
    role = VERDICT_ROLE[criterion.verdict]
    pen = view.pen().gap(indent)
    pen.add(f"{glyphs.VERDICT[criterion.verdict]} {criterion.verdict}", role, width=VERDICT)
    primary = criterion.kind == "primary"
    kind = _SHORT.get(criterion.kind, criterion.kind) if columns.kind < _KIND else criterion.kind
    pen.add(kind, Role.ACCENT if primary else Role.DIM, width=columns.kind)
    pen.add(criterion.name, Role.STRONG if primary else Role.TEXT, width=columns.name).gap()
    value_role = role if criterion.value is not None else Role.DIM
    pen.add(number(criterion.value), value_role, width=_NUMBER, right=True).gap()
    pen.add(need(criterion), Role.DIM, width=_NEED)
    if columns.operands:
        pen.add(number(criterion.candidate), width=_NUMBER, right=True)
        pen.add(number(criterion.parent), width=_NUMBER, right=True)
        pen.add(number(criterion.delta, signed=True), width=_NUMBER, right=True)
    if columns.interval:
        pen.add(interval(criterion.lower, criterion.upper), width=_INTERVAL, right=True)
    return pen.line()


def need(criterion: Criterion) -> str:
    return f"{_SIGN.get(criterion.op, criterion.op)} {number(criterion.threshold)}".strip()


def number(value: float | None, *, signed: bool = False) -> str:
    """Four decimals, which is what registered thresholds have; a real minus sign; missing as missing."""
    if value is None:
        return figures.MISSING
    text = f"{value:+.4f}" if signed else f"{value:.4f}"
    return text.replace("-", "−")


def interval(lower: float | None, upper: float | None) -> str:
    if lower is None and upper is None:
        return figures.MISSING
    return f"[{number(lower, signed=True)}, {number(upper, signed=True)}]"
