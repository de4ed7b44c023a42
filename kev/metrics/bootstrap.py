"""The paired, record-clustered bootstrap: how far two checkpoints differ on the same questions, and how surely.

Each resample draws whole records (clusters of one source and group), so that questions about one record never count
as independent. Both sides are measured on the same resample and subtracted; the interval is the 2.5 % and 97.5 %
quantiles of those differences. Three kinds of statistic, and how each avoids a loop over resamples:

- means of one value per question: cluster sums times counts;
- ECE: share x |accuracy - confidence| of a bin is |sum of (correct - confidence)| / n, so also cluster sums times
  counts, ten columns of them;
- AURC and coverage need an order, which resampling does not change: rows are sorted once, and each resample is a
  line of weights along that order, accumulated for a block of resamples at a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kev.errors import BadRows
from kev.metrics.calibration import bin_of, step_ends
from kev.metrics.pairing import Aligner, cluster
from kev.metrics.point import ADDITIVE, PAIRED_METRICS, RANKED, metric
from kev.metrics.resampling import Counts, Resamples
from kev.metrics.rows import Floats, Integers, Rows

LEVEL = 0.95
PRODUCT_ROWS = 64
UNTHREADED = 2**18
"""Multiplications in one matrix product: above it OpenBLAS starts threads, which on matrices as narrow as these
spend three times more processor time waiting for each other than one thread needs for the work."""

RANKED_BLOCK = 2**17
"""Numbers in a block of resamples, so that each of its arrays stays in the cache."""


@dataclass(frozen=True)
class Difference:
    """Candidate minus parent on all rows, and the bounds of its 95 % interval."""

    delta: float
    lower: float
    upper: float

    @property
    def ci95(self) -> list[float]:
        return [self.lower, self.upper]


def paired_bootstrap(
    candidate: Rows,
    parent: Rows,
    metrics: Sequence[str],
    *,
    resamples: Resamples | None = None,
    average: str = "micro",
) -> dict[str, Difference]:
    """The difference of each of `metrics` (any of PAIRED_METRICS) between two sides already served.

    `average` is "micro" (over questions) or "macro" (per task, then the mean of the tasks present). Raises BadRows
    where the sides cannot be paired, or for a metric that has no interval.
    """
    return Baseline(parent, resamples=resamples, average=average).compare(candidate, metrics)


class Baseline:
    """A parent's served rows of one panel, sorted, clustered, and measured once for all that is compared with them."""

    def __init__(self, parent: Rows, *, resamples: Resamples | None = None, average: str = "micro") -> None:
        self._aligner = Aligner(parent)
        self._clusters = cluster(self._aligner.rows)
        self._resamples = resamples or Resamples()
        self._subsets = _subsets(self._aligner.rows, average)
        # By the metrics asked for together: a product's last digit may depend on how many columns it has, and a
        # side compared with itself must differ by exactly nothing.
        self._measured: dict[tuple[str, ...], list[dict[str, Floats]]] = {}

    def compare(self, candidate: Rows, metrics: Sequence[str]) -> dict[str, Difference]:
        """Candidate minus parent, as `paired_bootstrap`."""
        for name in metrics:
            if name not in PAIRED_METRICS:
                raise BadRows(f"metric {name!r} has no interval; these have: {', '.join(PAIRED_METRICS)}")
        parent = self._aligner.rows
        candidate = self._aligner.align(candidate)
        ours, theirs = self._drawn(candidate, metrics), self._drawn_parent(metrics)
        out = {}
        for name in metrics:
            points = [_value(candidate.take(rows), name) - _value(parent.take(rows), name) for rows in self._subsets]
            differences = [one[name] - other[name] for one, other in zip(ours, theirs, strict=True)]
            # A task that a resample did not draw is NaN there, and no part of its mean.
            samples = differences[0] if len(differences) == 1 else np.nanmean(differences, axis=0)
            out[name] = Difference(
                points[0] if len(points) == 1 else float(np.mean(points)), *quantiles(samples, LEVEL)
            )
        return out

    def _drawn_parent(self, metrics: Sequence[str]) -> list[dict[str, Floats]]:
        key = tuple(metrics)
        if key not in self._measured:
            self._measured[key] = self._drawn(self._aligner.rows, metrics)
        return self._measured[key]

    def _drawn(self, rows: Rows, metrics: Sequence[str]) -> list[dict[str, Floats]]:
        """For each subset, every metric on every resample."""
        counts = self._resamples.counts(self._clusters)
        return [
            measure_resamples(rows.take(subset), self._clusters.of_row[subset], counts, metrics)
            for subset in self._subsets
        ]


def quantiles(samples: Floats, level: float) -> tuple[float, float]:
    """The bounds of the central `level` of `samples`, interpolated linearly."""
    lower, upper = np.quantile(samples, [(1 - level) / 2, 1 - (1 - level) / 2])
    return float(lower), float(upper)


