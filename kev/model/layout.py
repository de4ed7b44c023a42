"""Which files a checkpoint or a base consists of, decided by looking into them, and whether they are all there.

Directories hold left-overs: an index of another sharding, an older save, the configuration of an adapter that has been
merged. What is not used is said in a remark; where two readings are equally good, the directory is refused.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

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
    """An adapter on a base, or full weights; `weights` are its files in order of name.

    `remarks` say, a line each, which files lie there beside these and are not used.
    """

    kind: Literal["lora", "full"]
    weights: tuple[Path, ...]
    remarks: tuple[str, ...] = ()

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
    said = head.get("weights")
    layout = _found(directory, said)
    if layout.kind != said:
        raise DamagedFile(directory, f"its files are those of {layout.kind} weights, its {HEAD} speaks of {said}")
    for path in layout.weights:
        tensor_names(path)
    return layout


def full_weights(directory: Path) -> Layout:
    """The files of full weights in `directory`, none where there are none.

    Of two saves the one that has all tensors of the other and more is meant. An index some of whose files are missing
    is of another sharding if the single file has every tensor that it names. Raises DamagedFile for a file that is
    missing or torn, for one that lacks what the index puts there, and for two saves of the same tensors.
    """
    single, index = directory / WEIGHTS, directory / INDEX
    table = _indexed(index) if index.is_file() else {}
    shards = tuple(directory / name for name in sorted(set(table.values())))
    if not single.is_file():
        _check_shards(shards, table)
        return Layout("full", shards)
    if shards in ((), (single,)):
        _check_shards(shards, table)
        return Layout("full", (single,))
    whole = tensor_names(single)
    missing = next((path for path in shards if not path.is_file()), None)
    if missing is not None:
        if lacking := min(table.keys() - whole, default=None):
            raise DamagedFile(missing, f"missing, though {INDEX} names it, and {WEIGHTS} lacks {lacking}")
        said = f"{INDEX} is of another sharding and is ignored; every tensor is in {WEIGHTS}"
        return Layout("full", (single,), (f"{directory}: {said}",))
    return _newer(directory, whole, shards, _check_shards(shards, table))


def _newer(directory: Path, whole: frozenset[str], shards: tuple[Path, ...], sharded: frozenset[str]) -> Layout:
    """Two saves in one directory: the one that has more."""
    if whole < sharded:
        names = ", ".join(path.name for path in shards)
        said = f"{WEIGHTS} is another save with fewer tensors and is ignored; {names} are used"
        return Layout("full", shards, (f"{directory}: {said}",))
    if sharded < whole:
        said = f"the files of {INDEX} are another save with fewer tensors and are ignored; {WEIGHTS} is used"
        return Layout("full", (directory / WEIGHTS,), (f"{directory}: {said}",))
    raise DamagedFile(directory, f"holds two saves, {WEIGHTS} and {shards[0].name}; remove what is not meant")


def _check_shards(shards: tuple[Path, ...], table: Mapping[str, str]) -> frozenset[str]:
    """The tensors in the files of an index, each of which has what the index says."""
    found: frozenset[str] = frozenset()
    for path in shards:
        if not path.is_file():
            raise DamagedFile(path, f"missing, though {INDEX} names it")
        names = tensor_names(path)
        if lacking := min((name for name, place in table.items() if place == path.name and name not in names),
                          default=None):  # fmt: skip
            raise DamagedFile(path, f"lacks {lacking}, which {INDEX} puts there")
        found |= names
    return found


def _indexed(index: Path) -> dict[str, str]:
    """Tensor to file, as the index says."""
    content = files.read_json(index)
    table = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(table, dict) or not table or not all(isinstance(name, str) for name in table.values()):
        raise DamagedFile(index, "does not say which file holds which weights")
    strange = next((name for name in table.values() if Path(name).name != name), None)
    if strange is not None:
        raise DamagedFile(index, f"names a file outside its directory: {strange}")
    return table


def _found(directory: Path, said: Any) -> Layout:
    adapter = directory / ADAPTER
    described = (directory / ADAPTER_CONFIG).is_file()
    if described and adapter.is_file() and said != "full":
        return Layout("lora", (adapter,))
    layout = full_weights(directory) if (directory / CONFIG).is_file() else Layout("full", ())
    if layout.weights:
        return beside_adapter(directory, layout) if described else layout
    if described and adapter.is_file():
        return Layout("lora", (adapter,))
    if described:
        raise DamagedFile(adapter, f"missing, though {ADAPTER_CONFIG} is there")
    raise DamagedFile(directory, f"holds neither an adapter ({ADAPTER}) nor full weights ({CONFIG}, {WEIGHTS})")


def beside_adapter(directory: Path, layout: Layout) -> Layout:
    """Full weights beside which an adapter's files were left over, with a remark that says so."""
    names = " and ".join(name for name in (ADAPTER_CONFIG, ADAPTER) if (directory / name).is_file())
    remark = f"{directory}: {names} left beside full weights, which are used without it"
    return replace(layout, remarks=(*layout.remarks, remark))


def tensor_names(path: Path) -> frozenset[str]:
    """The tensors that a safetensors file holds, by its header alone.

    Raises DamagedFile where header and length disagree, before anything maps the file.
    """
    size = path.stat().st_size
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if size < 8 or length > min(size, MAX_HEADER):
            raise DamagedFile(path, "not a safetensors file, or cut short in its header")
        try:
            header = json.loads(stream.read(length))
            header.pop("__metadata__", None)
            end = max((entry["data_offsets"][1] for entry in header.values()), default=0)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
            raise DamagedFile(path, "its header is not that of a safetensors file") from None
    if size != 8 + length + end:
        raise DamagedFile(path, f"{size:,} bytes where its header asks for {8 + length + end:,}")
    return frozenset(header)


def _file_sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
