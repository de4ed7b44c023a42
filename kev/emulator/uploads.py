"""Files that come from outside: what a client sends of one, and how the file is made of it."""

import os
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

COPY_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Upload:
    """A file of `size` bytes and the files that hold its blocks, in order.

    A block stands for `block_bytes` bytes of the file, the last one for what is left. The client sends none of the
    zeros at the end of a block, so what holds one may be shorter, and empty for a hole.
    """

    size: int
    block_bytes: int
    blocks: Sequence[Path]
    mode: int = 0
    """Its permissions, as the client names them; 0 where it names none. The owner may read and write it in any case."""

    @classmethod
    def of_one_piece(cls, path: Path, mode: int = 0) -> "Upload":
        size = path.stat().st_size
        return cls(size, max(size, 1), [path] if size else [], mode)

    def write(self, target: Path) -> None:
        """Make the file. Raises ValueError if the blocks are not those of a file of this size."""
        wanted = -(-self.size // self.block_bytes)
        if len(self.blocks) != wanted:
            raise ValueError(f"{self.size} bytes are {wanted} blocks, and {len(self.blocks)} were named")
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as stream:
            for number, block in enumerate(self.blocks):
                start = number * self.block_bytes
                room, held = min(self.block_bytes, self.size - start), block.stat().st_size
                if held > room:
                    raise ValueError(f"block {number} has {held} bytes where {room} are left for it")
                stream.seek(start)
                with block.open("rb") as source:
                    shutil.copyfileobj(source, stream, COPY_BYTES)
            stream.truncate(self.size)
            if self.mode:
                os.fchmod(stream.fileno(), stat.S_IMODE(self.mode) & 0o777 | 0o600)
