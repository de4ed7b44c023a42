"""Bytes all the way down to the device."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Put the name of `path` into every OSError of the block: those of a descriptor have none, or a temporary one."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data`, in as many pieces as the device takes it. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def flush_file(path: Path) -> None:
    """Return once what `path` holds is on the device. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def flush_directory(directory: Path) -> None:
    """Return once the names in `directory` are on the device, where the file system can say so."""
    # Without it the rename itself can be lost with the power; some network volumes refuse it, harmlessly.
    with suppress(OSError):
        flush_file(directory)
