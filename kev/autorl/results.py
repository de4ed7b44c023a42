"""`results.csv`: one row for each run, read and written by the names of its columns.

Older files lack columns and other tools add some, so nothing is ever taken by its position; a row that is appended
keeps every column that is there.
"""

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from kev import files
from kev.errors import DamagedFile, NotFound
from kev.records.autorl import ResultRow
from kev.text import visible

COLUMNS = tuple(ResultRow.model_fields)
TRUE, FALSE = "True", "False"


@dataclass(frozen=True, slots=True)
class Results:
    """Rows as they are, by column; and a line for each that cannot be believed."""

    columns: list[str]
    rows: list[dict[str, str]]
    findings: list[str]


def read_results(path: Path) -> Results:
    """The rows of `path`. Raises NotFound, or DamagedFile for a file without a header that can be believed."""
    return _parsed(path, files.read_bytes(path))


def _parsed(path: Path, data: bytes) -> Results:
    data = data.removeprefix(files.UTF8_BOM)
    if data.startswith(files.UTF16_BOMS) or b"\0" in data[:4]:
        raise DamagedFile(path, "UTF-16 text; save it as UTF-8")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise DamagedFile(path, f"not UTF-8 (byte {error.start + 1:,})") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        columns = next(reader, None)
        if not columns or "run_id" not in columns or len(set(columns)) < len(columns):
            raise DamagedFile(path, "its first line is no header with a run_id and each column once")
        rows, findings = [], []
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(columns):
                findings.append(f"line {reader.line_num}: {len(cells)} cells where {len(columns)} belong")
                continue
            rows.append(dict(zip(columns, cells, strict=True)))
    except csv.Error as error:
        raise DamagedFile(path, f"line {reader.line_num}: {error}") from None
    return Results(columns, rows, findings)


def append_result(path: Path, row: ResultRow) -> None:
    """Add a row, under a lock, whatever columns the file has. Raises DamagedFile, with `path` untouched."""
    cells = {name: _cell(getattr(row, name)) for name in COLUMNS}
    with files.locked(path.with_name(f".{path.name}.lock"), wait=True):
        try:
            data = files.read_bytes(path)
            found = _parsed(path, data)
        except NotFound:
            data, found = b"", Results([], [], [])
        if found.findings:
            # Writing the file anew would lose what could not be read.
            raise DamagedFile(path, f"{found.findings[0]}; put it right, then the run's row can be added")
        columns = [*found.columns, *(name for name in COLUMNS if name not in found.columns)]
        # A spreadsheet that saved the file takes it for another encoding without its mark.
        mark = files.UTF8_BOM if data.startswith(files.UTF8_BOM) else b""
        line_end = "\r\n" if data.partition(b"\n")[0].endswith(b"\r") else "\n"
        buffer = io.StringIO(newline="")
        writer = csv.DictWriter(buffer, columns, restval="", lineterminator=line_end)
        writer.writeheader()
        writer.writerows([*found.rows, cells])
        files.write_atomic(path, mark + buffer.getvalue().encode())


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return TRUE if value else FALSE
        case _:
            return visible(str(value))
