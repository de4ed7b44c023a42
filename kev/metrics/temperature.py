"""Fitting the temperature that answers are served at: the grid point of least loss.

The grid is 0.25 to 4, evenly spaced in the logarithm; there is no search between its points, so an edge of it is a
possible answer, and a limit of the grid rather than a fit. Such an answer says so (`TemperatureFit.note`).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kev.errors import BadRows
from kev.metrics.bootstrap import cluster_sums, products, quantiles
from kev.metrics.pairing import cluster
from kev.metrics.resampling import Resamples
from kev.metrics.rows import EPSILON, Flags, Floats, Rows, concatenate, scored
from kev.metrics.serving import log_scale, raw

COLDEST, HOTTEST = 0.25, 4.0
POINTS = 121
"""Points of the grid of every served or shipped temperature; the in-trial screening fit uses 81."""

HELD_AT_ONCE = 2**22
SAME = 1e-13


def grid(points: int = POINTS) -> Floats:
    """The temperatures tried, ascending; the middle one is exactly 1."""
    return np.exp(np.linspace(np.log(COLDEST), np.log(HOTTEST), points))


@dataclass(frozen=True)
class TemperatureFit:
    """The temperature of least loss, its place on the grid, and what makes it less than a fit, if anything does."""

    temperature: float
    index: int
    questions: int
    note: str | None = None


@dataclass(frozen=True)
class TemperatureInterval:
    """Bounds of the fitted temperature over cluster resamples of the rows it was fitted on."""

    level: float
    samples: int
    seed: int
    lower: float
    upper: float
    questions: int


@dataclass(frozen=True)
class Pool:
    """Held-out rows of several reads, on which one temperature is fitted; `excluded` counts scored rows left out."""

    rows: Rows
    excluded: int


def fit_temperature(rows: Rows, *, points: int = POINTS, average: str = "micro") -> TemperatureFit:
    """The grid temperature at which the scored of `rows` have the least mean loss, the lowest on ties.

    `average` weighs questions equally ("micro") or tasks equally ("macro"). Raises BadRows for rows served at
    another T than 1, and for no scored rows.
    """
    rows = _fittable(rows)
    losses = _mean_losses(negative_log_likelihoods(rows, points), _weights(rows, average))
    index = int(np.argmin(losses))
    return TemperatureFit(float(grid(points)[index]), index, len(rows), _note(losses, index))


def temperature_interval(rows: Rows, *, level: float = 0.9, resamples: Resamples | None = None) -> TemperatureInterval:
    """How far the fitted temperature moves when records are resampled. `rows` as for `fit_temperature`."""
    resamples = resamples or Resamples()
    rows = _fittable(rows)
    clusters = cluster(rows)
    losses = negative_log_likelihoods(rows, POINTS)
    sums = np.stack([cluster_sums(clusters.of_row, row, clusters.count) for row in losses], axis=1)
    drawn = products(resamples.counts(clusters), sums)
    # A matrix product may round equal columns differently; ties still go to the lowest temperature.
    least = drawn.min(axis=1, keepdims=True)
    chosen = grid()[np.argmax(drawn <= least + SAME * np.abs(least), axis=1)]
    lower, upper = quantiles(chosen, level)
    return TemperatureInterval(level, resamples.samples, resamples.seed, lower, upper, len(rows))


def pool(
    reads: Sequence[tuple[str, Rows]], *, sources: Mapping[str, Collection[str]], exclude: Collection[str]
) -> Pool:
    """The raw rows of named `reads`, in order: of a read in `sources` only those sources, and no record in `exclude`.

    Raises BadRows if nothing scored is left.
    """
    kept, before, after = [], 0, 0
    for name, rows in reads:
        if name in sources:
            wanted = set(sources[name])
            rows = rows.take(_mask(source in wanted for source in rows.sources))
        before += len(scored(rows))
        rows = rows.take(_mask(identifier not in exclude for identifier in rows.ids))
        after += len(scored(rows))
        kept.append(rows)
    if not after:
        raise BadRows(f"no scored rows are left in the temperature pool of {', '.join(name for name, _ in reads)}")
    return Pool(raw(concatenate(kept)), before - after)


def negative_log_likelihoods(rows: Rows, points: int) -> Floats:
    """(points, rows): the loss of every row at every temperature of the grid."""
    temperatures = grid(points)
    z = log_scale(rows)
    out = np.empty((points, len(rows)))
    for k, at in rows.blocks():
        for part in np.array_split(at, -(-len(at) * k * points // HELD_AT_ONCE)):
            block = z[part, :k]
            shifted = (block - block.max(axis=1, keepdims=True))[None] / temperatures[:, None, None]
            e = np.exp(shifted)
            total = e.sum(axis=2)
            label = rows.labels[part]
            each = np.arange(len(part))
            exact = np.log(total) - shifted[:, each, label]
            p = np.where((temperatures == 1.0)[:, None], rows.p[part, label], e[:, each, label] / total)
            out[:, part] = np.where(rows.has_logits[part], exact, -np.log(np.maximum(p, EPSILON)))
    return out


def _mask(values: Iterable[bool]) -> Flags:
    return np.array(list(values), dtype=np.bool_)


def _fittable(rows: Rows) -> Rows:
    rows = scored(rows)
    if not len(rows):
        raise BadRows("no scored rows to fit a temperature on")
    warm = np.flatnonzero(rows.temperature != 1.0)
    if len(warm):
        row = int(warm[0])
        raise BadRows(f"{rows.where(row)}: served at T = {rows.temperature[row]:g}; a fit needs raw rows")
    return rows


def _weights(rows: Rows, average: str) -> Floats:
    match average:
        case "micro":
            return np.ones(len(rows))
        case "macro":
            _, task, sizes = np.unique(rows.tasks.astype(str), return_inverse=True, return_counts=True)
            return np.asarray(1.0 / sizes[task])
    raise ValueError(f"average is micro or macro, not {average!r}")


def _mean_losses(losses: Floats, weights: Floats) -> Floats:
    return np.asarray((losses * weights).sum(axis=1) / weights.sum())


def _note(losses: Floats, index: int) -> str | None:
    if losses.max() - losses.min() <= SAME * abs(losses.max()):
        return "the rows hold no information about T: the loss is the same everywhere"
    if index in (0, len(losses) - 1):
        return "at the edge of the grid: a limit, not a fit"
    return None
