"""Whether an answer changes when it should, and stays when it should not: sibling pairs, and permuted options."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from kev.errors import BadRows
from kev.metrics.rows import CLEAN, Rows

PERMUTED = "permuted"


def paired_flip(rows: Rows) -> dict[str, Any] | None:
    """How the clean sibling pairs of `rows` were answered; None without a pair.

    A pair is one question asked of two states that differ in one fact. `pairs` are those whose right answers differ
    (the answer should flip); `invariant_pairs` those whose right answers agree (it should not). Answers are compared
    by option key.
    """
    flips, both, stays, both_same = [], [], [], []
    for first, second in _siblings(rows):
        right = bool(rows.correct[first] and rows.correct[second])
        same = _answer(rows, first) == _answer(rows, second)
        if rows.keys[first][rows.labels[first]] != rows.keys[second][rows.labels[second]]:
            flips.append(not same)
            both.append(right)
        else:
            stays.append(same)
            both_same.append(right)
    if not flips and not stays:
        return None
    out: dict[str, Any] = {"pairs": len(flips), "flip_rate": _share(flips), "both_correct_rate": _share(both)}
    if stays:
        out |= {
            "invariant_pairs": len(stays),
            "invariance_rate": _share(stays),
            "invariant_both_correct_rate": _share(both_same),
        }
    return out


def permutation(rows: Rows) -> dict[str, Any]:
    """How far shuffling the options moved the answers: permuted rows against the clean row of their parent record.

    `mean_max_delta` is the mean over questions of the largest change of any option's probability, matched by key.
    """
    clean = {(rows.ids[row], rows.questions[row]): row for row in np.flatnonzero(rows.variants == CLEAN).tolist()}
    deltas, flips = [], []
    for row in np.flatnonzero(rows.variants == PERMUTED).tolist():
        original = clean.get((rows.parents[row], rows.questions[row]))
        if original is None:
            continue
        if set(rows.keys[row]) != set(rows.keys[original]):
            raise BadRows(f"{rows.where(row)}: permuted options are not those of the clean row")
        before = dict(zip(rows.keys[original], rows.p[original], strict=False))
        deltas.append(max(abs(p - before[key]) for key, p in zip(rows.keys[row], rows.p[row], strict=False)))
        flips.append(_answer(rows, row) != _answer(rows, original))
    return {"n": len(deltas), "mean_max_delta": float(np.mean(deltas)) if deltas else None, "flip_rate": _share(flips)}


def _siblings(rows: Rows) -> Iterator[tuple[int, int]]:
    pairs: dict[tuple[str, str], dict[str, int]] = {}
    for row in np.flatnonzero(rows.variants == CLEAN).tolist():
        if rows.pair_ids[row] is not None and rows.siblings[row] in ("a", "b"):
            pair = pairs.setdefault((rows.pair_ids[row], rows.questions[row]), {})
            if rows.siblings[row] in pair:
                raise BadRows(f"{rows.where(row)}: pair {rows.pair_ids[row]!r} has two of sibling {rows.siblings[row]}")
            pair[rows.siblings[row]] = row
    for pair in pairs.values():
        if len(pair) == 2:
            yield pair["a"], pair["b"]


def _answer(rows: Rows, row: int) -> str:
    return str(rows.keys[row][rows.predicted[row]])


def _share(values: list[bool]) -> float | None:
    return float(np.mean(values)) if values else None
