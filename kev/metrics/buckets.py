"""Length buckets: the rows of a panel by how many tokens their state has."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from kev.errors import UsageError
from kev.metrics.point import metric
from kev.metrics.rows import Flags, Integers, Rows

KILO = 1024
LENGTH_EDGES = (8192, 16384, 32768, 65536)
LENGTH_METRICS = ("acc", "ece", "brier", "confident_error_rate")


def check_edges(edges: Sequence[int]) -> None:
    """Raises UsageError unless `edges` are increasing positive multiples of 1,024."""
    whole = bool(edges) and all(type(edge) is int and edge > 0 and edge % KILO == 0 for edge in edges)
    if not whole or any(low >= high for low, high in pairwise(edges)):
        raise UsageError(f"length edges {list(edges)} are not increasing positive multiples of {KILO:,}")


def bucket_names(edges: Sequence[int] = LENGTH_EDGES) -> list[str]:
    """The buckets that `edges` make: disjoint ones, then a tail from every edge but the last."""
    return list(bucket_bounds(edges))


def bucket_bounds(edges: Sequence[int] = LENGTH_EDGES) -> dict[str, tuple[int, int | None]]:
    """Bucket name to its tokens, from (included) and to (not included; None without end)."""
    check_edges(edges)
    kilo = [edge // KILO for edge in edges]
    bounds: dict[str, tuple[int, int | None]] = {f"under_{kilo[0]}k": (0, edges[0])}
    for (low, high), (low_k, high_k) in zip(pairwise(edges), pairwise(kilo), strict=True):
        bounds[f"{low_k}k_{high_k}k"] = (low, high)
    bounds[f"{kilo[-1]}k_plus"] = (edges[-1], None)
    for edge, edge_k in zip(edges[:-1], kilo, strict=False):
        bounds[f"{edge_k}k_plus"] = (edge, None)
    return bounds


def bucket_masks(tokens: Integers, edges: Sequence[int] = LENGTH_EDGES) -> dict[str, Flags]:
    """Bucket name to which rows are in it, from the tokens of each row's state."""
    return {
        name: (tokens >= low) & (tokens < (np.iinfo(np.intp).max if high is None else high))
        for name, (low, high) in bucket_bounds(edges).items()
    }


def bucket_values(
    candidate: Rows, parent: Rows, tokens: tuple[Integers, Integers], edges: Sequence[int] = LENGTH_EDGES
) -> dict[str, dict[str, Any]]:
    """`<metric>_<bucket>` to both sides' values and the candidate's n; an empty bucket has nulls.

    `tokens` are the candidate's and the parent's, row by row.
    """
    ours, theirs = bucket_masks(tokens[0], edges), bucket_masks(tokens[1], edges)
    out = {}
    for name in LENGTH_METRICS:
        for bucket in ours:
            sides = {"candidate": candidate.take(ours[bucket]), "parent": parent.take(theirs[bucket])}
            values = {side: metric(rows, name) if len(rows) else None for side, rows in sides.items()}
            out[f"{name}_{bucket}"] = {**values, "n": len(sides["candidate"])}
    return out


def tokens_of(rows: Rows, by_record: Mapping[str, int]) -> Integers:
    """The tokens of each row's state: its own count, else that of its record; -1 where neither knows."""
    known = rows.state_tokens.copy()
    for row in np.flatnonzero(known < 0):
        known[row] = by_record.get(rows.ids[row], -1)
    return known
