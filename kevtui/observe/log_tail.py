"""Follows a growing file of lines from its end, in bounded memory, reading only what is new."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kev.errors import DamagedFile, NotFound
from kevtui.observe.lister import LEADS_NOWHERE

FIRST_READ = 128 * 1024
"""What is read of a file met for the first time: its end."""

MOST_AT_ONCE = 2 * 1024 * 1024
"""What is read of a growing file in one go; the rest follows in the next."""

LONGEST_LINE = 16 * 1024
"""A longer line is cut to this: no line that anything is read from comes near it."""

_ANCHOR = 64


@dataclass(frozen=True, slots=True)
class Tail:
    """What one look at the file brought.

    `first_line` is the number of `lines[0]`, or None where the beginning of the file was skipped. `restarted` is true
    where everything brought before is void: the file was cut, replaced, or rewritten in place.
    """

    lines: tuple[bytes, ...] = ()
    partial: bytes = b""
    """What stands after the last line end: a line being written, or the end of a finished file that has none."""
    first_line: int | None = None
    restarted: bool = False
    more: bool = False


class Tailing(Protocol):
    """Brings the lines of one file, each once."""

    def read(self) -> Tail:
        """The new lines. Raises NotFound or DamagedFile."""
        ...


class OpenTail(Protocol):
    """Makes what follows a file; `LogTail` is one."""

    def __call__(self, path: Path, *, carriage_returns: bool = ..., first_read: int = ...) -> Tailing: ...


class LogTail:
    """Reads the whole lines appended to `path` since the last look; raw bytes, without their line ends.

    Lines end at a newline. With `carriage_returns` they also end at a carriage return, as a progress bar's do.
    """

    def __init__(self, path: Path, *, carriage_returns: bool = True, first_read: int = FIRST_READ) -> None:
        self._path = path
        self._carriage_returns = carriage_returns
        self._first_read = first_read
        self._forget()

    def read(self) -> Tail:
        """The new lines. Raises NotFound, or DamagedFile where the file is no regular file or may not be read."""
        descriptor = self._open()
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise DamagedFile(self._path, "not a regular file")
            met = self._inode is not None
            restarted = met and not self._continues(descriptor, status)
            if restarted:
                self._forget()
            if self._inode is None:
                self._begin(descriptor, status)
            return self._read_on(descriptor, status.st_size, restarted=restarted)
        except OSError as error:
            raise DamagedFile(self._path, f"cannot be read ({error.strerror})") from None
        finally:
            os.close(descriptor)

    def _open(self) -> int:
        try:
            return os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except (FileNotFoundError, NotADirectoryError):
            if self._path.is_symlink():
                raise DamagedFile(self._path, LEADS_NOWHERE) from None
            raise NotFound(f"{self._path}: no such file") from None
        except PermissionError:
            raise DamagedFile(self._path, "may not be read (permission denied)") from None
        except OSError as error:
            raise DamagedFile(self._path, f"cannot be read ({error.strerror})") from None

    def _forget(self) -> None:
        self._inode: int | None = None
        self._offset = 0
        self._anchor = b""
        self._partial = b""
        self._skip_first = False
        self._line: int | None = 1

    def _continues(self, descriptor: int, status: os.stat_result) -> bool:
        if status.st_ino != self._inode or status.st_size < self._offset:
            return False
        # A file that was emptied and has grown past the old length again looks appended to; its bytes tell.
        return os.pread(descriptor, len(self._anchor), self._offset - len(self._anchor)) == self._anchor

    def _begin(self, descriptor: int, status: os.stat_result) -> None:
        self._inode = status.st_ino
        self._offset = max(0, status.st_size - self._first_read)
        if self._offset:
            self._line = None
            self._skip_first = os.pread(descriptor, 1, self._offset - 1) != b"\n"

    def _read_on(self, descriptor: int, size: int, *, restarted: bool) -> Tail:
        data = os.pread(descriptor, min(size - self._offset, MOST_AT_ONCE), self._offset)
        self._offset += len(data)
        self._anchor = (self._anchor + data)[-_ANCHOR:]
        first = self._line
        lines = self._split(data)
        if self._line is not None:
            self._line += len(lines)
        return Tail(tuple(lines), self._partial, first, restarted, more=self._offset < size)

    def _split(self, data: bytes) -> list[bytes]:
        if self._carriage_returns:
            data = data.replace(b"\r", b"\n")
        head, newline, rest = data.partition(b"\n")
        self._keep(head)
        if not newline:
            return []
        lines = [self._partial]
        *whole, self._partial = rest.split(b"\n")
        lines += [line[:LONGEST_LINE] for line in whole]
        self._partial = self._partial[:LONGEST_LINE]
        if self._skip_first:
            self._skip_first = False
            del lines[0]
        return lines

    def _keep(self, more: bytes) -> None:
        self._partial += more[: LONGEST_LINE - len(self._partial)]
