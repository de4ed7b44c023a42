"""The files of a journal, as they lie there."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kev import files
from kev.autorl.journal.findings import LINES, SUMMARY
from kev.autorl.journal.seals import Seal, read_seals
from kev.errors import NotFound

MOST_BYTES = 16 * 1024 * 1024
"""A journal that is larger is no journal: a round has a few KiB."""


@dataclass(frozen=True, slots=True)
class Written:
    """The files of a journal as bytes; None for one that is not there."""

    summary: bytes | None = None
    lines: bytes | None = None
    seals: Sequence[Seal] = field(default_factory=tuple)
    """What `append` recorded of each round that it wrote."""


def read_written(reports: Path) -> Written:
    """The files of the journal under `reports`. Raises DamagedFile for one that is too large or no regular file."""
    return Written(read_or_none(reports / SUMMARY), read_or_none(reports / LINES), read_seals(reports))


def read_or_none(path: Path) -> bytes | None:
    """The bytes of a file of a journal, or None where there is none. Raises DamagedFile."""
    try:
        return files.read_bytes(path, limit=MOST_BYTES)
    except NotFound:
        return None
