"""Reading: bounded, never blocking on what is not a regular file, and never taking damage for absence."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kev.errors import DamagedFile, NotFound, UnreadFile

MAX_JSON_BYTES = 256 * 1024 * 1024
"""A record larger than this is damage, not data: the largest real one (a rows.json) is about 100 MB."""


def read_bytes(path: Path, *, limit: int = MAX_JSON_BYTES) -> bytes:
    """The bytes of a regular file.

    Raises NotFound if nothing is there, DamagedFile if it is no regular file, may not be read, or passes `limit`.
    """
    with _opened(path) as (descriptor, size):
        if size > limit:
            raise DamagedFile(path, f"{size:,} bytes, more than the {limit:,} a record may have")
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            # Python sets aside as much memory as it is asked to read, which for the limit is 256 MiB.
            data = stream.read(size + 1)
            if len(data) > size:  # it grew meanwhile
                data += stream.read(limit + 1 - len(data))
    if len(data) > limit:
        raise DamagedFile(path, f"more than the {limit:,} bytes a record may have")
    return data


def read_end(path: Path, limit: int) -> bytes:
    """The last `limit` bytes of a regular file, however large it is. Raises as `read_bytes` does."""
    with _opened(path) as (descriptor, size):
        return os.pread(descriptor, limit, max(0, size - limit))


def read_start(path: Path, limit: int) -> bytes:
    """The first `limit` bytes of a regular file, however large it is. Raises as `read_bytes` does."""
    with _opened(path) as (descriptor, _):
        return os.pread(descriptor, limit, 0)


def list_names(directory: Path) -> list[str]:
    """The names in a directory, sorted; none where there is no such directory. Raises DamagedFile."""
    try:
        return sorted(entry.name for entry in os.scandir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise DamagedFile(directory, _os_reason(error)) from None
    except ValueError:  # as below
        return []


@contextmanager
def _opened(path: Path) -> Iterator[tuple[int, int]]:
    """A descriptor of the regular file `path`, and its size. Raises NotFound or DamagedFile, also within the block."""
    try:
        # Non-blocking, so that a pipe under the name of a record cannot hang the reader.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"{path}: no such file") from None
    except ValueError:
        # A name out of a file may hold what no path can: half a surrogate pair, or a NUL.
        raise NotFound(f"{path}: no such file, and there can be none of such a name") from None
    except OSError as error:
        raise UnreadFile(path, _os_reason(error)) from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise DamagedFile(path, "not a regular file")
        yield descriptor, status.st_size
    except OSError as error:
        raise UnreadFile(path, _os_reason(error)) from None
    finally:
        os.close(descriptor)


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
