"""The shape of a spec: its keys, their types, and names that collide."""

import copy
import types
import unicodedata
from collections.abc import Iterator
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kev.document import Document, JsonPath
from kev.records.spec import Note, RoundSpec
from kev.rounds.problems import Problems
from kev.spelling import nearest

EMPTY: dict[str, Any] = {
    "round": 0,
    "registered": "",
    "reads": {},
    "parents": {},
    "arms": {},
    "rule": {"panels": {}, "criteria": {}},
}
"""Stands in for a required part that cannot be read, so that the rest is still checked."""

WORDS = {
    "missing": "is missing",
    "string_type": "should be text",
    "int_type": "should be a whole number",
    "bool_type": "should be true or false",
    "dict_type": "should be an object",
    "model_type": "should be an object",
    "list_type": "should be a list",
    "money": "should be an amount in US dollars, as a number",
}


def check_structure(document: Document, problems: Problems) -> tuple[RoundSpec, frozenset[JsonPath]]:
    """Note what is wrong with a spec's shape, and return the parts that can be read and the places of the others."""
    _check_repeated(document, problems)
    if not isinstance(document.value, dict):
        problems.add("not-an-object", (), "a spec is one JSON object")
        return RoundSpec.model_validate(EMPTY), frozenset()
    _check_case(document.value, (), problems)
    _check_keys(document.value, RoundSpec, (), problems)
    return _read_parts(document.value, problems)


def _check_repeated(document: Document, problems: Problems) -> None:
    for repeat in document.repeated:
        problems.add("repeated-key", repeat.where, f"{repeat}; readers differ in which one counts")


def _check_case(value: Any, where: JsonPath, problems: Problems) -> None:
    if isinstance(value, list):
        for index, item in enumerate(value):
            _check_case(item, (*where, index), problems)
    if not isinstance(value, dict):
        return
    seen: dict[str, str] = {}
    for key, item in value.items():
        twin = seen.setdefault(unicodedata.normalize("NFC", key).casefold(), key)
        if twin != key:
            first, second = (problems.document.line((*where, name)) for name in (twin, key))
            problems.add(
                "case-twins",
                (*where, key),
                f"{twin!r} on line {first} and {key!r} on line {second} differ only in how letters are written; "
                "some file systems keep them apart and some do not",
            )
        _check_case(item, (*where, key), problems)


def _check_keys(value: Any, annotation: Any, where: JsonPath, problems: Problems) -> None:
    """Walk `value` along the types of the records, noting every key that the record of its place lacks."""
    for kind, argument in _shapes(annotation):
        if kind == "record" and isinstance(value, dict):
            known = argument.model_fields
            for key, item in value.items():
                if key in known:
                    _check_keys(item, known[key].annotation, (*where, key), problems)
                else:
                    note = problems.warn if issubclass(argument, Note) else problems.add
                    note("unknown-key", (*where, key), f"is no key of this place{nearest(key, known)}")
        elif kind == "map" and isinstance(value, dict):
            for key, item in value.items():
                _check_keys(item, argument, (*where, key), problems)
        elif kind == "list" and isinstance(value, list):
            for index, item in enumerate(value):
                _check_keys(item, argument, (*where, index), problems)


def _shapes(annotation: Any) -> Iterator[tuple[str, Any]]:
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _shapes(get_args(annotation)[0])
    elif origin in (Union, types.UnionType):
        for argument in get_args(annotation):
            yield from _shapes(argument)
    elif origin is dict:
        yield "map", get_args(annotation)[1]
    elif origin is list:
        yield "list", get_args(annotation)[0]
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield "record", annotation


def _read_parts(value: dict[str, Any], problems: Problems) -> tuple[RoundSpec, frozenset[JsonPath]]:
    rest = copy.deepcopy(value)
    dropped: set[JsonPath] = set()
    while True:
        try:
            return RoundSpec.model_validate(rest), frozenset(dropped)
        except ValidationError as error:
            wrong = error.errors(include_url=False, include_context=False)
        for detail in wrong:
            where = _place(detail["loc"], value)
            if detail["type"] == "card" and where[:1] == ("studies",) and where[-1] == "gpu":
                continue  # the studies' own check names the cards that have a price
            if not any(where[: len(place)] == place for place in dropped):
                problems.add("wrong-type" if detail["type"] != "missing" else "missing-key", where, _words(detail))
        before = len(dropped)
        dropped |= {place for detail in wrong for place in _drop(rest, _place(detail["loc"], value))}
        if len(dropped) == before:
            rest = copy.deepcopy(EMPTY)


def _place(location: tuple[str | int, ...], value: Any) -> JsonPath:
    """The place that an error is about: its location without the names that only the record's types have."""
    where: list[str | int] = []
    for number, part in enumerate(location):
        is_last = number == len(location) - 1
        inside = isinstance(value, dict) and (part in value or (is_last and isinstance(part, str)))
        if inside or (isinstance(value, list) and isinstance(part, int) and part < len(value)):
            where.append(part)
            value = value.get(part) if isinstance(value, dict) else value[int(part)]
    return tuple(where)


def _drop(rest: dict[str, Any], where: JsonPath) -> Iterator[JsonPath]:
    """Take out the part around `where` that can be spared, yielding its place.

    That is the innermost named thing (a study, an arm, a panel), or an optional key of the rule, or all under the
    top-level key: half a panel or half a pool would only lead to findings that are not true.
    """
    place = where[:1]
    annotation: Any = RoundSpec
    for depth, part in enumerate(where, start=1):
        step = _step(annotation, part)
        if step is None:
            break
        annotation, spared = step
        if spared == "named" or (spared == "optional" and where[0] == "rule" and depth == 2):
            place = where[:depth]
    holder: Any = rest
    for part in place[:-1]:
        holder = holder.get(part) if isinstance(holder, dict) else None
    if not place or not isinstance(holder, dict):
        return
    holder.pop(place[-1], None)
    if len(place) == 1 and place[0] in EMPTY:
        rest[str(place[0])] = copy.deepcopy(EMPTY[str(place[0])])
    yield place


def _step(annotation: Any, part: str | int) -> tuple[Any, str] | None:
    """The type at a key of `annotation`, and whether that key is "named", "optional" or "required"."""
    for kind, argument in _shapes(annotation):
        if kind == "record" and part in argument.model_fields:
            field = argument.model_fields[str(part)]
            return field.annotation, "required" if field.is_required() else "optional"
        if kind == "map":
            is_record = any(inner == "record" for inner, _ in _shapes(argument))
            return argument, "named" if is_record else "required"
    return None


def _words(detail: ErrorDetails) -> str:
    words = WORDS.get(detail["type"], detail["msg"])
    return words if detail["type"] == "missing" else f"{words}, not {_shown(detail['input'])}"


def _shown(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {str(value)[:40]}"
        case str():
            return f"the text {value[:40]!r}"
        case list():
            return "a list"
        case _:
            return "an object"
