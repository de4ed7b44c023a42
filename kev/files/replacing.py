"""Whole files and directories: put in place at once, so that no reader and no kill ever sees half of one."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

from kev.files.flushing import flush_directory, flush_file, write_all, writing


def write_atomic(path: Path, data: bytes) -> None:
    """Replace `path` by `data`, wholly or not at all. Raises OSError, with `path` untouched."""
    temporary = _write_sibling(path, data)
    try:
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush_directory(path.parent)


def write_through(path: Path, write: Callable[[Path], object]) -> None:
    """Replace `path`, wholly or not at all, by what `write` puts into the temporary file it is given.

    For content too large to be held in memory twice. Raises what `write` raises, with `path` untouched.
    """
    temporary = _write_sibling(path, b"")
    try:
        write(temporary)
        flush_file(temporary)
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush_directory(path.parent)


def create_exclusive(path: Path, data: bytes) -> None:
    """Create `path` holding `data`, wholly or not at all. Raises FileExistsError if anything is there already."""
    temporary = _write_sibling(path, data)
    try:
        # A hard link fails on an existing name and appears with its bytes complete; O_EXCL alone would
        # leave an empty file behind a kill between creation and write.
        os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    flush_directory(path.parent)


def move(source: Path, target: Path) -> None:
    """Give `source`, a file or a whole directory, the name `target`, at once; a file or an empty directory there goes.

    What `source` holds is flushed first, so that a complete name never stands for incomplete bytes.
    """
    for path in [source, *source.rglob("*")] if source.is_dir() else [source]:
        flush_file(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    source.replace(target)
    flush_directory(target.parent)


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


def make_directory(path: Path, *, private: bool = False) -> None:
    """Make a directory and those above it, as far as they are not there; a `private` one opens to its owner only."""
    path.mkdir(parents=True, exist_ok=True)
    if private:
        path.chmod(0o700)


def make_scratch(directory: Path) -> Path:
    """A new private directory under `directory`, for what is put together before it is moved to its place."""
    import tempfile

    directory.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=".scratch-", dir=directory))


def link(path: Path, target: Path) -> None:
    """Make `path` a symbolic link to `target`. Raises FileExistsError if anything is there already."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def _write_sibling(path: Path, data: bytes) -> Path:
    # Here, since it takes 5 ms to load and most processes only read.
    import tempfile

    path.parent.mkdir(parents=True, exist_ok=True)
    with writing(path):
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with writing(path):
            # mkstemp makes 0600; a colleague who only watches must be able to read what the owner wrote.
            os.fchmod(descriptor, 0o644)
            write_all(descriptor, data)
            os.fsync(descriptor)
    except BaseException:
        os.close(descriptor)
        Path(name).unlink(missing_ok=True)
        raise
    os.close(descriptor)
    return Path(name)
