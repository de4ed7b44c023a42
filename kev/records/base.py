"""What every record shares: tolerant in reading, strict in writing, and no key is ever lost.

A record keeps the keys it does not know and writes them back; a key that was absent stays absent, so that reading
and writing a file of an older shape changes nothing in it. Money is Decimal inside and a JSON number outside.
"""

from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, PlainSerializer, ValidationError

from kev import files
from kev.errors import DamagedFile

Money = Annotated[Decimal, PlainSerializer(float, return_type=float)]
"""US dollars. A float is read through its shortest decimal form, so 1085.31568035 stays that figure."""


class Record(BaseModel):
    """One JSON object of a known shape, plus whatever else its file holds."""

    # Deferred, since a command meets few of the shapes and building them all costs more than reading the files.
    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True, allow_inf_nan=False)

    def to_json(self) -> dict[str, Any]:
        """The record as plain JSON values: what was set, under the names of the file, unknown keys included."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


AnyRecord = TypeVar("AnyRecord", bound=Record)


def parse_record(path: Path, value: Any, shape: type[AnyRecord]) -> AnyRecord:
    """`value`, which `path` held, as a record. Raises DamagedFile naming the first key of the wrong shape."""
    if not isinstance(value, dict):
        raise DamagedFile(path, f"holds {_kind(value)} where an object belongs")
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        first, *others = error.errors(include_url=False, include_context=False)
        where = ".".join(str(part) for part in first["loc"]) or "the object"
        more = f" (and {len(others)} more)" if others else ""
        raise DamagedFile(path, f"{where}: {first['msg'][0].lower()}{first['msg'][1:]}{more}") from None


def read_record(path: Path, shape: type[AnyRecord]) -> AnyRecord:
    """The record in `path`. Raises NotFound, or DamagedFile with the reason."""
    return parse_record(path, files.read_json(path), shape)


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
