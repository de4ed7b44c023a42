"""Tensors in safetensors files, read without torch: headers that are believed only when they fit the file exactly.

A header is a length in 8 bytes, little-endian, and JSON: name to type, shape and the span of bytes behind the header.
"""

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kev.errors import DamagedFile, NotFound
from kev.files import LFS_POINTER, LFS_REASON

if TYPE_CHECKING:
    import numpy

MAX_HEADER = 100_000_000
MAX_TENSORS = 200_000
BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E4M3FNUZ": 1, "F8_E5M2": 1, "F8_E5M2FNUZ": 1, "F8_E8M0": 1,
    "I16": 2, "U16": 2, "F16": 2, "BF16": 2, "I32": 4, "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8, "C64": 8,
}  # fmt: skip
FLOATS = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}
METADATA = "__metadata__"


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor: where its bytes lie in `path`."""

    path: Path
    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int

    def sha256(self) -> str:
        """Of its type, shape and bytes: the same wherever and under whatever name the tensor is stored."""
        digest = hashlib.sha256(f"{self.dtype}{self.shape}".encode())
        with self.path.open("rb") as stream:
            stream.seek(self.start)
            left = self.end - self.start
            while left:
                piece = stream.read(min(left, 1 << 20))
                if not piece:
                    raise DamagedFile(self.path, f"ends inside {self.name}")
                digest.update(piece)
                left -= len(piece)
        return digest.hexdigest()

    def values(self) -> "Iterator[numpy.ndarray[Any, Any]]":
        """Its values as float32 in pieces of at most 4 million; none for types that hold no plain floats."""
        import numpy

        size = BYTES[self.dtype]
        if self.dtype != "BF16" and self.dtype not in FLOATS:
            return
        with self.path.open("rb") as stream:
            stream.seek(self.start)
            left = self.end - self.start
            while left:
                data = stream.read(min(left, size << 22))
                if not data:
                    raise DamagedFile(self.path, f"ends inside {self.name}")
                left -= len(data)
                if self.dtype == "BF16":
                    # bfloat16 is the upper half of a float32.
                    yield (numpy.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
                else:
                    yield numpy.frombuffer(data, FLOATS[self.dtype]).astype("<f4")


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Every tensor of a safetensors file. Raises NotFound, or DamagedFile naming what does not fit."""
    try:
        with path.open("rb") as stream:
            size = path.stat().st_size
            beginning = stream.read(8)
            length = int.from_bytes(beginning, "little")
            if size < 8 or not 2 <= length <= min(MAX_HEADER, size - 8):
                raise DamagedFile(path, _foreign(beginning + stream.read(len(LFS_POINTER)), size))
            header = json.loads(stream.read(length))
    except FileNotFoundError:
        raise NotFound(f"{path}: no such file") from None
    except (ValueError, RecursionError):
        raise DamagedFile(path, "its header is not JSON") from None
    if not isinstance(header, dict) or len(header) > MAX_TENSORS:
        raise DamagedFile(path, "its header is no table of tensors")
    found = {name: _tensor(path, 8 + length, name, each) for name, each in header.items() if name != METADATA}
    end = 8 + length
    for tensor in sorted(found.values(), key=lambda tensor: (tensor.start, tensor.end)):
        if tensor.start != end:
            raise DamagedFile(path, f"{tensor.name} does not begin where the tensor before it ends")
        end = tensor.end
    if end != size:
        raise DamagedFile(path, f"{size:,} bytes where its header describes {end:,}: cut short, or still being written")
    return found


def _foreign(beginning: bytes, size: int) -> str:
    if beginning.startswith(LFS_POINTER):
        return LFS_REASON
    return f"{size:,} bytes that do not begin with the header of a safetensors file" if size else "empty"


def _tensor(path: Path, base: int, name: str, value: Any) -> Tensor:
    try:
        dtype, shape, (start, end) = value["dtype"], tuple(value["shape"]), value["data_offsets"]
        if not all(type(each) is int and 0 <= each < 1 << 62 for each in (*shape, start, end)):
            raise ValueError
        if end - start != math.prod(shape) * BYTES[dtype]:
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise DamagedFile(path, f"{name[:200]}: its type, shape and span do not fit each other") from None
    return Tensor(path, name, dtype, shape, base + start, base + end)
