"""Opening what an agent names, inside its workspace and nowhere else.

Every component is opened from the one before it and no link is followed, so a path cannot lead out, nor be turned
while it is walked.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from kev.autorl.rejection import Rejected

MAX_PATH = 4096
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def inside(workspace: Path, model_path: str) -> PurePosixPath:
    """`model_path` relative to the workspace, by its text alone. Raises Rejected `bad_path` or `path_outside`."""
    if not model_path or len(model_path.encode(errors="replace")) > MAX_PATH:
        raise Rejected("bad_path", f"model_path: a path of 1 to {MAX_PATH} bytes")
    try:
        model_path.encode()
    except UnicodeEncodeError:
        raise Rejected("bad_path", "model_path: holds half of a surrogate pair") from None
    if "\0" in model_path:
        raise Rejected("bad_path", "model_path: holds a NUL")
    path = PurePosixPath(model_path)
    if ".." in path.parts:
        raise Rejected("path_outside", "model_path: '..' is not followed; name a directory in the workspace")
    if path.is_absolute():
        for root in (workspace.absolute(), workspace.resolve()):
            if path.is_relative_to(root):
                path = path.relative_to(root)
                break
        else:
            raise Rejected("path_outside", "model_path: outside the workspace")
    if not path.parts:
        raise Rejected("bad_path", "model_path: the workspace itself; name a model's directory in it")
    return path


@contextmanager
def opened(workspace: Path, path: PurePosixPath) -> Iterator[int]:
    """A descriptor of the directory `path` of the workspace. Raises Rejected `missing_model`, `link` or `bad_path`."""
    descriptor = os.open(workspace, _DIRECTORY)
    try:
        for part in path.parts:
            try:
                below = os.open(part, _DIRECTORY, dir_fd=descriptor)
            except OSError as error:
                raise _rejection(error, descriptor, part, path) from None
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def opened_file(directory: int, name: str) -> Iterator[int]:
    """A descriptor of a regular file. Raises Rejected `link` for a link, `bad_path` for whatever else is no file."""
    try:
        descriptor = os.open(name, _FILE, dir_fd=directory)
    except OSError as error:
        raise _rejection(error, directory, name, PurePosixPath(name)) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Rejected("bad_path", f"{name}: not a regular file")
        yield descriptor
    finally:
        os.close(descriptor)


def _rejection(error: OSError, directory: int, part: str, path: PurePosixPath) -> Rejected:
    if error.errno == errno.ENOENT:
        return Rejected("missing_model", f"{path}: no such directory in the workspace")
    if error.errno == errno.ELOOP or (error.errno == errno.ENOTDIR and _is_link(directory, part)):
        return Rejected("link", f"{part}: a link, which is not followed; copy the files into the workspace")
    if error.errno == errno.ENOTDIR:
        return Rejected("missing_model", f"{path}: not a directory")
    return Rejected("bad_path", f"{path}: cannot be opened ({error.strerror or type(error).__name__})")


def _is_link(directory: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except OSError:
        return False
