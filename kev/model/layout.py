"""Which files a checkpoint directory consists of, and whether they are all there."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kev import files
from kev.checkpoint import HEAD, Head
from kev.errors import DamagedFile

ADAPTER_CONFIG = "adapter_config.json"
ADAPTER = "adapter_model.safetensors"
CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
MAX_HEADER = 100_000_000


@dataclass(frozen=True, slots=True)
class Layout:
    """An adapter on a base, or full weights; `weights` are its files in order of name."""

    kind: Literal["lora", "full"]
    weights: tuple[Path, ...]

    @property
    def sha256(self) -> str:
        """The adapter file's hash, or that of the lines `name:hash` of all shards."""
        return _file_sha256(self.weights[0]) if self.kind == "lora" else weights_sha256(self.weights)


def weights_sha256(paths: Sequence[Path]) -> str:
    """The hash of full weights in these files: that of the lines `name:hash`, in order of name."""
    lines = [f"{path.name}:{_file_sha256(path)}" for path in sorted(paths)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def find_layout(directory: Path, head: Head) -> Layout:
    """The layout of the checkpoint in `directory`, whose head is `head`.

    Raises DamagedFile where files are missing, torn, or not those that the head speaks of.
    """
    layout = _found(directory)
    said = head.get("weights")
    if layout.kind != said:
        raise DamagedFile(directory, f"its files are those of {layout.kind} weights, its {HEAD} speaks of {said}")
    for path in layout.weights:
        check_whole(path)
    return layout


def find_weights(directory: Path) -> tuple[Path, ...]:
    """The files of full weights in `directory`, in order of name; none where there are none.

    Raises DamagedFile for a shard that the index names and that is not there, and for two saves in one directory. An
    index none of whose shards is there is left over from an older save beside a single file, and does not count.
    """
    single, index = directory / WEIGHTS, directory / INDEX
    shards = _indexed(index) if index.is_file() else ()
    there = [path for path in shards if path.is_file()]
    if single.is_file():
        if there and there != [single]:
            raise DamagedFile(directory, f"holds two saves, {WEIGHTS} and {there[0].name}; remove what is not meant")
        return (single,)
    if len(there) < len(shards):
        missing = next(path for path in shards if path not in there)
        raise DamagedFile(missing, f"missing, though {INDEX} names it")
    return shards


def _indexed(index: Path) -> tuple[Path, ...]:
    content = files.read_json(index)
    table = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(table, dict) or not table or not all(isinstance(name, str) for name in table.values()):
        raise DamagedFile(index, "does not say which file holds which weights")
    names = sorted(set(table.values()))
    strange = next((name for name in names if Path(name).name != name), None)
    if strange is not None:
        raise DamagedFile(index, f"names a file outside its directory: {strange}")
    return tuple(index.parent / name for name in names)


def _found(directory: Path) -> Layout:
    adapter = directory / ADAPTER
    described = (directory / ADAPTER_CONFIG).is_file()
    if described and adapter.is_file():
        return Layout("lora", (adapter,))
    weights = find_weights(directory) if (directory / CONFIG).is_file() else ()
    if weights:
        return Layout("full", weights)
    if described:
        raise DamagedFile(adapter, f"missing, though {ADAPTER_CONFIG} is there")
    raise DamagedFile(directory, f"holds neither an adapter ({ADAPTER}) nor full weights ({CONFIG}, {WEIGHTS})")


def check_whole(path: Path) -> None:
    """Refuse a safetensors file whose header and length disagree, before anything maps it."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if size < 8 or length > min(size, MAX_HEADER):
            raise DamagedFile(path, "not a safetensors file, or cut short in its header")
        try:
            header = json.loads(stream.read(length))
            end = max((entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"), default=0)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
            raise DamagedFile(path, "its header is not that of a safetensors file") from None
    if size != 8 + length + end:
        raise DamagedFile(path, f"{size:,} bytes where its header asks for {8 + length + end:,}")


def _file_sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
