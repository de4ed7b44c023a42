"""`reports/summary.jsonl`: the figures of each round, a line each, and no prose."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

from pydantic import ConfigDict, ValidationError

from kev import files
from kev.autorl.journal.failures import FailureType
from kev.records.base import StrictRecord, reason_of

KEYS = (
    "iteration", "timestamp", "duration_s", "status", "exit_code", "score", "improvement", "train_type", "failure_type",
)  # fmt: skip
MOST_LINES = 2000


class RoundLine(StrictRecord):
    """One line. What a round does not have is None."""

    model_config = ConfigDict(extra="ignore")

    iteration: int
    timestamp: str
    """Local, `YYYY-MM-DD HH:MM`."""
    duration_s: int
    """Seconds since the run began."""
    status: Literal["success", "failure"]
    exit_code: int | None
    score: float | None
    improvement: float | None
    train_type: str
    failure_type: FailureType


@dataclass(frozen=True, slots=True)
class ReadLine:
    """A line of the file: its number, its round where it can be read, why not, and keys it should not have or lacks."""

    number: int
    round: RoundLine | None = None
    damage: str = ""
    keys: str = ""
    extra: dict[str, Any] = field(default_factory=dict)
    """What it holds beside them."""


def read_lines(data: bytes) -> list[ReadLine]:
    """Every line that is not blank, up to MOST_LINES of them."""
    return [_read(line) for line in islice(files.parse_json_lines(data), MOST_LINES)]


def told_of(data: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    """The number and the object of every line that says which round it is about, whatever else is wrong with it.

    NaN and infinities are taken, since Python's own writer leaves them.
    """
    lines = data.removeprefix(files.UTF8_BOM).split(b"\n")[:MOST_LINES]
    for number, line in enumerate(lines, start=1):
        try:
            value = json.loads(line.decode(errors="replace"))
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and type(value.get("iteration")) is int:
            yield number, value


def _read(line: files.Line) -> ReadLine:
    if line.damage is not None or not isinstance(line.value, dict):
        return ReadLine(line.number, damage=line.damage or "not an object")
    return _of(line.number, line.value)


def _of(number: int, value: dict[str, Any]) -> ReadLine:
    extra = {key: each for key, each in value.items() if key not in KEYS}
    lacking = [f"-{key}" for key in KEYS if key not in value]
    keys = " ".join([*(f"+{key}" for key in extra), *lacking])
    try:
        return ReadLine(number, RoundLine.model_validate(value), keys=keys, extra=extra)
    except ValidationError as error:
        return ReadLine(number, damage=reason_of(error), keys=keys, extra=extra)
