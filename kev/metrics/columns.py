"""From the objects of a rows.json to columns, checked as a whole: a fault names the first row that has it."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NoReturn

import numpy as np

from kev.errors import BadRows
from kev.metrics.rows import Flags, Floats, Integers, Objects, Rows, describe_row
from kev.text import shorten, visible

SUM_TOLERANCE = 1e-5
"""How far from 1 the saved (already renormalised) probabilities of a question may add up."""

LARGEST_LOGIT = 1e100
HOTTEST = 1e6
"""Beyond these a difference of logits overflows, and one row turns a whole mean into infinity."""

TYPES = ("choice", "noul", "score")


def rows_from_json(records: Sequence[Mapping[str, Any]], origin: str = "rows") -> Rows:
    """The columns of `records`, the list in a rows.json; `origin` names the file in messages.

    Raises BadRows at the first row that cannot be believed.
    """
    if not isinstance(records, list | tuple):
        raise BadRows(f"{visible(origin)}: not a list of rows")
    for number, record in enumerate(records):
        if not isinstance(record, Mapping):
            raise BadRows(f"{visible(origin)}: row {number + 1} is not an object")
    table = _Table(records, origin)
    keys = table.keys()
    options = np.fromiter(map(len, keys), dtype=np.intp, count=len(records))
    labels = table.labels(options)
    p, _ = table.matrix("p", options, required=True, fill=0.0)
    logits, has_logits = table.matrix("logits", options, required=False, fill=np.nan)
    table.check_probabilities(p)
    return Rows(
        ids=table.text("id"),
        groups=table.text("group"),
        questions=table.text("question"),
        sources=table.text("source"),
        tasks=table.text("task"),
        types=table.types(),
        variants=table.text("variant"),
        keys=keys,
        labels=labels,
        options=options,
        p=p,
        logits=logits,
        has_logits=has_logits,
        temperature=table.temperatures(),
        control_ids=table.text("control_id", required=False),
        pair_ids=table.text("pair_id", required=False),
        siblings=table.text("sibling", required=False),
        parents=table.text("parent", required=False),
        state_tokens=table.tokens(),
        origins=np.full(len(records), origin, dtype=object),
    )


class _Table:
    """The columns of a list of JSON objects, each checked as a whole; a fault names the first row that has it."""

    def __init__(self, records: Sequence[Mapping[str, Any]], origin: str) -> None:
        self.records = records
        self.origin = origin
        self.text("id")  # first, so that every later message can name the record
        self.text("question")

    def fail(self, row: int, reason: str) -> NoReturn:
        record = self.records[row]
        raise BadRows(f"{describe_row(self.origin, record.get('id'), record.get('question'), row)}: {reason}")

    def text(self, name: str, *, required: bool = True) -> Objects:
        values = [record.get(name) for record in self.records]
        allowed = {str} if required else {str, type(None)}
        if not {type(value) for value in values} <= allowed:
            row = next(row for row, value in enumerate(values) if type(value) not in allowed)
            self.fail(row, _not_text(name, values[row]))
        same: dict[Any, Any] = {}  # one object for each spelling: less memory, and comparisons that end at identity
        return _objects([same.setdefault(value, value) for value in values])

    def types(self) -> Objects:
        values = self.text("type")
        for kind in dict.fromkeys(values):
            if kind not in TYPES:
                self.fail(int(np.flatnonzero(values == kind)[0]), f"type {kind!r} is none of {', '.join(TYPES)}")
        return values

    def keys(self) -> Objects:
        interned: dict[tuple[str, ...], tuple[str, ...]] = {}
        out = []
        for row, record in enumerate(self.records):
            value = record.get("keys")
            if not isinstance(value, list | tuple) or not value:
                self.fail(row, "keys is not a list of option keys")
            key = tuple(value)
            try:
                known = interned.get(key)
            except TypeError:
                self.fail(row, "keys holds something other than text")
            if known is None or not all(type(part) is str for part in key):
                if not all(isinstance(part, str) for part in key):
                    self.fail(row, "keys holds something other than text")
                if len(set(key)) < len(key):
                    self.fail(row, "keys names an option twice")
                known = interned[key] = key
            out.append(known)
        return _objects(out)

    def labels(self, options: Integers) -> Integers:
        values = [record.get("label") for record in self.records]
        for row, value in enumerate(values):
            if type(value) is not int:
                self.fail(row, f"label {value!r} is not the position of an option")
            if not 0 <= value < options[row]:
                self.fail(row, f"label {value} is outside the {options[row]} options")
        return np.array(values, dtype=np.intp)

    def matrix(self, name: str, options: Integers, *, required: bool, fill: float) -> tuple[Floats, Flags]:
        """The lists under `name` as a padded matrix, and which rows have one."""
        values = [record.get(name) for record in self.records]
        for row, value in enumerate(values):
            if value is None and not required:
                continue
            if not isinstance(value, list | tuple) or len(value) != options[row]:
                self.fail(row, f"{name} is not a list of {options[row]} numbers, one for each option")
        present = np.fromiter((value is not None for value in values), dtype=np.bool_, count=len(values))
        flat = list(chain.from_iterable(value for value in values if value is not None))
        if not {type(number) for number in flat} <= {float, int}:
            self._fail_at_number(name, values)
        try:
            numbers = np.array(flat, dtype=np.float64)
        except OverflowError:
            self._fail_at_number(name, values)
        if not np.isfinite(numbers).all():
            self._fail_at_number(name, values)
        if (np.abs(numbers) > LARGEST_LOGIT).any():
            self._fail_at_number(name, values)
        matrix = np.full((len(values), int(options.max(initial=1))), fill)
        matrix[np.arange(matrix.shape[1]) < np.where(present, options, 0)[:, None]] = numbers
        return matrix, present

    def _fail_at_number(self, name: str, values: Sequence[Any]) -> NoReturn:
        for row, value in enumerate(values):
            for number in value or ():
                if type(number) not in (float, int) or not np.isfinite(_as_float(number)):
                    self.fail(row, f"{name} holds {shorten(repr(number), 40)}, which is not a finite number")
                if abs(number) > LARGEST_LOGIT:
                    self.fail(row, f"{name} holds {number:g}, which is too large to be an answer")
        raise AssertionError("unreachable: some number was refused")

    def check_probabilities(self, p: Floats) -> None:
        outside = ((p < 0) | (p > 1)).any(axis=1)
        if outside.any():
            self.fail(int(outside.argmax()), "p holds a value outside 0 to 1")
        total = p.sum(axis=1)
        off = np.abs(total - 1) > SUM_TOLERANCE
        if off.any():
            row = int(off.argmax())
            self.fail(row, f"p adds up to {total[row]:.6g}, not to 1")

    def temperatures(self) -> Floats:
        values = [record.get("inference_temperature") for record in self.records]
        out = np.ones(len(values))
        for row, value in enumerate(values):
            if value is None or value == 1:
                continue
            if type(value) not in (float, int) or not 1 / HOTTEST < _as_float(value) < HOTTEST:
                self.fail(row, f"inference_temperature {shorten(repr(value), 40)} is no temperature")
            out[row] = value
        return out

    def tokens(self) -> Integers:
        values = [record.get("state_tokens") for record in self.records]
        out = np.full(len(values), -1, dtype=np.intp)
        for row, value in enumerate(values):
            if value is None:
                continue
            if type(value) is not int or not 0 <= value < 2**62:
                self.fail(row, f"state_tokens {value!r} is not a count")
            out[row] = value
        return out


def _objects(values: Sequence[Any]) -> Objects:
    # np.array would make a matrix of tuples that happen to be of one length.
    return np.fromiter(values, dtype=object, count=len(values))


def _as_float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return np.inf


def _not_text(name: str, value: Any) -> str:
    if value is None:
        return f"has no {name}"
    if isinstance(value, int | float):
        # Above 2**53 a number has already been rounded by some writer or reader: two ids may have become one.
        return f"{name} is the number {value!r}; it must be text (write it in quotes)"
    return f"{name} is not text"
