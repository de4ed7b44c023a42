"""Finished trials as they lie in runs/: each result read for itself, so that one bad file hides no other."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kev import files
from kev.errors import DamagedFile, KevError, NotFound

MAX_DEPTH = 64
"""Deeper than any result; a bound, so that a hostile one ends in words and not in a stack overflow."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number from a result, or why there is none: `missing`, `null`, `NaN`, or what stands there instead."""

    value: float | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial with a result. What the result holds is not checked: ask for figures through `figure`."""

    study: str
    name: str
    directory: Path
    result: dict[str, Any]

    @property
    def id(self) -> str:
        return f"{self.study}/{self.name}"

    @property
    def config(self) -> dict[str, Any]:
        """The configuration it was run with; {} where the result does not say."""
        found = self.find("provenance", "config")
        return found if isinstance(found, dict) else {}

    def find(self, *keys: str) -> Any:
        """What the result holds under a path of keys, or None."""
        value: Any = self.result
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def text(self, *keys: str) -> str | None:
        """A string under a path of keys, or None."""
        value = self.find(*keys)
        return value if isinstance(value, str) else None

    def figure(self, *keys: str) -> Figure:
        """The finite number under a path of keys, or why there is none."""
        *path, last = keys
        block = self.find(*path) if path else self.result
        if not isinstance(block, dict) or last not in block:
            return Figure(None, "missing")
        value = block[last]
        number = files.as_finite(value)
        return Figure(number) if number is not None else Figure(None, _what(value))


def read_trial(directory: Path) -> Trial:
    """The trial in `directory`, named by it and by the study's directory above. Raises NotFound or DamagedFile."""
    path = directory / "result.json"
    data = files.read_bytes(path)
    try:
        value = files.parse_json_file(data)
    except files.KeyGivenTwice as error:
        raise DamagedFile(path, str(error)) from None
    except ValueError as error:
        value = _with_not_a_number(data)
        if value is None:
            raise DamagedFile(path, str(error), recoverable=files.find_recoverable(path)) from None
    if not isinstance(value, dict):
        raise DamagedFile(path, "does not hold an object")
    if _is_deeper(value, MAX_DEPTH):
        raise DamagedFile(path, f"nested deeper than {MAX_DEPTH} levels")
    return Trial(directory.parent.name, directory.name, directory, value)


def find_trials(runs: Path, study: str | None = None) -> tuple[list[Trial], list[KevError]]:
    """Every trial with a readable result under `runs` (of one study, if named), by name, and what could not be read.

    Raises NotFound where there is no such directory.
    """
    top = runs / study if study else runs
    if not top.is_dir():
        raise NotFound(f"{top}: no such directory")
    trials: list[Trial] = []
    faults: list[KevError] = []
    for directory in [top] if study else _directories(top, faults):
        for trial in _directories(directory, faults):
            try:
                trials.append(read_trial(trial))
            except NotFound:
                continue  # a read, or a trial that is not finished
            except KevError as error:
                faults.append(error)
    return trials, faults


def _directories(top: Path, faults: list[KevError]) -> list[Path]:
    """The directories in `top`, by name. One that may not be listed is a fault: it may hold what nobody sees."""
    try:
        inside = sorted(top.iterdir())
        faults += [DamagedFile(path, "a link to nothing: what it leads to is removed, or its volume is not mounted")
                   for path in inside if path.is_symlink() and not path.exists()]  # fmt: skip
        return [path for path in inside if path.is_dir()]
    except OSError as error:
        faults.append(DamagedFile(top, f"may not be listed ({error.strerror or type(error).__name__})"))
        return []


def _with_not_a_number(data: bytes) -> Any:
    # Older writers let NaN through. The file is damaged as JSON, but the rest of what it says is worth having.
    try:
        return json.loads(data.removeprefix(files.UTF8_BOM).decode())
    except (ValueError, RecursionError):
        return None


def _is_deeper(value: Any, levels: int) -> bool:
    layer = [value]
    for _ in range(levels):
        inner = [
            child.values() if isinstance(child, dict) else child for child in layer if isinstance(child, dict | list)
        ]
        layer = [child for children in inner for child in children]
    return bool(layer)


def _what(value: object) -> str:
    match value:
        case None:
            return "null"
        case float() if math.isnan(value):
            return "NaN"
        case float():
            return "infinite"
        case str():
            return "text"
        case _:
            return f"no number but {type(value).__name__}"
