"""Made-up rows, and a read-out whose figures are made up and whose verdicts follow from the registered rule."""

import operator
import random
from collections.abc import Collection
from typing import Any, Final

from kev.records.readout import Comparison, ReadOut
from kev.records.rows import Row
from kev.records.spec import Criterion, RoundSpec, size_of
from kevtui.sample.setting import NOTICE

OPERATORS: Final = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}

Figures = dict[tuple[str, str], tuple[float, float, float]]

FIGURES: Final[dict[str, Figures]] = {
    # arm: (panel, metric): candidate, parent, half of the interval
    "4b-a": {
        ("hard", "acc"): (0.742, 0.719, 0.014),
        ("hard", "brier"): (0.351, 0.362, 0.008),
        ("docs", "acc"): (0.881, 0.876, 0.012),
    },
    "4b-b": {
        ("hard", "acc"): (0.728, 0.719, 0.015),
        ("hard", "brier"): (0.359, 0.362, 0.008),
        ("docs", "acc"): (0.869, 0.876, 0.012),
    },
    "9b-a": {
        ("hard", "acc"): (0.791, 0.776, 0.013),
        ("hard", "brier"): (0.319, 0.307, 0.007),
        ("docs", "acc"): (0.902, 0.905, 0.010),
    },
    "27b-a": {
        ("hard", "acc"): (0.838, 0.831, 0.012),
        ("hard", "brier"): (0.251, 0.259, 0.006),
        ("docs", "acc"): (0.931, 0.928, 0.009),
    },
}


def rows(name: str) -> list[Row]:
    """A few questions as they might have been answered in the read `name`."""
    chance = random.Random(name)
    made = []
    for number in range(6):
        p = round(chance.uniform(0.2, 0.95), 4)
        made.append(
            Row(
                id=f"sample-{number}",
                group=f"sample-{number}",
                question="q0",
                source="sample",
                task="sample",
                type="choice",
                variant="clean",
                keys=["yes", "no"],
                label=chance.randrange(2),
                p=[p, round(1.0 - p, 4)],
            )
        )
    return made


def readout(spec: RoundSpec, read: Collection[str]) -> ReadOut:
    """The read-out once the arms in `read` have all their rows; the others are missing."""
    arms = {arm: _compare(spec, arm) if arm in read else _unread(spec, arm) for arm in spec.arms}
    ranking: dict[str, list[str]] = {}
    for arm, comparison in arms.items():
        ranking.setdefault(size_of(arm), []).extend([arm] if comparison.passed else [])
    for passing in ranking.values():
        passing.sort(key=lambda arm: -sum(arms[arm].resolve(f"{panel}.acc.delta") or 0.0 for panel in ("hard", "docs")))
    return ReadOut(
        sample=True,
        notice=NOTICE,
        round=spec.round,
        registered=spec.registered,
        drop_ids=[],
        arms=arms,
        ranking=ranking,
        candidates={size: passing[0] if passing else None for size, passing in ranking.items()},
    )


def _compare(spec: RoundSpec, arm: str) -> Comparison:
    panels: dict[str, dict[str, Any]] = {}
    for (panel, metric), (candidate, parent, half) in FIGURES[arm].items():
        delta = round(candidate - parent, 4)
        interval = [round(delta - half, 4), round(delta + half, 4)]
        figured = {"candidate": candidate, "parent": parent, "delta": delta, "ci95": interval}
        panels.setdefault(panel, {"n": 800})[metric] = figured
    figures = Comparison.model_validate({"panels": panels})
    criteria = {name: _holds(criterion, figures) for name, criterion in spec.rule.criteria.items()}
    return Comparison.model_validate(
        {
            "trial": spec.arms[arm].trial,
            "parent": spec.parents[spec.arms[arm].parent].trial,
            "temperature": 1.31,
            "parent_temperature": 1.42,
            "temperature_source": {"kind": "pool", "reads": ["cal"], "questions": 800},
            "panels": panels,
            "criteria": criteria,
            "missing": [],
            "complete": True,
            "passed": all(criteria.values()),
        }
    )


def _unread(spec: RoundSpec, arm: str) -> Comparison:
    return Comparison(
        trial=spec.arms[arm].trial,
        parent=spec.parents[spec.arms[arm].parent].trial,
        missing=[f"candidate:runs/r{spec.round}-{arm}-cal"],
        complete=False,
        passed=None,
    )


def _holds(criterion: Criterion, figures: Comparison) -> bool | None:
    left = figures.resolve(str(criterion.left))
    right = figures.resolve(criterion.right) if isinstance(criterion.right, str) else float(criterion.right)
    if left is None or right is None:
        return None
    return bool(OPERATORS[criterion.op](left, right + (criterion.plus or 0)))
