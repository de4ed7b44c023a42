"""What a fitted temperature does for rows it was not fitted on."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kev.errors import BadRows
from kev.metrics.bootstrap import LEVEL, measure_resamples, quantiles
from kev.metrics.pairing import cluster
from kev.metrics.point import metric
from kev.metrics.resampling import Resamples
from kev.metrics.rows import Integers, Rows, concatenate, scored
from kev.metrics.serving import raw, tempered
from kev.metrics.temperature import fit_temperature

FOLDS = 5
SAMPLES = 1000
REPORTED = ("n", "ece", "brier", "nll", "confident_error_rate", "coverage_at_5pct_error")


@dataclass(frozen=True)
class CrossValidation:
    """The rows raw, and each fold served at the temperature fitted on the others.

    Intervals are 95 % bounds over the same cluster resamples; `separated` says that the interval of the difference
    (out of fold minus raw) excludes 0.
    """

    raw: dict[str, float | None]
    out_of_fold: dict[str, float | None]
    raw_ece_ci95: tuple[float, float]
    out_of_fold_ece_ci95: tuple[float, float]
    ece_delta_ci95: tuple[float, float]
    separated: bool
    temperatures: list[float]
    folds: int
    seed: int
    samples: int
    groups: int
    unit: str = "(source, group)"

    def to_json(self) -> dict[str, Any]:
        """As it is stored beside a fitted temperature."""
        return {
            "raw": self.raw,
            "oof": self.out_of_fold,
            "raw_ece_ci95": list(self.raw_ece_ci95),
            "oof_ece_ci95": list(self.out_of_fold_ece_ci95),
            "ece_delta_ci95": list(self.ece_delta_ci95),
            "separated": self.separated,
            "temperatures": self.temperatures,
            "folds": self.folds,
            "seed": self.seed,
            "samples": self.samples,
            "groups": self.groups,
            "unit": self.unit,
        }


def cross_validate(rows: Rows, *, folds: int = FOLDS, seed: int = 0, samples: int = SAMPLES) -> CrossValidation:
    """Serve every fold of the scored `rows` at the temperature fitted on the other folds.

    Raises BadRows if there are fewer records than folds, or fewer than two folds.
    """
    rows = raw(scored(rows))
    units = sorted(set(zip(rows.sources, rows.groups, strict=True)))
    if not 2 <= folds <= len(units):
        raise BadRows(f"{len(units)} records cannot be dealt into {folds} folds; ask for 2 to {len(units)}")
    fold_of = deal(units, folds, seed)
    fold = np.array([fold_of[unit] for unit in zip(rows.sources, rows.groups, strict=True)], dtype=np.intp)
    temperatures = [fit_temperature(rows.take(fold != number)).temperature for number in range(folds)]
    served = _in_place([tempered(rows.take(fold == n), t) for n, t in enumerate(temperatures)], fold)
    clusters = cluster(rows)
    counts = Resamples(samples, seed).counts(clusters)
    before, after = (measure_resamples(side, clusters.of_row, counts, ["ece"])["ece"] for side in (rows, served))
    difference = quantiles(after - before, LEVEL)
    return CrossValidation(
        raw={name: metric(rows, name) for name in REPORTED},
        out_of_fold={name: metric(served, name) for name in REPORTED},
        raw_ece_ci95=quantiles(before, LEVEL),
        out_of_fold_ece_ci95=quantiles(after, LEVEL),
        ece_delta_ci95=difference,
        separated=difference[0] > 0 or difference[1] < 0,
        temperatures=temperatures,
        folds=folds,
        seed=seed,
        samples=samples,
        groups=len(units),
    )


def deal(units: list[tuple[str, str]], folds: int, seed: int) -> dict[tuple[str, str], int]:
    """The fold of every sorted (source, group): shuffled within a source, then dealt round, going on where the last
    source stopped, so that folds stay of one size.
    """
    rng = np.random.default_rng(seed)
    by_source: dict[str, list[tuple[str, str]]] = {}
    for unit in units:
        by_source.setdefault(unit[0], []).append(unit)
    out, offset = {}, 0
    for members in by_source.values():
        for place, member in enumerate(rng.permutation(len(members))):
            out[members[member]] = (offset + place) % folds
        offset += len(members)
    return out


def _in_place(parts: list[Rows], fold: Integers) -> Rows:
    """The rows of `parts`, one part a fold, back in the order that `fold` has."""
    order = np.argsort(np.argsort(fold, kind="stable"), kind="stable")
    return concatenate(parts).take(order)
