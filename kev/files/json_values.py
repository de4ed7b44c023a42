"""JSON as this project writes it, and as whoever wrote the file may have: in files, and in lines."""

import glob
import json
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from kev.errors import DamagedFile, DamagedLine, NotFound
from kev.files.reading import MAX_JSON_BYTES, read_bytes

UTF8_BOM = b"\xef\xbb\xbf"
UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
LFS_POINTER = b"version https://git-lfs.github.com/spec/"
LFS_REASON = "a Git LFS pointer, not the file that it stands for; fetch that with `git lfs pull`"

MOST_WALKED = 1024 * 1024
"""Bytes of a file up to which each of its keys is looked at: states, records and manifests, but no rows of a read."""


class KeyGivenTwice(ValueError):
    """An object of a file has a key twice: the text is JSON, and readers differ in what it says."""


_ON_A_LINE = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def dump_json(value: Any) -> bytes:
    """The bytes of a JSON file: UTF-8, 2-space indent, nothing escaped that need not be, a final newline.

    Raises ValueError for NaN and infinities: a file that holds one is unreadable to every other reader.
    """
    return _encode(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def dump_json_line(value: Any) -> bytes:
    """One JSON value on one line, with a final newline. Raises ValueError for NaN and infinities."""
    return _encode(_ON_A_LINE.encode(value))


def read_json(path: Path, *, limit: int = MAX_JSON_BYTES) -> Any:
    """The JSON value in `path`. Raises NotFound or DamagedFile; the latter names a complete left-over copy."""
    data = read_bytes(path, limit=limit)
    try:
        return parse_json_file(data)
    except ValueError as error:
        raise DamagedFile(path, str(error), recoverable=find_recoverable(path)) from None


def parse_json_file(data: bytes) -> Any:
    """As `parse_json`, for a whole file that may be decided by or written back, up to MOST_WALKED bytes of it.

    A key that an object has twice raises KeyGivenTwice; whole numbers of any
    size stay what they are, where `parse_json` makes those of more than 64 bits into floats.
    """
    value = parse_json(data)
    # What this project writes comes out of the other writer as the same bytes, unless a key or a digit was lost.
    if len(data) > MOST_WALKED or data == _written_again(value):
        return value
    text = data.removeprefix(UTF8_BOM).decode()
    try:
        return json.loads(text, object_pairs_hook=lambda pairs: _object_of(pairs, text))
    except RecursionError:
        raise ValueError("nested too deep to be looked through") from None


def parse_json(data: bytes) -> Any:
    """The JSON value in `data`, tolerating only a UTF-8 byte order mark. Raises ValueError with the reason in words."""
    if data and not data.strip(b"\0"):
        raise ValueError("nothing but NUL bytes, as after a crash before the data reached the disk")
    if data.startswith(b"\0\0\0\0"):
        raise ValueError("begins with NUL bytes, as after a crash before the data reached the disk")
    if data.startswith(UTF16_BOMS) or b"\x00" in data[:4]:
        raise ValueError("UTF-16 or UTF-32 text; save it as UTF-8")
    if data.startswith(LFS_POINTER):
        raise ValueError(LFS_REASON)
    data = data.removeprefix(UTF8_BOM)
    if not data.strip():
        raise ValueError("empty")
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if b"\\ud" in data.lower():
            # orjson refuses half a surrogate pair, which other writers do produce in error texts.
            with suppress(ValueError, RecursionError):
                return json.loads(data, parse_constant=_refuse_constant)
        raise ValueError(_json_reason(data, error)) from None


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a line-delimited file: its number from 1, and its value or the reason it has none."""

    number: int
    value: Any = None
    damage: str | None = None


def parse_json_lines(data: bytes, *, first: int = 1) -> Iterator[Line]:
    """The values in `data`, one a line; blank lines are skipped, damaged ones are yielded with their reason.

    Lines end at a newline and nowhere else: U+2028, U+2029 and U+0085 are text inside strings.
    A last line without its newline is yielded like any other, since a finished file may lack one.
    """
    for number, line in enumerate(data.removeprefix(UTF8_BOM).split(b"\n"), start=first):
        if not line.strip():
            continue
        try:
            yield Line(number, parse_json(line))
        except ValueError as error:
            # The parser counts lines within what it was given, which is always one.
            yield Line(number, damage=str(error).replace("line 1, ", ""))


def read_json_lines(path: Path, *, limit: int = MAX_JSON_BYTES) -> list[Any]:
    """Every value in `path`. Raises NotFound, DamagedFile, or DamagedLine at the first bad line."""
    values = []
    for line in parse_json_lines(read_bytes(path, limit=limit)):
        if line.damage is not None:
            raise DamagedLine(path, line.number, line.damage)
        values.append(line.value)
    return values


def find_recoverable(path: Path) -> Path | None:
    """The newest complete copy beside `path`, of an interrupted write or as other tools name one, or None."""
    complete = []
    name = glob.escape(path.name)
    with suppress(OSError, ValueError):
        for pattern in (f".{name}*.tmp", f"{name}*.tmp", f"{name}.bak", f"{name}~"):
            for candidate in path.parent.glob(pattern):
                with suppress(OSError, ValueError, DamagedFile, NotFound):
                    parse_json(read_bytes(candidate))
                    complete.append((candidate.stat().st_mtime, candidate))
    return max(complete)[1] if complete else None


def as_finite(value: object) -> float | None:
    """`value` as a finite float, or None: for figures in files that others wrote."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def without_non_finite(value: Any) -> Any:
    """`value`, plain JSON values, with null for every number that JSON does not have, or readers take for infinite."""
    match value:
        case dict():
            return {key: without_non_finite(child) for key, child in value.items()}
        case list() | tuple():
            return [without_non_finite(child) for child in value]
        case bool():
            return value
        case int() | float():
            return None if as_finite(value) is None else value
        case _:
            return value


def _encode(text: str) -> bytes:
    # Half a surrogate pair has no UTF-8; Python's escape for it is also JSON's, so it survives the round trip.
    return (text + "\n").encode(errors="backslashreplace")


def _written_again(value: Any) -> bytes | None:
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:
        return None  # half a surrogate pair, or deeper than it writes


def _object_of(pairs: list[tuple[str, Any]], text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            spots = [match.start() for match in re.finditer(re.escape(json.dumps(key, ensure_ascii=False)), text)]
            lines = [text.count("\n", 0, spot) + 1 for spot in spots]
            where = f", on lines {lines[0]} and {lines[1]}" if len(lines) == 2 else ""
            values = f"as {found[key]!r:.40} and as {value!r:.40}"
            raise KeyGivenTwice(f"{key!r:.80} is given twice{where}, {values}; readers differ in which one counts")
        found[key] = value
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _json_reason(data: bytes, error: orjson.JSONDecodeError) -> str:
    try:
        data.decode()
    except UnicodeDecodeError as bad:
        return f"not UTF-8 (byte {bad.start + 1:,})"
    where = f"line {error.lineno}, column {error.colno}"
    token = data.decode()[error.pos : error.pos + 9].lstrip("-")
    for name in ("NaN", "Infinity"):
        if token.startswith(name):
            return f"{where}: {name} is not a number JSON has"
    if error.msg.startswith("number is infinity"):
        return f"{where}: a number larger than any that can be read"
    if error.pos >= len(data.decode().rstrip()):
        return f"cut short at {where}"
    return f"not JSON at {where}"
