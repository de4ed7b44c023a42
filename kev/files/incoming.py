"""A file that comes over a network, in pieces."""

import os
from pathlib import Path

from kev.files.flushing import flush_directory, write_all


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
            write_all(self._descriptor, data)
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
        flush_directory(self.path.parent)

    def abandon(self) -> None:
        """Remove what has arrived; nothing happens after `finish`."""
        if self._descriptor >= 0:
            self._close()
            self.part.unlink(missing_ok=True)

    def _close(self) -> None:
        os.close(self._descriptor)
        self._descriptor = -1