def measure_resamples(rows: Rows, of_row: Integers, counts: Counts, metrics: Sequence[str]) -> dict[str, Floats]:
    """Each metric on every resample of `rows`, row r of which is in cluster `of_row[r]`.

    NaN where a resample holds none of the rows.
    """
    clusters = counts.shape[1]
    columns = [np.bincount(of_row, minlength=clusters).astype(np.float64)]
    places = {}
    for name in metrics:
        values = _summed(rows, name)
        places[name] = slice(len(columns), len(columns) + len(values))
        columns += [cluster_sums(of_row, each, clusters) for each in values]
    sums = products(counts, np.stack(columns, axis=1))
    size = np.where(sums[:, 0] > 0, sums[:, 0], np.nan)
    # The absolute value is what makes a calibration error of ten sums; a mean is one sum, with its sign.
    out = {
        name: (np.abs(sums[:, place]).sum(axis=1) if name == "ece" else sums[:, place.start]) / size
        for name, place in places.items()
        if name not in RANKED
    }
    ranked = [name for name in metrics if name in RANKED]
    return out | (measure_ranked(rows, of_row, counts, ranked) if ranked else {})


def _summed(rows: Rows, name: str) -> list[Floats]:
    """The values per row whose sums over a resample make a metric; none for a metric that needs an order."""
    if name in ADDITIVE:
        return [ADDITIVE[name](rows)]
    gap = rows.correct - rows.confidence
    if name == "confidence_bias":
        return [-gap]
    if name == "ece":
        bins = bin_of(rows.confidence)
        return [np.where(bins == number, gap, 0.0) for number in np.unique(bins)]
    return []


def _value(rows: Rows, name: str) -> float:
    value = metric(rows, name)
    assert value is not None  # every paired metric has a value on any row at all
    return value


def _subsets(rows: Rows, average: str) -> list[Integers]:
    match average:
        case "micro":
            return [np.arange(len(rows))]
        case "macro":
            return [np.flatnonzero(rows.tasks == task) for task in sorted(set(rows.tasks))]
    raise ValueError(f"average is micro or macro, not {average!r}")


def cluster_sums(of_row: Integers, values: Floats, clusters: int) -> Floats:
    """The sum of `values` over the rows of each cluster."""
    return np.bincount(of_row, weights=values, minlength=clusters).astype(np.float64)


def products(counts: Counts, columns: Floats) -> Floats:
    """(samples, columns): the sum of each column over each resample's clusters."""
    samples, clusters = counts.shape
    width = columns.shape[1]
    depth = max(1, UNTHREADED // (PRODUCT_ROWS * width))
    out = np.zeros((samples, width))
    for start in range(0, samples, PRODUCT_ROWS):
        part = slice(start, start + PRODUCT_ROWS)
        block = counts[part].astype(np.float64)
        for first in range(0, clusters, depth):
            out[part] += block[:, first : first + depth] @ columns[first : first + depth]
    return out


def measure_ranked(rows: Rows, of_row: Integers, counts: Counts, names: Sequence[str]) -> dict[str, Floats]:
    """AURC and coverages on every resample: accepted and wrong so far, accumulated down the confidence order."""
    order = np.argsort(-rows.confidence, kind="stable")
    ends = step_ends(rows.confidence[order])
    ties = len(ends) < len(order)
    wrong = (rows.correct[order] == 0).astype(counts.dtype)
    of_row = of_row[order]
    out = {name: np.empty(len(counts)) for name in names}
    block = max(1, RANKED_BLOCK // max(1, len(order)))
    for start in range(0, len(counts), block):
        part = slice(start, start + block)
        drawn = counts[part].take(of_row, axis=1)
        # 32 bits hold any number of rows that fits in memory, and accumulate six times as fast as floats.
        accepted = np.cumsum(drawn, axis=1, dtype=np.int32)
        errors = np.cumsum(drawn * wrong, axis=1, dtype=np.int32)
        newly = drawn
        if ties:
            accepted, errors = accepted[:, ends], errors[:, ends]
            newly = np.diff(accepted, axis=1, prepend=0)
        total = np.where(accepted[:, -1] > 0, accepted[:, -1], np.nan)
        for name in names:
            out[name][part] = _ranked(RANKED[name], newly, accepted, errors) / total
    return out


def _ranked(budget: float | None, newly: NDArray[Any], accepted: NDArray[Any], errors: NDArray[Any]) -> Floats:
    # A step none of whose rows were drawn repeats the step before it, and so changes neither figure.
    if budget is None:
        return np.asarray(np.einsum("ij,ij->i", newly.astype(np.float64), errors / np.maximum(accepted, 1)))
    within = errors <= budget * accepted
    last = within.shape[1] - 1 - np.argmax(within[:, ::-1], axis=1)
    resample = np.arange(len(last))
    return np.where(within[resample, last], accepted[resample, last], 0).astype(np.float64)
