"""A Snapshot as JSON; docs/snapshot.schema.json describes it and a test holds the two together.

The values mirror the dataclasses of kevtui.observe.snapshot field by field. Where the items of a list have a name of
their own, the list becomes an object keyed by it, so that `.readout.arms["9b-a"].passed` needs no search.
"""

import json
import math
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from kevtui.observe.snapshot import Alert, Arm, Readout, Reads, Snapshot, StageVerdict, Study

VERSION: Final = 1
"""Of the shape: raised when a key is renamed, removed or changes its meaning; new keys do not raise it."""

KEYED: Final = {
    (Snapshot, "studies"): "name",
    (Snapshot, "leases"): "trial",
    (Study, "trials"): "label",
    (Readout, "arms"): "name",
    (Arm, "criteria"): "name",
    (StageVerdict, "criteria"): "name",
}
"""(record, field) of a list that becomes an object, and which field of its items is the key."""

PAIRS: Final = {
    "readings": ("at", "spent"),
    "progress": ("done", "of"),
    "scoring": ("done", "of"),
    "unknowable": ("candidate", "parent"),
}
"""Fields that hold pairs, by name, and what their two halves are called."""


def render(snapshot: Snapshot) -> str:
    """One Snapshot as JSON text with a final newline.

    ASCII throughout: control characters and half surrogate pairs in file texts can then reach no terminal raw.
    """
    return dump(to_json(snapshot))


def dump(value: dict[str, Any]) -> str:
    """`value` as JSON text that no terminal acts on."""
    return json.dumps(value, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def to_json(snapshot: Snapshot) -> dict[str, Any]:
    """`snapshot` as plain JSON values."""
    return {"schema_version": VERSION, **_record(snapshot)}


def values_of(record: Any) -> dict[str, Any]:
    """Any picture, a dataclass of dataclasses, as plain JSON values field by field."""
    return _record(record)


def _record(record: Any) -> dict[str, Any]:
    result = {field.name: _field(record, field.name) for field in fields(record)}
    if isinstance(record, Alert):
        result["id"] = _value(record.id)
    if isinstance(record, Study):
        result["calls"] = {_value(trial.label): _value(trial.call) for trial in record.trials}
    return result


def _field(record: Any, name: str) -> Any:
    value = getattr(record, name)
    key = KEYED.get((type(record), name))
    if key is not None:
        return {_value(getattr(item, key)): _record(item) for item in value}
    if isinstance(record, Reads) and name == "cells":
        return {
            _value(owner): {_value(cell.tag): _record(cell) for cell in value if cell.owner == owner}
            for owner in _owners(record)
        }
    if name == "candidates":
        return {_value(size): _value(arm) for size, arm in value}
    if name in PAIRS and value is not None:
        names = PAIRS[name]
        return [_pair(names, pair) for pair in value] if name == "readings" else _pair(names, value)
    return _value(value)


def _owners(reads: Reads) -> list[str]:
    return list(dict.fromkeys([*reads.owners, *(cell.owner for cell in reads.cells)]))


def _pair(names: tuple[str, str], pair: tuple[Any, Any]) -> dict[str, Any]:
    return {name: _value(half) for name, half in zip(names, pair, strict=True)}


def _value(value: Any) -> Any:
    match value:
        case None | bool() | int():
            return value
        case str():
            # Half a surrogate pair is an escape that most parsers refuse.
            return str(value).encode(errors="backslashreplace").decode()
        case float():
            return value if math.isfinite(value) else None
        case Decimal():
            return _digits(value) if value.is_finite() else None
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case frozenset():
            return sorted(str(item) for item in value)
        case tuple():
            return [_value(item) for item in value]
    if is_dataclass(value):
        return _record(value)
    raise TypeError(f"a {type(value).__name__} has no place in a Snapshot")


def _digits(amount: Decimal) -> str:
    """Every digit and no exponent; "100", not "100.00", so that equal amounts are equal texts."""
    text = format(amount, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
