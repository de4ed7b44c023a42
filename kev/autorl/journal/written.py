"""The files of a journal, as they lie there."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kev import files
from kev.autorl.journal.check_form import decode
from kev.autorl.journal.findings import LINES, SUMMARY
from kev.autorl.journal.seals import MOST_BYTES, Seal, read_seals
from kev.autorl.journal.section import Section, read_journal
from kev.errors import NotFound


@dataclass(frozen=True, slots=True)
class Written:
    """The files of a journal as bytes; None for one that is not there."""

    summary: bytes | None = None
    lines: bytes | None = None
    seals: Sequence[Seal] = field(default_factory=tuple)
    """What `append` recorded of each round that it wrote."""

    @property
    def text(self) -> str:
        """`summary.md` with plain line ends, as far as it is text."""
        return decode(self.summary or b"", SUMMARY)[0]

    def sections(self) -> list[Section]:
        """The rounds in it, read anew."""
        return read_journal(self.text).sections


def read_written(reports: Path) -> Written:
    """The files of the journal under `reports`. Raises DamagedFile for one that is too large or no regular file."""
    return Written(read_or_none(reports / SUMMARY), read_or_none(reports / LINES), read_seals(reports))


def read_or_none(path: Path) -> bytes | None:
    """The bytes of a file of a journal, or None where there is none. Raises DamagedFile."""
    try:
        return files.read_bytes(path, limit=MOST_BYTES)
    except NotFound:
        return None
