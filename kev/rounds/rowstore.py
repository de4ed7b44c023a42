"""Scored rows on disk: each rows.json is read and checked once, however many panels and arms use it."""

from collections import OrderedDict
from pathlib import Path

from kev import files
from kev.errors import NotFound
from kev.metrics import Rows, look_alikes, rows_from_json

ROWS = "rows.json"


class RowStore:
    """The rows under a root, by directory. The least used are dropped once more than `keep_rows` are held."""

    def __init__(self, root: Path, *, keep_rows: int = 1_000_000) -> None:
        self.root = root
        self.notes: list[str] = []
        """What a reader of the numbers should know about the rows: ids that look alike and differ."""
        self._keep_rows = keep_rows
        self._held: OrderedDict[str, Rows] = OrderedDict()
        self._noted: set[str] = set()

    def has(self, directory: str) -> bool:
        """Whether the directory has rows."""
        try:
            return directory in self._held or self._path(directory).is_file()
        except (OSError, ValueError):  # a name that no file can have, or a place that may not be looked into
            return False

    def rows(self, directory: str) -> Rows:
        """The rows of a directory, as saved. Raises NotFound, DamagedFile or BadRows."""
        if directory in self._held:
            self._held.move_to_end(directory)
            return self._held[directory]
        path = self._path(directory)
        rows = rows_from_json(files.read_json(path), str(path))
        self._note_look_alikes(directory, rows)
        self._held[directory] = rows
        while sum(map(len, self._held.values())) > self._keep_rows and len(self._held) > 1:
            self._held.popitem(last=False)
        return rows

    def bytes_of(self, path: str) -> bytes | None:
        """The bytes of any file under the root; None if it is not there."""
        try:
            return files.read_bytes(self.root / path)
        except NotFound:
            return None

    def _path(self, directory: str) -> Path:
        return self.root / directory / ROWS

    def _note_look_alikes(self, directory: str, rows: Rows) -> None:
        if directory in self._noted:
            return
        self._noted.add(directory)
        # Written with escapes: printed as they are, the two would be the same text.
        self.notes += [
            f"{directory}: ids {one!a} and {other!a} look alike and are two records"
            for one, other in look_alikes(rows.ids)
        ]
