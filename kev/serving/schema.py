"""A request's JSON as a Request, or what is wrong with it in one line that names the place."""

import json
from typing import Any

from kev.data.record import MAX_OPTIONS, Asked
from kev.data.render import render
from kev.predictors.prediction import Request
from kev.text import shorten, visible

DEFAULT_MODEL = "kev-latest"
MAX_QUESTIONS = 1024


class Unprocessable(ValueError):
    """A request that cannot be meant."""


def parse_request(data: bytes, name: str) -> tuple[Request, str]:
    """The request in `data`, called `name` in messages, and the model it asks for. Raises Unprocessable.

    Fields that are not known are ignored; a key that is given twice is refused, since readers differ in which counts.
    """
    value = _json(data)
    if not isinstance(value, dict):
        raise Unprocessable("the body is an object with state and questions")
    if "state" not in value:
        raise Unprocessable("state: missing")
    model = value.get("model", DEFAULT_MODEL)
    if not isinstance(model, str) or not 0 < len(model) <= 200:
        raise Unprocessable("model: a name of 1 to 200 characters")
    questions = value.get("questions")
    if not isinstance(questions, dict) or not questions:
        raise Unprocessable("questions: an object with at least one question")
    if len(questions) > MAX_QUESTIONS:
        raise Unprocessable(f"questions: {len(questions):,}; a request has at most {MAX_QUESTIONS:,}")
    _render("state", value["state"])
    return Request(name, value["state"], {key: _question(key, each) for key, each in questions.items()}), model


def _question(name: str, value: Any) -> Asked:
    where = f"questions.{shorten(visible(name), 80)}"
    if not isinstance(value, dict):
        raise Unprocessable(f"{where}: an object with a type")
    criteria, kind = value.get("criteria"), value.get("type")
    match kind:
        case "noul":
            if criteria is not None and not isinstance(criteria, dict):
                raise Unprocessable(f"{where}.criteria: an object that describes true and false, or nothing")
        case "choice":
            if not isinstance(criteria, dict) or not 1 <= len(criteria) <= MAX_OPTIONS:
                raise Unprocessable(f"{where}.criteria: an object of 1 to {MAX_OPTIONS} options, name to description")
        case "score":
            if not isinstance(criteria, list) or not 1 <= len(criteria) <= MAX_OPTIONS:
                raise Unprocessable(f"{where}.criteria: a list of 1 to {MAX_OPTIONS} levels, lowest first")
        case _:
            raise Unprocessable(f"{where}.type: choice, noul or score, not {shorten(visible(repr(kind)), 40)}")
    _render(f"{where}.instructions", value.get("instructions"))
    _render(f"{where}.criteria", criteria)
    return Asked.model_construct(type=kind, instructions=value.get("instructions"), criteria=criteria)


def _render(where: str, value: Any) -> None:
    try:
        render(value)
    except ValueError as error:
        raise Unprocessable(f"{where}: {error}") from None


def _json(data: bytes) -> Any:
    try:
        return json.loads(data, object_pairs_hook=_object, parse_constant=_constant)
    except Unprocessable:
        raise
    except UnicodeDecodeError:
        raise Unprocessable("the body is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise Unprocessable(f"the body is not JSON: line {error.lineno}, column {error.colno}") from None
    except (RecursionError, ValueError):
        raise Unprocessable("the body is nested too deeply, or holds a number too long") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise Unprocessable(f"key {shorten(visible(twice), 80)!r} is given twice in one object")
    return found


def _constant(name: str) -> None:
    raise Unprocessable(f"{name} is not a number JSON has")
