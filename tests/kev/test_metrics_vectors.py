"""The registered figures, to the last digits, for rows that a formula gives."""

import math

import numpy as np
import pytest

from kev.metrics import (
    Resamples,
    Rows,
    cluster,
    fit_temperature,
    metric,
    paired_bootstrap,
    rows_from_json,
    served,
    temperature_interval,
)
from kev.metrics.resampling import Draws


def sides() -> tuple[Rows, Rows]:
    """The candidate and the parent of the registered vectors: 24 questions, two to a record group."""
    out = []
    for weight, wave in ((1.1, lambda i, k: math.sin(1.7 * i + k)), (0.7, lambda i, k: math.cos(1.3 * i + 2 * k))):
        rows = []
        for i in range(24):
            z = np.array([3 * (weight * (k == i % 3) + wave(i, k)) for k in range(3)])
            e = np.exp(z - z.max())
            source = "alpha" if i < 14 else "beta"
            rows.append(
                {"id": f"rec-{i:02d}", "group": f"g{i // 2:02d}", "question": "q", "source": source, "task": source,
                 "type": "choice", "variant": "clean", "keys": ["a", "b", "c"], "label": i % 3,
                 "p": (e / e.sum()).tolist(), "logits": z.tolist(), "inference_temperature": 1.0}
            )  # fmt: skip
        out.append(rows_from_json(rows, "vectors"))
    return out[0], out[1]


CANDIDATE, PARENT = sides()


def exactly(value: float) -> object:
    return pytest.approx(value, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(
    ("side", "name", "value"),
    [
        (CANDIDATE, "nll", 0.5240799818605854),
        (CANDIDATE, "acc", 0.7916666666666666),
        (CANDIDATE, "ece", 0.15100971712983474),
        (CANDIDATE, "brier", 0.3267539398449093),
        (CANDIDATE, "coverage_at_5pct_error", 0.4583333333333333),
        (CANDIDATE, "aurc", 0.09958833478338965),
        (PARENT, "nll", 1.383364143295325),
        (PARENT, "acc", 0.4583333333333333),
        (PARENT, "ece", 0.38941994667653274),
        (PARENT, "brier", 0.8169283466382021),
        (PARENT, "confident_error_rate", 0.125),
    ],
)
def test_raw_rows_have_the_registered_values(side: Rows, name: str, value: float) -> None:
    assert metric(side, name) == exactly(value)


def test_the_fits_fall_on_the_registered_grid_points() -> None:
    candidate, parent = fit_temperature(CANDIDATE), fit_temperature(PARENT)
    assert (candidate.index, parent.index) == (63, 113)
    assert candidate.temperature == exactly(1.0717734625362931)
    assert parent.temperature == exactly(3.402668643803422)
    assert candidate.note is None


def test_the_interval_of_the_fit_is_the_registered_one() -> None:
    interval = temperature_interval(CANDIDATE, level=0.9, resamples=Resamples(2000, 0))
    assert [interval.lower, interval.upper] == [exactly(0.6015125180410583), exactly(1.4142135623730947)]


def both_served() -> tuple[Rows, Rows]:
    return (
        served(CANDIDATE, fit_temperature(CANDIDATE).temperature),
        served(PARENT, fit_temperature(PARENT).temperature),
    )


def test_served_rows_have_the_registered_values() -> None:
    candidate, parent = both_served()
    assert metric(candidate, "nll") == exactly(0.5233133512011946)
    assert metric(candidate, "ece") == exactly(0.2149128721865247)
    assert metric(candidate, "brier") == exactly(0.3243838166837607)
    assert metric(candidate, "aurc") == exactly(0.09551515102270587)
    assert metric(parent, "nll") == exactly(0.9068321827411857)
    assert metric(parent, "ece") == exactly(0.3513137800250386)
    assert metric(parent, "brier") == exactly(0.5534653364239127)


@pytest.mark.parametrize(
    ("name", "delta", "lower", "upper"),
    [
        ("acc", 0.3333333333333333, 0.20833333333333331, 0.4583333333333333),
        ("brier", -0.229081519740152, -0.3535594916071425, -0.09648391541177372),
        ("nll", -0.3835188315399911, -0.5605798849373239, -0.20235856519335133),
        ("ece", -0.1364009078385139, -0.23911699264192313, 0.006606809755290813),
        ("aurc", -0.15911383476226493, -0.2956299159543571, -0.07260923939235404),
        ("coverage_at_5pct_error", 0.125, 0.0, 0.5),
    ],
)
def test_the_paired_differences_are_the_registered_ones(name: str, delta: float, lower: float, upper: float) -> None:
    difference = paired_bootstrap(*both_served(), [name])[name]
    assert difference.delta == exactly(delta)
    assert difference.ci95 == [exactly(lower), exactly(upper)]


def test_a_macro_average_gives_every_task_the_same_weight() -> None:
    difference = paired_bootstrap(*both_served(), ["acc"], resamples=Resamples(1000), average="macro")["acc"]
    assert difference.delta == exactly(0.3285714285714285)
    assert difference.ci95 == [exactly(0.19285714285714284), exactly(0.4642857142857143)]


def test_the_first_resamples_hold_the_registered_rows() -> None:
    clusters = cluster(CANDIDATE)
    drawn = Draws(clusters.per_source, seed=0).take(2)
    rows = [[row for number in sample for row in np.flatnonzero(clusters.of_row == number)] for sample in drawn]
    assert rows == [
        [10, 11, 8, 9, 6, 7, 2, 3, 4, 5, 0, 1, 0, 1, 14, 15, 14, 15, 22, 23, 20, 21, 22, 23],
        [6, 7, 8, 9, 12, 13, 10, 11, 8, 9, 6, 7, 6, 7, 22, 23, 16, 17, 22, 23, 20, 21, 14, 15],
    ]
