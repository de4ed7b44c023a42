"""A log of any size, read from its end in flat memory.

Nothing is indexed in advance. The file is seen through blocks of `BLOCK` bytes, a few of which are kept; a line is
addressed by the byte it starts at, and its neighbours are found by looking for newlines around it. So a terabyte
opens as fast as a kilobyte, and what is not known (line numbers, until the file has been counted) is said to be.

A stretch of more than a block without a newline is broken at block borders into pieces, each shown as a line of
its own and marked as a continuation: no single line can make a step slow or a row large.
"""

import os
import stat
from array import array
from collections import OrderedDict
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from kev.errors import DamagedFile, NotFound
from kev.text import visible_bytes

BLOCK = 256 * 1024
KEPT_BLOCKS = 8
"""2 MiB: the page in view, the one before it, and a search passing by."""

SHOWN_HEAD, SHOWN_TAIL = 3000, 1000
"""Bytes shown of a line too long to show whole. The tail matters: a progress bar without newlines ends with now."""

PROBE = 64
"""Bytes compared at the head and at the old end, to tell an appended file from one rewritten in place."""


class Change(StrEnum):
    """What became of the file since it was last looked at."""

    NONE = "none"
    GREW = "grew"
    TRUNCATED = "truncated"
    """Cut back, or rewritten in place: what was read before is no longer there."""
    REPLACED = "replaced"
    """Another file stands under the name, as after a rotation; it has been opened."""
    GONE = "gone"
    """Nothing stands under the name; what was open can still be read."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line, or one piece of an over-long line. `text` is safe to show on a terminal.

    `start` and `end` are byte offsets, the newline included; `hidden` counts bytes left out of the middle of `text`.
    """

    start: int
    end: int
    text: str
    hidden: int = 0
    continued: bool = False
    """True for a piece that does not begin its line."""
    complete: bool = True
    """False for a last line whose newline has not been written yet."""


