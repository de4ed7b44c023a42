"""How bytes reach the disk and come back: the only package that opens files under runs/ for writing.

Writing: a whole file is replaced through a temporary sibling and a rename, so that a reader sees the old bytes or
the new ones and a kill at any byte loses neither; a line is appended under an advisory lock. Everything written is
flushed to the device before the call returns.

Reading: bounded, never blocking on what is not a regular file, and suspicious: what cannot be believed raises
`DamagedFile` with the reason, so that "damaged" is never mistaken for "not there yet".
"""

from kev.files.appending import append, open_log
from kev.files.incoming import IncomingFile
from kev.files.json_values import (
    LFS_POINTER,
    LFS_REASON,
    UTF8_BOM,
    UTF16_BOMS,
    KeyGivenTwice,
    Line,
    as_finite,
    dump_json,
    dump_json_line,
    find_recoverable,
    parse_json,
    parse_json_file,
    parse_json_lines,
    read_json,
    read_json_lines,
    without_non_finite,
)
from kev.files.locking import lock_holder, locked
from kev.files.reading import MAX_JSON_BYTES, list_names, read_bytes, read_end, read_start
from kev.files.removing import remove, remove_at_once, remove_tree
from kev.files.replacing import (
    create_exclusive,
    link,
    make_directory,
    make_scratch,
    move,
    seal,
    write_atomic,
    write_through,
)

__all__ = [
    "LFS_POINTER", "LFS_REASON", "MAX_JSON_BYTES", "UTF8_BOM", "UTF16_BOMS", "IncomingFile", "KeyGivenTwice", "Line",
    "append", "as_finite", "create_exclusive", "dump_json", "dump_json_line", "find_recoverable", "link", "list_names",
    "lock_holder", "locked", "make_directory", "make_scratch", "move", "open_log", "parse_json", "parse_json_file",
    "parse_json_lines", "read_bytes", "read_end", "read_json", "read_json_lines", "read_start", "remove",
    "remove_at_once", "remove_tree", "seal", "without_non_finite", "write_atomic", "write_through",
]  # fmt: skip
