"""How bytes reach the disk and come back: the only module that opens files under runs/ for writing.

Writing: a whole file is replaced through a temporary sibling and a rename, so that a reader sees the old bytes or
the new ones and a kill at any byte loses neither; a line is appended under an advisory lock. Everything written is
flushed to the device before the call returns.

Reading: bounded, never blocking on what is not a regular file, and suspicious: what cannot be believed raises
`DamagedFile` with the reason, so that "damaged" is never mistaken for "not there yet".
"""

import errno
import fcntl
import glob
import json
import math
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from kev.errors import DamagedFile, DamagedLine, LockHeld, NotFound, Refused

MAX_JSON_BYTES = 256 * 1024 * 1024
"""A record larger than this is damage, not data: the largest real one (a rows.json) is about 100 MB."""

UTF8_BOM = b"\xef\xbb\xbf"
UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")


# ---------------------------------------------------------------------------------------------------- writing


def dump_json(value: Any) -> bytes:
    """The bytes of a JSON file: UTF-8, 2-space indent, nothing escaped that need not be, a final newline.

    Raises ValueError for NaN and infinities: a file that holds one is unreadable to every other reader.
    """
    return _encode(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def dump_json_line(value: Any) -> bytes:
    """One JSON value on one line, with a final newline. Raises ValueError for NaN and infinities."""
    return _encode(json.dumps(value, ensure_ascii=False, allow_nan=False))


def write_atomic(path: Path, data: bytes) -> None:
    """Replace `path` by `data`, wholly or not at all. Raises OSError, with `path` untouched."""
    temporary = _write_sibling(path, data)
    try:
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _flush_directory(path.parent)


def write_through(path: Path, write: Callable[[Path], object]) -> None:
    """Replace `path`, wholly or not at all, by what `write` puts into the temporary file it is given.

    For content too large to be held in memory twice. Raises what `write` raises, with `path` untouched.
    """
    temporary = _write_sibling(path, b"")
    try:
        write(temporary)
        _flush_file(temporary)
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _flush_directory(path.parent)


def create_exclusive(path: Path, data: bytes) -> None:
    """Create `path` holding `data`, wholly or not at all. Raises FileExistsError if anything is there already."""
    temporary = _write_sibling(path, data)
    try:
        # A hard link fails on an existing name and appears with its bytes complete; O_EXCL alone would
        # leave an empty file behind a kill between creation and write.
        os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    _flush_directory(path.parent)


def move(source: Path, target: Path) -> None:
    """Give `source`, a file or a whole directory, the name `target`, at once; a file or an empty directory there goes.

    What `source` holds is flushed first, so that a complete name never stands for incomplete bytes.
    """
    for path in [source, *source.rglob("*")] if source.is_dir() else [source]:
        _flush_file(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    source.replace(target)
    _flush_directory(target.parent)


def remove_at_once(path: Path) -> None:
    """Remove a directory and everything in it, if it is there; no reader ever sees it half there.

    It loses its name first: a kill in between leaves a hidden sibling, which a later call of the same name removes.
    Raises Refused for one that holds a finished checkpoint.
    """
    _check_no_checkpoint(path)
    hidden = path.with_name(f".{path.name}.removed")
    remove_tree(hidden)
    with suppress(FileNotFoundError):
        path.replace(hidden)
        _flush_directory(path.parent)
    remove_tree(hidden)


def append(path: Path, data: bytes, *, cut_torn: bool = False) -> None:
    """Append `data`, which must end in a newline, under an exclusive lock.

    A tail that an earlier kill left without its newline is closed first, so that a torn line spoils only itself; with
    `cut_torn` it is removed, for files in which a line that was never acknowledged must not stay.
    If the device refuses part of `data`, the file is cut back to what it was and the OSError is raised.
    """
    if not data.endswith(b"\n"):
        raise ValueError("append takes whole lines")
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            if cut_torn:
                size = _end_of_last_line(descriptor, size)
                os.ftruncate(descriptor, size)
            else:
                data = b"\n" + data
        try:
            _write_all(descriptor, data)
            os.fsync(descriptor)
        except OSError:
            with suppress(OSError):
                os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path, *, wait: bool = False, words: str = "") -> Iterator[int]:
    """Hold an exclusive advisory lock on `path` (created if needed) for the block.

    Raises LockHeld, naming the holder's own words in the file, unless `wait` is true. `words`, one line, are what the
    next one is told; without any, process and host. The kernel releases the lock when the process dies, however it
    dies. Yields the descriptor: a child that inherits it holds the lock until it has ended as well.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            held = os.pread(descriptor, 200, 0).decode(errors="replace").strip()
            raise LockHeld(path, held) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{words or f'process {os.getpid()} on {os.uname().nodename}'}\n".encode())
        yield descriptor
    finally:
        os.close(descriptor)


def lock_holder(path: Path) -> str | None:
    """What the one who holds the lock on `path` has written there, or None if nobody holds it. Changes nothing.

    Raises OSError where that cannot be told.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.pread(descriptor, 200, 0).decode(errors="replace").strip()
    else:
        return None
    finally:
        os.close(descriptor)


def remove(path: Path) -> None:
    """Remove a file, or a directory with all it holds; what is not there is no error. Links are not followed.

    Raises Refused for a directory that holds a finished checkpoint.
    """
    _check_no_checkpoint(path)
    if path.is_dir() and not path.is_symlink():
        import shutil

        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def make_directory(path: Path, *, private: bool = False) -> None:
    """Make a directory and those above it, as far as they are not there; a `private` one opens to its owner only."""
    path.mkdir(parents=True, exist_ok=True)
    if private:
        path.chmod(0o700)


def link(path: Path, target: Path) -> None:
    """Make `path` a symbolic link to `target`. Raises FileExistsError if anything is there already."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def make_scratch(directory: Path) -> Path:
    """A new private directory under `directory`, for what is put together before it is moved to its place."""
    import tempfile

    directory.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=".scratch-", dir=directory))


def seal(source: Path, target: Path) -> None:
    """Move a directory to `target` and take the right to write from everything in it. One already there stays."""
    try:
        move(source, target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return
    for path in target.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)


@contextmanager
def open_log(path: Path) -> Iterator[int]:
    """A descriptor that appends to `path`, for the output of a process. What is there stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def remove_tree(path: Path) -> None:
    """Remove a temporary directory and all below it, as far as it can be removed. Nothing there is fine.

    Raises Refused for one that holds a finished checkpoint.
    """
    import shutil

    _check_no_checkpoint(path)

    shutil.rmtree(path, ignore_errors=True)


def remove_file(path: Path) -> None:
    """Remove a file. Nothing there is fine."""
    path.unlink(missing_ok=True)
    _flush_directory(path.parent)


class IncomingFile:
    """A file that arrives in pieces, in any order, and appears as `path` only when `finish` says that it is whole.

    Until then its bytes are in `<name>.part` beside it, which a later arrival replaces. One arrival a path at a time.
    It has as much of a binary file object as a writer needs, and belongs to one thread at a time.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.part = path.with_name(f"{path.name}.part")
        self.trouble: OSError | None = None
        """Tells a full disk from a broken connection, where both come back through somebody else's code."""
        path.parent.mkdir(parents=True, exist_ok=True)
        # Not through a link: what a stranger left under the name must not be written to.
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(self.part, flags, 0o644)

    def write(self, data: bytes) -> int:
        """Write all of `data` where the last seek or write left off. Raises OSError, kept in `trouble` as well."""
        try:
            _write_all(self._descriptor, data)
        except OSError as error:
            self.trouble = error
            raise
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return os.lseek(self._descriptor, offset, whence)

    def tell(self) -> int:
        return os.lseek(self._descriptor, 0, os.SEEK_CUR)

    @property
    def size(self) -> int:
        """Bytes up to the last one that has arrived."""
        return os.fstat(self._descriptor).st_size

    def finish(self, *, modified: int) -> None:
        """Put the file in place with `modified` (Unix seconds) as its time. Raises OSError, with `path` untouched."""
        os.fsync(self._descriptor)
        os.utime(self._descriptor, (modified, modified))
        self.part.replace(self.path)
        self._close()
        _flush_directory(self.path.parent)

    def abandon(self) -> None:
        """Remove what has arrived; nothing happens after `finish`."""
        if self._descriptor >= 0:
            self._close()
            self.part.unlink(missing_ok=True)

    def _close(self) -> None:
        os.close(self._descriptor)
        self._descriptor = -1


MARKS_OF_CHECKPOINT = frozenset({"training_metrics.json", "snapshot.json"})
"""Written last, by the training: what they lie beside is a checkpoint that can be read, and is kept for good."""


def _check_no_checkpoint(path: Path) -> None:
    # What is hidden is being written, or was shown to be incomplete before it was hidden.
    if path.name.startswith(".") or not path.is_dir() or path.is_symlink():
        return
    for found in path.rglob("*.json"):
        if found.name in MARKS_OF_CHECKPOINT and found.parent.name == "checkpoint":
            raise Refused(f"{path}: holds a finished checkpoint, {found.parent}; no checkpoint is ever deleted")


def _encode(text: str) -> bytes:
    # Half a surrogate pair has no UTF-8; Python's escape for it is also JSON's, so it survives the round trip.
    return (text + "\n").encode(errors="backslashreplace")


def _write_sibling(path: Path, data: bytes) -> Path:
    # Here, since it takes 5 ms to load and most processes only read.
    import tempfile

    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        # mkstemp makes 0600; a colleague who only watches must be able to read what the owner wrote.
        os.fchmod(descriptor, 0o644)
        _write_all(descriptor, data)
        os.fsync(descriptor)
    except BaseException:
        os.close(descriptor)
        Path(name).unlink(missing_ok=True)
        raise
    os.close(descriptor)
    return Path(name)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _flush_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _end_of_last_line(descriptor: int, size: int) -> int:
    """Bytes up to and with the last newline."""
    while size:
        start = max(0, size - 65_536)
        found = os.pread(descriptor, size - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        size = start
    return 0


def _flush_directory(directory: Path) -> None:
    # Without it the rename itself can be lost with the power; some network volumes refuse it, harmlessly.
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# ---------------------------------------------------------------------------------------------------- reading


def read_bytes(path: Path, *, limit: int = MAX_JSON_BYTES) -> bytes:
    """The bytes of a regular file.

    Raises NotFound if nothing is there, DamagedFile if it is no regular file, may not be read, or passes `limit`.
    """
    try:
        # Non-blocking, so that a pipe under the name of a record cannot hang the reader.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"{path}: no such file") from None
    except OSError as error:
        raise DamagedFile(path, _os_reason(error)) from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise DamagedFile(path, "not a regular file")
        if status.st_size > limit:
            raise DamagedFile(path, f"{status.st_size:,} bytes, more than the {limit:,} a record may have")
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            # Python sets aside as much memory as it is asked to read, which for the limit is 256 MiB.
            data = stream.read(status.st_size + 1)
            if len(data) > status.st_size:  # it grew meanwhile
                data += stream.read(limit + 1 - len(data))
        if len(data) > limit:
            raise DamagedFile(path, f"more than the {limit:,} bytes a record may have")
        return data
    except OSError as error:
        raise DamagedFile(path, _os_reason(error)) from None
    finally:
        os.close(descriptor)


def read_end(path: Path, limit: int) -> bytes:
    """The last `limit` bytes of a regular file, however large it is. Raises as `read_bytes` does."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"{path}: no such file") from None
    except OSError as error:
        raise DamagedFile(path, _os_reason(error)) from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise DamagedFile(path, "not a regular file")
        return os.pread(descriptor, limit, max(0, status.st_size - limit))
    except OSError as error:
        raise DamagedFile(path, _os_reason(error)) from None
    finally:
        os.close(descriptor)


def list_names(directory: Path) -> list[str]:
    """The names in a directory, sorted; none where there is no such directory. Raises DamagedFile."""
    try:
        return sorted(entry.name for entry in os.scandir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise DamagedFile(directory, _os_reason(error)) from None


def read_json(path: Path, *, limit: int = MAX_JSON_BYTES) -> Any:
    """The JSON value in `path`. Raises NotFound or DamagedFile; the latter names a complete left-over copy."""
    data = read_bytes(path, limit=limit)
    try:
        return parse_json(data)
    except ValueError as error:
        raise DamagedFile(path, str(error), recoverable=find_recoverable(path)) from None


def parse_json(data: bytes) -> Any:
    """The JSON value in `data`, tolerating only a UTF-8 byte order mark. Raises ValueError with the reason in words."""
    if data and not data.strip(b"\0"):
        raise ValueError("nothing but NUL bytes, as after a crash before the data reached the disk")
    if data.startswith(UTF16_BOMS) or b"\x00" in data[:4]:
        raise ValueError("UTF-16 or UTF-32 text; save it as UTF-8")
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
    """The newest complete temporary sibling that an interrupted write of `path` left behind, or None."""
    complete = []
    with suppress(OSError):
        for candidate in path.parent.glob(f".{glob.escape(path.name)}*.tmp"):
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


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _os_reason(error: OSError) -> str:
    match error.errno:
        case errno.EACCES | errno.EPERM:
            return "may not be read (permission denied)"
        case errno.EISDIR:
            return "not a regular file"
        case errno.ELOOP:
            return "a loop of symbolic links"
        case _:
            return f"cannot be read ({error.strerror or type(error).__name__})"


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
    if error.pos >= len(data.decode().rstrip()):
        return f"cut short at {where}"
    return f"not JSON at {where}"
