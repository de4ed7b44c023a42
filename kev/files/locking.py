"""Advisory locks on files: one holder, who says who it is, and is forgotten the moment it dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kev.errors import LockHeld
from kev.files.flushing import writing


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
        with writing(path):
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
