"""Scored questions as columns: one array per field of rows.json, so that a panel of 10,000 is a few array operations.

A row is one question of one record: what was asked, the right answer, and the distribution a checkpoint gave over
the options. Rows are checked once, on the way in (`kev.metrics.columns`); the rest of the package relies on them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kev.text import shorten, visible

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]
Flags = NDArray[np.bool_]
Objects = NDArray[np.object_]

EPSILON = 1e-9
"""The floor of a probability before its logarithm, for rows that carry no logits."""

CLEAN = "clean"
UNKNOWABLE = "unknowable"


@dataclass(frozen=True, eq=False)
class Rows:
    """n questions as columns. `p` and `logits` are (n, widest) and padded: with 0 and with NaN.

    `logits` are as served, that is raw logits over `temperature`; a row without any has NaN throughout.
    """

    ids: Objects
    groups: Objects
    questions: Objects
    sources: Objects
    tasks: Objects
    types: Objects
    variants: Objects
    keys: Objects  # of tuples of option keys, in scoring order
    labels: Integers
    options: Integers  # how many options each question has
    p: Floats
    logits: Floats
    has_logits: Flags
    temperature: Floats
    control_ids: Objects  # None where there is none, as in the three below
    pair_ids: Objects
    siblings: Objects
    parents: Objects
    state_tokens: Integers  # -1 where unknown
    origins: Objects  # the file each row came from, for messages

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, index: Integers | Flags) -> "Rows":
        """The rows at `index` (positions, or a mask), in that order."""
        return Rows(**{field.name: getattr(self, field.name)[index] for field in fields(self)})

    def where(self, row: int) -> str:
        """How a message names `row`: file, record and question."""
        return describe_row(str(self.origins[row]), self.ids[row], self.questions[row])

    def blocks(self) -> Iterator[tuple[int, Integers]]:
        """(k, positions of the questions with k options).

        Sums over the options run on exactly k numbers, never on padding: adding zeros changes the order of
        summation, and with it the last digit.
        """
        return iter(self._blocks)

    @cached_property
    def _blocks(self) -> list[tuple[int, Integers]]:
        return [(int(k), np.flatnonzero(self.options == k)) for k in np.unique(self.options)]

    @cached_property
    def confidence(self) -> Floats:
        """The largest probability of each question."""
        return np.asarray(self.p.max(axis=1, initial=0.0))

    @cached_property
    def predicted(self) -> Integers:
        """The option with the largest probability, the lowest index on ties."""
        return self.p.argmax(axis=1) if len(self) else np.zeros(0, np.intp)

    @cached_property
    def correct(self) -> Floats:
        """1.0 where the prediction is the label."""
        return np.asarray(self.predicted == self.labels, dtype=np.float64)

    @cached_property
    def brier(self) -> Floats:
        """The sum over options of squared differences from the one-hot label: 0 to 2."""
        out = np.zeros(len(self))
        for k, at in self._blocks:
            difference = self.p[at, :k]
            difference[np.arange(len(at)), self.labels[at]] -= 1.0
            out[at] = (difference * difference).sum(axis=1)
        return out

    @cached_property
    def nll(self) -> Floats:
        """Minus the log-probability of the label: exact from logits, floored at `EPSILON` without."""
        out = np.zeros(len(self))
        for k, at in self._blocks:
            z = self.logits[at, :k]
            z = z - z.max(axis=1, keepdims=True)
            each = np.arange(len(at))
            exact = np.log(np.exp(z).sum(axis=1)) - z[each, self.labels[at]]
            floored = -np.log(np.maximum(self.p[at, self.labels[at]], EPSILON))
            out[at] = np.where(self.has_logits[at], exact, floored)
        return out


def concatenate(parts: Sequence[Rows]) -> Rows:
    """The rows of `parts`, one after another. Raises ValueError when there is no part."""
    width = max(part.p.shape[1] for part in parts)
    columns: dict[str, Any] = {}
    for field in fields(Rows):
        arrays = [getattr(part, field.name) for part in parts]
        if field.name in ("p", "logits"):
            fill = 0.0 if field.name == "p" else np.nan
            arrays = [_widen(array, width, fill) for array in arrays]
        columns[field.name] = np.concatenate(arrays)
    return Rows(**columns)


def scored(rows: Rows) -> Rows:
    """The rows that count: clean, and not from the `unknowable` source."""
    counts = (rows.variants == CLEAN) & (rows.sources != UNKNOWABLE)
    return rows if counts.all() else rows.take(counts)


def _widen(array: Floats, width: int, fill: float) -> Floats:
    return np.pad(array, ((0, 0), (0, width - array.shape[1])), constant_values=fill)


def describe_row(origin: str, identifier: Any, question: Any, row: int | None = None) -> str:
    """How a message names a row: its file, record and question; its number from 1 where it has no believable id."""
    parts = [visible(origin)]
    parts.append(f"record {_quoted(identifier)}" if isinstance(identifier, str) else f"row {(row or 0) + 1}")
    if isinstance(question, str):
        parts.append(f"question {_quoted(question)}")
    return ", ".join(parts)


def _quoted(text: str) -> str:
    return f"'{shorten(visible(text), 120)}'"
