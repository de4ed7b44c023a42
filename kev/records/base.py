"""What every record shares: tolerant in reading, strict in writing, and no key is ever lost.

A record keeps the keys it does not know and writes them back; a key that was absent stays absent, so that reading
and writing a file of an older shape changes nothing in it. Money is Decimal inside and a JSON number outside.
"""

import os
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

# Before pydantic builds its first schema it searches every installed distribution for plugins, which takes longer
# than reading a session. No record needs one; who wants one says so in the environment.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, PlainSerializer, ValidationError
from pydantic_core import PydanticCustomError

from kev import files
from kev.errors import DamagedFile, Refused
from kev.text import shorten, visible

LATEST_UNIX_SECONDS = 253_402_300_799
"""The last second of the year 9999; a larger figure is milliseconds or damage."""

LARGEST_REMEMBERED = 64 * 1024
"""Bytes of a file whose record is kept in memory; nearly all are far smaller."""

MAX_DOLLARS = 10**12
"""No amount is as large: such a figure is damage, and a file that held one might not be read again."""


def _as_dollars(value: object) -> Decimal:
    # The exact types first: a session's state is read before every launch, and holds hundreds of amounts.
    if type(value) is float and -MAX_DOLLARS < value < MAX_DOLLARS:
        return Decimal(repr(value))
    if type(value) is int and -MAX_DOLLARS < value < MAX_DOLLARS:
        return Decimal(value)
    if isinstance(value, Decimal) and value.is_finite() and abs(value) < MAX_DOLLARS:
        return value
    number = files.as_finite(value)
    if number is None or abs(number) >= MAX_DOLLARS:
        raise PydanticCustomError("money", "input should be an amount in US dollars, as a number")
    return Decimal(str(number))


def _check_not_negative(value: Decimal) -> Decimal:
    if value < 0:
        raise PydanticCustomError("charge", "input should be an amount in US dollars from zero up")
    return value


def _as_json_number(value: Decimal) -> int | float:
    if value != value.to_integral_value():  # most amounts; as_tuple takes every digit apart
        return float(value)
    exponent = value.as_tuple().exponent
    return int(value) if isinstance(exponent, int) and exponent >= 0 else float(value)


def _check_unix_seconds(value: int | float) -> int | float:
    if not 0 <= value <= LATEST_UNIX_SECONDS:
        raise PydanticCustomError("unix_seconds", "input should be a time in Unix seconds")
    return value


Money = Annotated[Decimal, BeforeValidator(_as_dollars), PlainSerializer(_as_json_number, return_type=Any)]
"""US dollars. A float is read through its shortest decimal form, so 1085.31568035 stays that figure.

A number in quotes is refused, and so is a truth value; an amount that was a whole number is written as one.
"""

Charge = Annotated[Money, AfterValidator(_check_not_negative)]
"""US dollars that something costs, may cost or has cost: never below zero, or it would give headroom back."""

Number = int | float
"""A figure that keeps the form it has in its file: 10800 is not written back as 10800.0."""

UnixSeconds = Annotated[Number, AfterValidator(_check_unix_seconds)]
"""A moment as the engine's files write it; `utc_from_unix` turns it into a time."""


def utc_from_unix(seconds: int | float) -> datetime:
    """The moment `seconds` after 1970 began, UTC-aware."""
    return datetime.fromtimestamp(seconds, UTC)


class Record(BaseModel):
    """One JSON object of a known shape, plus whatever else its file holds."""

    # Deferred, since a command meets few of the shapes and building them all costs more than reading the files.
    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True, allow_inf_nan=False)

    def to_json(self) -> dict[str, Any]:
        """The record as plain JSON values: what was set, under the names of the file, unknown keys included.

        Raises Refused if an unknown key holds more levels than can be written.
        """
        try:
            return self.model_dump(mode="json", by_alias=True, exclude_unset=True)
        except ValueError as error:
            raise Refused(f"{type(self).__name__}: not written back ({error})") from None


class StrictRecord(Record):
    """A record that only programs write: a number in quotes, or a truth value for a number, is damage."""

    model_config = ConfigDict(strict=True)


AnyRecord = TypeVar("AnyRecord", bound=Record)


def parse_record(path: Path, value: Any, shape: type[AnyRecord]) -> AnyRecord:
    """`value`, which `path` held, as a record. Raises DamagedFile naming the first key of the wrong shape."""
    try:
        return _record_of(value, shape)
    except ValueError as error:
        raise DamagedFile(path, str(error)) from None


def _record_of(value: Any, shape: type[AnyRecord]) -> AnyRecord:
    """Raises ValueError with the reason in words."""
    if not isinstance(value, dict):
        raise ValueError(f"holds {_kind(value)} where an object belongs")
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        raise ValueError(reason_of(error)) from None


def reason_of(error: ValidationError) -> str:
    """What is wrong, in a line: the first key of the wrong shape, what it should be, and how many more there are."""
    first, *others = error.errors(include_url=False, include_context=False)
    where = visible(".".join(shorten(str(part), 80) for part in first["loc"])) or "the object"
    more = f" (and {len(others)} more)" if others else ""
    return f"{where}: {first['msg'][0].lower()}{first['msg'][1:]}{more}"


def read_record(path: Path, shape: type[AnyRecord]) -> AnyRecord:
    """The record in `path`. Raises NotFound, or DamagedFile with the reason and a complete copy, if there is one."""
    data = files.read_bytes(path)
    try:
        return _parse(data, shape) if len(data) > LARGEST_REMEMBERED else cast(AnyRecord, _remembered(data, shape))
    except ValueError as error:
        raise DamagedFile(path, str(error), recoverable=files.find_recoverable(path)) from None


def _parse(data: bytes, shape: type[AnyRecord]) -> AnyRecord:
    return _record_of(files.parse_json_file(data), shape)


# Most of what is read is what was read a moment ago: by the next decision of the gate, or the next pass of a watch.
# A record is never changed, so the same bytes may be the same record.
_remembered = lru_cache(maxsize=64)(_parse)


def write_record(path: Path, record: Record) -> None:
    """Replace `path` by `record`, wholly or not at all."""
    files.write_atomic(path, files.dump_json(record.to_json()))


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case list():
            return "a list"
        case bool() | int() | float():
            return "a number or truth value"
        case _:
            return "a string"
