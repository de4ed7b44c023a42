"""The same answers at another temperature: raw rows, and rows served at a given T."""

from dataclasses import replace

import numpy as np

from kev.errors import BadRows
from kev.metrics.rows import EPSILON, Floats, Rows, scored


def raw(rows: Rows) -> Rows:
    """`rows` as the checkpoint gave them, at T = 1.

    A row that was served at another T is multiplied back, which needs its logits; a row at T = 1 is not touched.
    Raises BadRows for a row served at another T without logits.
    """
    warm = rows.temperature != 1.0
    if not warm.any():
        return rows
    lost = np.flatnonzero(warm & ~rows.has_logits)
    if len(lost):
        row = int(lost[0])
        raise BadRows(
            f"{rows.where(row)}: served at T = {rows.temperature[row]:g} without logits, so its raw answer is lost"
        )
    logits = np.where(warm[:, None], rows.logits * rows.temperature[:, None], rows.logits)
    p = np.where(warm[:, None], softmax(replace(rows, logits=logits)), rows.p)
    return replace(rows, logits=logits, p=p, temperature=np.ones(len(rows)))


def tempered(rows: Rows, temperature: float) -> Rows:
    """`rows` with their logits divided by `temperature`; a row without logits goes through its log-probabilities.

    At exactly 1 the recorded probabilities stay as they are, to the last bit.
    """
    _check_temperature(temperature)
    z = log_scale(rows)
    highest = np.fmax.reduce(z, axis=1, keepdims=True, initial=-np.inf)
    logits = (z - highest) / temperature
    warmer = replace(
        rows, logits=logits, has_logits=np.ones(len(rows), np.bool_), temperature=rows.temperature * temperature
    )
    return warmer if temperature == 1.0 else replace(warmer, p=softmax(warmer))


def served(rows: Rows, temperature: float) -> Rows:
    """The scored rows of a read as the model serves them at `temperature`: cleaned, made raw, tempered."""
    return tempered(raw(scored(rows)), temperature)


def log_scale(rows: Rows) -> Floats:
    """Logits, or the logarithms of floored probabilities for rows that have none; NaN in the padding."""
    if rows.has_logits.all():
        return rows.logits
    inside = np.arange(rows.p.shape[1]) < rows.options[:, None]
    floored = np.log(np.maximum(rows.p, EPSILON))
    return np.where(rows.has_logits[:, None], rows.logits, np.where(inside, floored, np.nan))


def softmax(rows: Rows) -> Floats:
    """The probabilities that the logits of `rows` stand for; padding is 0."""
    p = np.zeros_like(rows.p)
    for k, at in rows.blocks():
        z = rows.logits[at, :k]
        e = np.exp(z - z.max(axis=1, keepdims=True))
        p[at, :k] = e / e.sum(axis=1, keepdims=True)
    return p


def _check_temperature(temperature: float) -> None:
    if not 0 < temperature < np.inf:
        raise BadRows(f"temperature {temperature!r}: must be a number above 0")