class LogFile:
    """An open log. Not thread-safe: one thread at a time. Raises DamagedFile where the system refuses a read."""

    def __init__(self, path: Path) -> None:
        """Open `path`. Raises NotFound if nothing is there, DamagedFile if it is no readable regular file."""
        self.path = path
        self._blocks: OrderedDict[int, bytes] = OrderedDict()
        self._counts = array("Q", [0])
        """Newlines before block k, for as many blocks as have been counted."""
        self._descriptor = -1
        self._identity = (0, 0)
        self._modified = 0
        self._size = 0
        self._seen = b""
        """The bytes at the head and at the end, as of the last look."""
        self._open()

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @property
    def size(self) -> int:
        """Bytes, as of the last `check`; nothing behind them is read."""
        return self._size

    # ------------------------------------------------------------------------------------------------ following

    def check(self) -> Change:
        """Look whether the file changed, and take in what did. Reads nothing if nothing did."""
        try:
            named = self.path.stat()
        except OSError:
            return Change.GONE
        if not stat.S_ISREG(named.st_mode):
            return Change.GONE
        if (named.st_dev, named.st_ino) != self._identity:
            self.close()
            try:
                self._open()
            except (NotFound, DamagedFile):
                return Change.GONE
            return Change.REPLACED
        if named.st_size == self._size and named.st_mtime_ns == self._modified:
            return Change.NONE
        self._modified = named.st_mtime_ns
        if named.st_size < self._size or self._fingerprint(self._size) != self._seen:
            self._take_in(named.st_size, forget=True)
            return Change.TRUNCATED
        if named.st_size == self._size:
            return Change.NONE
        self._take_in(named.st_size)
        return Change.GREW

    def _open(self) -> None:
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except (FileNotFoundError, NotADirectoryError):
            raise NotFound(f"{self.path}: no such log") from None
        except OSError as error:
            raise DamagedFile(self.path, f"cannot be read ({error.strerror})") from None
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            raise DamagedFile(self.path, "not a regular file")
        self._descriptor = descriptor
        self._identity = (status.st_dev, status.st_ino)
        self._modified = status.st_mtime_ns
        self._take_in(status.st_size, forget=True)

    def _take_in(self, size: int, *, forget: bool = False) -> None:
        if forget:
            self._blocks.clear()
            del self._counts[1:]
        else:
            # Only the block that held the old end changed; whether it was counted as a whole is kept, for a
            # block is counted once it is full and not before.
            self._blocks.pop(self._size // BLOCK, None)
        self._size = size
        self._seen = self._fingerprint(size)

    def _fingerprint(self, size: int) -> bytes:
        return self._read(0, min(PROBE, size)) + self._read(max(0, size - PROBE), min(PROBE, size))

    # ---------------------------------------------------------------------------------------------------- lines

    def line_at(self, offset: int) -> LogLine | None:
        """The line that holds byte `offset`, or None outside the file."""
        if not 0 <= offset < self._size:
            return None
        start = self.start_of(offset)
        return self._line(start, self.end_of(offset))

    def before(self, offset: int, count: int) -> list[LogLine]:
        """Up to `count` lines that end at or before `offset`, which must be the start of a line or the file's end."""
        lines: list[LogLine] = []
        while offset > 0 and len(lines) < count:
            start = self.start_of(offset - 1)
            lines.append(self._line(start, offset))
            offset = start
        lines.reverse()
        return lines

    def after(self, offset: int, count: int) -> list[LogLine]:
        """Up to `count` lines from `offset` on, which must be the start of a line."""
        lines: list[LogLine] = []
        while offset < self._size and len(lines) < count:
            end = self.end_of(offset)
            lines.append(self._line(offset, end))
            offset = end
        return lines

    def start_of(self, offset: int) -> int:
        """Where the line, or the piece of one, that holds byte `offset` starts."""
        index, position = divmod(offset, BLOCK)
        while True:
            found = self._block(index).rfind(b"\n", 0, position)
            if found >= 0:
                return index * BLOCK + found + 1
            if index == 0:
                return 0
            index -= 1
            block = self._block(index)
            if b"\n" not in block:
                return (index + 1) * BLOCK
            position = len(block)

    def end_of(self, offset: int) -> int:
        """Where the line, or the piece of one, that holds byte `offset` ends; its newline is included."""
        index, position = divmod(offset, BLOCK)
        while True:
            block = self._block(index)
            found = block.find(b"\n", position)
            if found >= 0:
                return index * BLOCK + found + 1
            end = min(self._size, (index + 1) * BLOCK)
            if end == self._size or b"\n" not in block:
                return end
            index, position = index + 1, 0

    def _line(self, start: int, end: int) -> LogLine:
        length = end - start
        if length <= SHOWN_HEAD + SHOWN_TAIL:
            data, hidden = self._read(start, length), 0
            text = visible_bytes(_without_line_end(data))
        else:
            head, tail = _whole_characters(self._read(start, SHOWN_HEAD)), self._read(end - SHOWN_TAIL, SHOWN_TAIL)
            hidden = length - len(head) - len(tail)
            data = tail
            text = f"{visible_bytes(head)} [{hidden:,} bytes not shown] {visible_bytes(_without_line_end(tail))}"
        continued = start > 0 and self._read(start - 1, 1) != b"\n"
        return LogLine(start, end, text, hidden, continued, complete=data.endswith(b"\n") or end < self._size)

    def text_of(self, start: int, end: int) -> bytes:
        """The raw bytes between two offsets, for searching; never for showing."""
        return self._read(start, max(0, min(end, self._size) - start))

    # ----------------------------------------------------------------------------------------------------- counts

    @property
    def counted(self) -> bool:
        """Whether every full block has been counted, so that every line has a number."""
        return len(self._counts) > self._size // BLOCK

    def count_block(self) -> bool:
        """Count the newlines of one more block. Returns False where there is none left to count."""
        if self.counted:
            return False
        index = len(self._counts) - 1
        # Read past the kept blocks: counting a large file must not push the page in view out.
        self._counts.append(self._counts[index] + self._read(index * BLOCK, BLOCK).count(b"\n"))
        return True

    def number_of(self, start: int) -> int | None:
        """The number, from 1, of the line that starts at `start`; None while the blocks before it are uncounted."""
        index, position = divmod(start, BLOCK)
        if index >= len(self._counts):
            return None
        return self._counts[index] + self._block(index).count(b"\n", 0, position) + 1

    # ----------------------------------------------------------------------------------------------------- blocks

    def _block(self, index: int) -> bytes:
        if index in self._blocks:
            self._blocks.move_to_end(index)
            return self._blocks[index]
        start = index * BLOCK
        block = self._read(start, max(0, min(BLOCK, self._size - start)))
        self._blocks[index] = block
        while len(self._blocks) > KEPT_BLOCKS:
            self._blocks.popitem(last=False)
        return block

    def _read(self, start: int, length: int) -> bytes:
        try:
            return os.pread(self._descriptor, length, start)
        except OSError as error:
            raise DamagedFile(self.path, f"cannot be read ({error.strerror})") from None


def _without_line_end(data: bytes) -> bytes:
    return data.removesuffix(b"\n").removesuffix(b"\r")


def _whole_characters(data: bytes) -> bytes:
    """`data` without a UTF-8 character that was cut at its end, which would show as bytes that are not in the log."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            wanted = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data if back >= wanted else data[:-back]
        if byte < 0x80:
            break
    return data
