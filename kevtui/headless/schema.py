"""The JSON schema of `--json`, derived from the dataclasses of the Snapshot and the same tables as the JSON itself.

`python -m kevtui.headless.schema > docs/snapshot.schema.json` renews the documented copy.
"""

import ast
import inspect
import json
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, get_args, get_origin, get_type_hints

from kevtui.headless.as_json import KEYED, PAIRS, VERSION
from kevtui.observe import snapshot as seam

_SCALARS: Mapping[type, dict[str, Any]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    Decimal: {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]+)?$"},
    datetime: {"type": "string", "format": "date-time"},
}


def build() -> dict[str, Any]:
    """The schema, as plain JSON values."""
    told = _field_docstrings()
    definitions: dict[str, Any] = {}
    root = _record(seam.Snapshot, told, definitions)
    root["properties"] = {"schema_version": {"const": VERSION}, **root["properties"]}
    root["required"] = ["schema_version", *root["required"]]
    return {
        **root,
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "kevtui snapshot",
        "description": "What `kevtui session ARG --json` prints. Money is in US dollars, as decimal strings; names "
        "that end in _s are seconds; moments are UTC; null means not known, never 0.",
        "$defs": dict(sorted(definitions.items())),
    }


def _record(record: type, told: Mapping[tuple[str, str], str], definitions: dict[str, Any]) -> dict[str, Any]:
    hints = get_type_hints(record)
    properties = {}
    for field in fields(record):
        schema = _field(record, field.name, hints[field.name], told, definitions)
        words = told.get((record.__name__, field.name))
        properties[field.name] = {**schema, "description": words} if words else schema
    if record is seam.Study:
        properties["calls"] = {"type": "object", "additionalProperties": _nullable({"type": "string"})}
    if record is seam.Alert:
        properties["id"] = {"type": "string", "description": "What `kevtui act acknowledge --alert` takes."}
    words = inspect.cleandoc(record.__doc__ or "").replace("\n", " ")
    # A dataclass without a docstring gets its own signature for one.
    described = {} if words.startswith(f"{record.__name__}(") else {"description": words}
    return {
        **described,
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _field(
    record: type, name: str, hint: Any, told: Mapping[tuple[str, str], str], definitions: dict[str, Any]
) -> dict[str, Any]:
    if (record, name) in KEYED:
        return {"type": "object", "additionalProperties": _type(get_args(hint)[0], told, definitions)}
    if record is seam.Reads and name == "cells":
        by_tag = {"type": "object", "additionalProperties": _type(seam.ReadCell, told, definitions)}
        return {"type": "object", "additionalProperties": by_tag}
    if name == "candidates":
        return {"type": "object", "additionalProperties": _nullable({"type": "string"})}
    if name == "readings":
        return {"type": "array", "items": _pair(name, get_args(get_args(hint)[0]), told, definitions)}
    if name in PAIRS:
        pair = next(option for option in get_args(hint) if option is not types.NoneType)
        return _nullable(_pair(name, get_args(pair), told, definitions))
    return _type(hint, told, definitions)


def _pair(
    name: str, halves: tuple[Any, ...], told: Mapping[tuple[str, str], str], definitions: dict[str, Any]
) -> dict[str, Any]:
    names = PAIRS[name]
    properties = {half: _type(hint, told, definitions) for half, hint in zip(names, halves, strict=True)}
    return {"type": "object", "properties": properties, "required": list(names), "additionalProperties": False}


def _type(hint: Any, told: Mapping[tuple[str, str], str], definitions: dict[str, Any]) -> dict[str, Any]:
    if isinstance(hint, types.UnionType):
        (only,) = [option for option in get_args(hint) if option is not types.NoneType]
        return _nullable(_type(only, told, definitions))
    if get_origin(hint) in (tuple, frozenset):
        return {"type": "array", "items": _type(get_args(hint)[0], told, definitions)}
    if hint in _SCALARS:
        return dict(_SCALARS[hint])
    if issubclass(hint, StrEnum):
        return {"enum": [str(member) for member in hint]}
    if not isinstance(hint, type) or not is_dataclass(hint):
        raise TypeError(f"{hint} has no place in a Snapshot")
    if hint.__name__ not in definitions:
        definitions[hint.__name__] = {}  # holds the place, should a record ever contain its own kind
        definitions[hint.__name__] = _record(hint, told, definitions)
    return {"$ref": f"#/$defs/{hint.__name__}"}


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def _field_docstrings() -> dict[tuple[str, str], str]:
    """(record, field) -> the string literal below the field, which Python keeps in the source only."""
    found = {}
    for record in ast.parse(inspect.getsource(seam)).body:
        if not isinstance(record, ast.ClassDef):
            continue
        for field, words in zip(record.body, record.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(words, ast.Expr):
                literal = words.value
                if isinstance(literal, ast.Constant) and isinstance(literal.value, str):
                    found[record.name, field.target.id] = inspect.cleandoc(literal.value).replace("\n", " ")
    return found


if __name__ == "__main__":
    from kev.console import run

    raise SystemExit(run(lambda: print(json.dumps(build(), indent=2)) or 0))
