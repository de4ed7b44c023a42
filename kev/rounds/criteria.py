"""What a comparison is judged by: paths into it, criteria over them, and the ranking of those that pass.

Pure, and free of numpy: the dashboard evaluates the same criteria on read-out files. A comparison is the plain JSON
object that a read-out holds for an arm; files of older shapes are brought into this one before they come here.

    <panel>.<metric>.<candidate|parent|delta|lower|upper>
    <panel>.<metric>_<bucket>.<candidate|parent>
    unknowable.<candidate|parent>
"""

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kev.errors import UsageError
from kev.records.spec import size_of

UNKNOWABLE = "unknowable"
SIDES = ("candidate", "parent")
FIELDS = (*SIDES, "delta", "lower", "upper")

OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}

_BUCKET = re.compile(r"(?P<metric>.+)_(?P<bucket>under_\d+k|\d+k_\d+k|\d+k_plus)")


@dataclass(frozen=True, slots=True)
class Path:
    """One value of a comparison. `metric` is "" for the unknowable share; `bucket` is "" outside length buckets."""

    panel: str
    metric: str
    field: str
    bucket: str = ""

    @property
    def column(self) -> str:
        """The key under the panel: the metric, with its bucket if it has one."""
        return f"{self.metric}_{self.bucket}" if self.bucket else self.metric

    def __str__(self) -> str:
        return ".".join(part for part in (self.panel, self.column, self.field) if part)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A criterion with the values it came to. `passed` is None where a value it needs is not known."""

    left: float | None
    op: str
    right: float | None
    passed: bool | None

    @property
    def margin(self) -> float | None:
        """How far the left value is on the right side of the threshold; negative where it fails."""
        if self.left is None or self.right is None:
            return None
        return self.left - self.right if self.op.startswith(">") else self.right - self.left


@dataclass(frozen=True, slots=True)
class Ranking:
    """Per size the passing, selectable arms, best first, and the first of them (None where none passes).

    `unranked` names arms that a ranking value is missing for: they passed, and sort last.
    """

    order: dict[str, list[str]]
    candidates: dict[str, str | None]
    unranked: list[str]


def parse_path(text: object) -> Path:
    """The path that `text` spells. Raises UsageError saying what a path looks like."""
    parts = text.rsplit(".", 2) if isinstance(text, str) else []  # a panel's own name may hold dots
    match parts:
        case [panel, field] if panel == UNKNOWABLE and field in SIDES:
            return Path(panel, "", field)
        case [panel, metric, field] if panel and metric and field in FIELDS:
            bucketed = _BUCKET.fullmatch(metric)
            if bucketed is None:
                return Path(panel, metric, field)
            if field in SIDES:
                return Path(panel, bucketed["metric"], field, bucketed["bucket"])
    raise UsageError(
        f"{text!r} is no path: write panel.metric.field with field one of {', '.join(FIELDS)}, "
        f"panel.metric_bucket.candidate or .parent, or {UNKNOWABLE}.candidate or .parent"
    )


def lookup(comparison: Mapping[str, Any], path: Path) -> float | None:
    """The value at `path`, None where the comparison does not hold it."""
    if path.panel == UNKNOWABLE and not path.metric:
        return _number(_at(comparison, UNKNOWABLE, path.field))
    entry = _at(comparison, "panels", path.panel, path.column)
    if path.field not in ("lower", "upper"):
        return _number(_at(entry, path.field))
    interval = _at(entry, "ci95")
    if not isinstance(interval, Sequence) or isinstance(interval, str) or len(interval) != 2:
        return None
    return _number(interval[0 if path.field == "lower" else 1])


def operands(criterion: Mapping[str, Any]) -> tuple[list[Path], list[Path]]:
    """The paths that a criterion reads: of its left side (one, or two to subtract) and of its right (none or one).

    Raises UsageError for anything that is not a criterion.
    """
    left = criterion.get("left")
    left = [left] if isinstance(left, str) else left
    if not isinstance(left, Sequence) or not 1 <= len(left) <= 2:
        raise UsageError("left is a path, or two paths of which the second is subtracted")
    right = criterion.get("right")
    if criterion.get("op") not in OPERATORS:
        raise UsageError(f"op {criterion.get('op')!r} is none of {' '.join(OPERATORS)}")
    if not isinstance(right, str) and _number(right) is None:
        raise UsageError(f"right {right!r} is neither a number nor a path")
    if criterion.get("plus") is not None and _number(criterion["plus"]) is None:
        raise UsageError(f"plus {criterion['plus']!r} is not a number")
    return [parse_path(path) for path in left], [parse_path(right)] if isinstance(right, str) else []


def evaluate(criterion: Mapping[str, Any], comparison: Mapping[str, Any]) -> Outcome:
    """What `criterion` comes to on `comparison`: left - left' OP right + plus. Raises UsageError as `operands`."""
    lefts, rights = operands(criterion)
    values = [lookup(comparison, path) for path in lefts]
    left = _difference(values)
    right = lookup(comparison, rights[0]) if rights else _number(criterion["right"])
    plus = criterion.get("plus")
    if right is not None and plus is not None:
        right = right + plus
    op = str(criterion["op"])
    passed = None if left is None or right is None else OPERATORS[op](left, right)
    return Outcome(left, op, right, passed)


