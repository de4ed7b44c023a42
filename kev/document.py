"""A JSON file with the line of every key, and the keys that are repeated: what a message about a spec points at."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from kev import files
from kev.errors import DamagedFile

JsonPath = tuple[str | int, ...]
"""Keys and list indices from the top of a document; () is the document itself."""

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder(strict=False)

MAX_DEPTH = 64
"""A spec needs eight; a value nested a thousand deep ends the process that walks it."""

MAX_BYTES = 16 * 1024 * 1024
"""The largest real spec is 14 KB; every key of a document costs memory here."""


@dataclass(frozen=True, slots=True)
class RepeatedKey:
    """A key that an object has twice, however it is spelled; JSON readers differ in which one counts."""

    where: JsonPath
    first: "Place"
    second: "Place"

    def __str__(self) -> str:
        if self.first.line != self.second.line:
            return f"given twice, on lines {self.first.line} and {self.second.line}"
        columns = f"columns {self.first.column} and {self.second.column}"
        return f"given twice, on line {self.first.line} and line {self.second.line} ({columns})"


class Place(NamedTuple):
    """Where a key or a list element begins; both count from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Document:
    """The value of a JSON file, with the places in its text."""

    path: Path
    value: Any
    places: Mapping[JsonPath, Place]
    repeated: tuple[RepeatedKey, ...]

    def line(self, where: JsonPath) -> int | None:
        """The line of the key or list element at `where`, or of the innermost of its parents that is there."""
        for end in range(len(where), -1, -1):
            if where[:end] in self.places:
                return self.places[where[:end]].line
        return None


def read_document(path: Path) -> Document:
    """The document in `path`. Raises NotFound, or DamagedFile for what is not one JSON value in UTF-8."""
    data = files.read_bytes(path, limit=MAX_BYTES)
    try:
        value = files.parse_json(data)
    except ValueError as error:
        raise DamagedFile(path, str(error), recoverable=files.find_recoverable(path)) from None
    scan = _Scan(data.removeprefix(files.UTF8_BOM).decode())
    try:
        scan.run()
    except ValueError as error:
        raise DamagedFile(path, str(error)) from None
    return Document(path, value, scan.places, tuple(scan.repeated))


def read_value(path: Path) -> Any:
    """The JSON value in `path`, for files that people write by hand. Raises NotFound or DamagedFile.

    A key given twice is refused: readers differ in which one counts, and so would the people.
    """
    document = read_document(path)
    for repeat in document.repeated:
        raise DamagedFile(path, f"{format_path(repeat.where)}: {repeat}")
    return document.value


def format_path(where: JsonPath) -> str:
    """`where` as people write it: `studies.r41-4b.budget`, `rule.criteria["at_most_0.02"].left`, `arms[2]`."""
    text = ""
    for part in where:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{json.dumps(part, ensure_ascii=False)}]"
    return text


@dataclass
class _Scan:
    """One walk over text that is already known to be JSON, so that it need not be checked again."""

    text: str
    places: dict[JsonPath, Place] = field(default_factory=dict)
    repeated: list[RepeatedKey] = field(default_factory=list)
    _counted: int = 0
    _line: int = 1

    def run(self) -> None:
        position = self._skip(0)
        self._note((), position)
        # A stack instead of recursion: a document may be nested deeper than Python's calls.
        stack: list[tuple[JsonPath, Iterator[int] | None]] = []
        position = self._enter((), position, stack)
        while stack:
            if len(stack) > MAX_DEPTH:
                raise ValueError(f"line {self._line}: nested more than {MAX_DEPTH} deep")
            where, indices = stack[-1]
            position = self._skip(position)
            if self.text[position] in "}]":
                stack.pop()
                position += 1
                continue
            if self.text[position] == ",":
                position = self._skip(position + 1)
            if indices is None:
                key, end = _DECODER.raw_decode(self.text, position)
                self._note((*where, key), position)
                position = self._skip(self._skip(end) + 1)  # past the colon
                position = self._enter((*where, key), position, stack)
            else:
                child = (*where, next(indices))
                self._note(child, position)
                position = self._enter(child, position, stack)

    def _enter(self, where: JsonPath, position: int, stack: list[tuple[JsonPath, Iterator[int] | None]]) -> int:
        match self.text[position]:
            case "{":
                stack.append((where, None))
                return position + 1
            case "[":
                stack.append((where, iter(range(len(self.text)))))
                return position + 1
            case _:
                return _DECODER.raw_decode(self.text, position)[1]

    def _skip(self, position: int) -> int:
        space = _SPACE.match(self.text, position)
        return space.end() if space else position

    def _note(self, where: JsonPath, position: int) -> None:
        self._line += self.text.count("\n", self._counted, position)
        self._counted = position
        place = Place(self._line, position - self.text.rfind("\n", 0, position))
        if where in self.places and not self._is_inside_repeated(where):
            self.repeated.append(RepeatedKey(where, self.places[where], place))
        self.places[where] = place

    def _is_inside_repeated(self, where: JsonPath) -> bool:
        # The keys of a repeated object repeat with it; one message is enough.
        return any(where[: len(found.where)] == found.where and where != found.where for found in self.repeated)
