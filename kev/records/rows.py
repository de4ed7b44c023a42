"""`rows.json`: one object per scored question, in a list."""

from pathlib import Path
from typing import Any

from kev import files
from kev.errors import DamagedFile
from kev.records.base import Number, StrictRecord, parse_record


class Row(StrictRecord):
    """One question as it was answered."""

    id: str
    """The record; several questions may share it."""
    group: str
    """The bootstrap cluster."""
    question: str
    source: str
    task: str
    type: str
    """`choice`, `noul` or `score`."""
    variant: str
    """`clean`, `permuted`, `none_present` or `none_absent`."""
    keys: list[str]
    """Option keys in scoring order."""
    label: int
    """Index into `keys`."""
    p: list[Number]
    """Probability of each option; sums to 1."""
    logits: list[Number] | None = None
    """As served: already divided by `inference_temperature`."""
    inference_temperature: Number | None = None
    """None means that the row is raw."""
    raw_probability_sum: Number | None = None
    zero_count: int | None = None
    control_id: str | None = None
    pair_id: str | None = None
    sibling: str | None = None
    parent: str | None = None
    kernels: str | None = None
    state_tokens: int | None = None


def parse_rows(path: Path, value: Any) -> list[Row]:
    """The rows that `path` held. Raises DamagedFile naming the row, counted from 1, and its key."""
    if not isinstance(value, list):
        raise DamagedFile(path, "holds no list of rows")
    rows = []
    for number, item in enumerate(value, start=1):
        try:
            rows.append(parse_record(path, item, Row))
        except DamagedFile as error:
            raise DamagedFile(path, f"row {number}: {error.reason}") from None
    return rows


def read_rows(path: Path) -> list[Row]:
    """The rows in `path`. Raises NotFound or DamagedFile."""
    return parse_rows(path, files.read_json(path))