def evaluate_all(criteria: Mapping[str, Mapping[str, Any]], comparison: Mapping[str, Any]) -> dict[str, Outcome]:
    """Every criterion, by name, in the order of the rule."""
    return {name: evaluate(criterion, comparison) for name, criterion in criteria.items()}


def verdict(outcomes: Iterable[bool | None], *, complete: bool) -> bool | None:
    """Whether a comparison passes: None wherever that is not known.

    Known to fail needs only one criterion that is false, whatever is still missing: no later row can undo it. Known
    to pass needs every row there and every criterion true. No criteria at all decide nothing.
    """
    known = list(outcomes)
    if False in known:
        return False
    return True if complete and known and None not in known else None


def rank(
    arms: Mapping[str, Mapping[str, Any]], keys: Sequence[Mapping[str, Any]], *, selectable: Mapping[str, bool]
) -> Ranking:
    """Order the arms that passed and may be chosen, size by size.

    `arms` are comparisons in the order of the spec, which stays on ties; `keys` are the rule's rank keys. A missing
    value sorts after every known one, whichever the direction.
    """
    order: dict[str, list[str]] = {size_of(arm): [] for arm in arms}
    unranked = []
    sorting = {}
    for arm, comparison in arms.items():
        if comparison.get("passed") is not True or not selectable.get(arm, True):
            continue
        values = [_rank_value(key, comparison) for key in keys]
        if any(missing for missing, _ in values):
            unranked.append(arm)
        sorting[arm] = values
        order[size_of(arm)].append(arm)
    for passing in order.values():
        passing.sort(key=sorting.__getitem__)
    return Ranking(order, {size: passing[0] if passing else None for size, passing in order.items()}, unranked)


def rank_paths(key: Mapping[str, Any]) -> list[Path]:
    """The paths that a rank key adds up. Raises UsageError for anything that is not a rank key."""
    by = key.get("by")
    by = [by] if isinstance(by, str) else by
    if not isinstance(by, Sequence) or not by:
        raise UsageError("by is a path, or a list of paths to add up")
    if key.get("order", "desc") not in ("desc", "asc"):
        raise UsageError(f"order {key['order']!r} is neither desc nor asc")
    return [parse_path(path) for path in by]


def _rank_value(key: Mapping[str, Any], comparison: Mapping[str, Any]) -> tuple[bool, float]:
    total = 0.0
    for position, path in enumerate(rank_paths(key)):
        value = lookup(comparison, path)
        if value is None:
            return True, 0.0
        total = total + value if position else value
    return False, total if key.get("order", "desc") == "asc" else -total


def _difference(values: Sequence[float | None]) -> float | None:
    first, *rest = values
    for value in rest:
        first = None if first is None or value is None else first - value
    return first


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _number(value: Any) -> float | None:
    # NaN is no value: it would compare false with everything and sort anywhere.
    usable = isinstance(value, int | float) and not isinstance(value, bool) and value == value
    return value if usable else None
