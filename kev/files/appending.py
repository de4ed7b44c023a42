"""Files that grow at their end: lines that are whole or not there, and the output of processes."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kev.files.flushing import write_all, writing


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
            with writing(path):
                write_all(descriptor, data)
                os.fsync(descriptor)
        except OSError:
            with suppress(OSError):
                os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)


@contextmanager
def open_log(path: Path) -> Iterator[int]:
    """A descriptor that appends to `path`, for the output of a process. What is there stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        yield descriptor
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
