"""Which files a checkpoint or a base consists of, decided by looking into them, and whether they are all there.

Directories hold left-overs: an index of another sharding, an older save, the configuration of an adapter that has been
merged. What is not used is said in a remark; where two readings are equally good, the directory is refused.
"""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from kev import files
from kev.checkpoint import HEAD, Head
from kev.errors import DamagedFile
from kev.model.tensors import read_tensors

ADAPTER_CONFIG = "adapter_config.json"
ADAPTER = "adapter_model.safetensors"
CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
SUFFIX = ".safetensors"
NAMES_NOTHING = "does not say which file holds which weights"
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
USUAL = ("pytorch_model", "adapter_model", "model", "consolidated")
"""What the names of pickled weights begin with; other pickles are states of an optimizer and the like."""


@dataclass(frozen=True, slots=True)
class Layout:
    """An adapter on a base, or full weights; `weights` are its files in order of name.

    `left_over` says, a line each, which files lie there beside these and are not used.
    """

    kind: Literal["lora", "full"]
    weights: tuple[Path, ...]
    left_over: tuple[str, ...] = ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """`left_over`, with the directory named."""
        return tuple(f"{self.weights[0].parent}: {said}" for said in self.left_over)

    @property
    def sha256(self) -> str:
        """The adapter file's hash, or that of the lines `name:hash` of all shards."""
        return _file_sha256(self.weights[0]) if self.kind == "lora" else weights_sha256(self.weights)


def read_config_file(path: Path, *, limit: int = files.MAX_JSON_BYTES) -> Any:
    """The value of a configuration in a model's directory. Raises NotFound or DamagedFile.

    Infinity is taken as Python's own writer leaves it: some architectures have it among their limits.
    """
    data = files.read_bytes(path, limit=limit)
    try:
        return files.parse_json(data)
    except ValueError as error:
        try:
            return json.loads(data.removeprefix(files.UTF8_BOM))
        except (ValueError, RecursionError):
            raise DamagedFile(path, str(error), recoverable=files.find_recoverable(path)) from None


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
    if index.is_file() and not table and not single.is_file():
        raise DamagedFile(index, NAMES_NOTHING)
    if not single.is_file() or shards == (single,):
        _sharded(shards, table)
        return Layout("full", shards)
    whole = frozenset(read_tensors(single))
    if not shards:
        return Layout("full", (single,))
    missing = next((path for path in shards if not path.is_file()), None)
    if missing is None:
        return _fuller(single, whole, shards, _sharded(shards, table))
    if lacking := min(table.keys() - whole, default=None):
        raise DamagedFile(missing, f"missing, though {INDEX} names it, and {WEIGHTS} lacks {lacking}")
    said = f"{INDEX} is of another sharding and is ignored; every tensor is in {WEIGHTS}"
    return Layout("full", (single,), (said,))


def beside_adapter(layout: Layout) -> Layout:
    """Full weights beside which an adapter's files were left over, with a line that says so."""
    directory = layout.weights[0].parent
    names = " and ".join(name for name in (ADAPTER_CONFIG, ADAPTER) if (directory / name).is_file())
    return replace(layout, left_over=(*layout.left_over, f"{names} left beside whole weights, used without it"))


def why_none(names: Collection[str]) -> str:
    """Why none of a directory's files, called `names`, counts as weights."""
    if stray := min((name for name in names if name.endswith(SUFFIX) and name != ADAPTER), default=None):
        return f"{stray} without {INDEX}, and no {WEIGHTS}: save with save_pretrained"
    if pickles := [name for name in names if name.endswith(PICKLES) and name != HEAD]:
        first = min(pickles, key=lambda name: (not name.startswith(USUAL), name))
        return f"{first}: pickled weights are never opened; save with safetensors (safe_serialization=True)"
    return f"no {WEIGHTS} and no {INDEX}: save the model with save_pretrained"


def _found(directory: Path, said: Any) -> Layout:
    adapter = directory / ADAPTER
    described = (directory / ADAPTER_CONFIG).is_file()
    if described and adapter.is_file() and said != "full":
        read_tensors(adapter)
        return Layout("lora", (adapter,))
    layout = full_weights(directory)
    if layout.weights:
        if not (directory / CONFIG).is_file():
            raise DamagedFile(directory / CONFIG, f"missing, though {layout.weights[0].name} is there")
        return beside_adapter(layout) if described else layout
    if described and adapter.is_file():
        return Layout("lora", (adapter,))
    if described:
        raise DamagedFile(adapter, f"missing, though {ADAPTER_CONFIG} is there")
    reason = why_none([path.name for path in directory.iterdir()])
    raise DamagedFile(directory, f"holds neither an adapter ({ADAPTER}) nor full weights: {reason}")


def _fuller(single: Path, whole: frozenset[str], shards: tuple[Path, ...], sharded: frozenset[str]) -> Layout:
    """Of two saves in one directory the one that has more."""
    if whole < sharded:
        names = ", ".join(path.name for path in shards)
        said = f"{WEIGHTS} is another save with fewer tensors and is ignored; {names} are used"
        return Layout("full", shards, (said,))
    if sharded < whole:
        said = f"the files of {INDEX} are another save with fewer tensors and are ignored; {WEIGHTS} is used"
        return Layout("full", (single,), (said,))
    raise DamagedFile(single, f"one of two saves, the other in {shards[0].name}; remove the one that is not meant")


def _sharded(shards: tuple[Path, ...], table: Mapping[str, str]) -> frozenset[str]:
    """The tensors in the files of an index, each of which has what the index says and nothing of another."""
    found: set[str] = set()
    for path in shards:
        if not path.is_file():
            raise DamagedFile(path, f"missing, though {INDEX} names it; was the save cut off?")
        names = read_tensors(path).keys()
        if lacking := min((name for name, place in table.items() if place == path.name and name not in names),
                          default=None):  # fmt: skip
            raise DamagedFile(path, f"lacks {lacking}, which {INDEX} puts there")
        if twice := min(found & names, default=None):
            raise DamagedFile(path, f"{twice} is in another file too")
        found |= names
    return frozenset(found)


def _indexed(index: Path) -> dict[str, str]:
    """Tensor to file, as the index says."""
    content = files.read_json(index)
    table = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(table, dict):
        raise DamagedFile(index, NAMES_NOTHING)
    for name in table.values():
        if not isinstance(name, str) or Path(name).name != name or not name.endswith(SUFFIX):
            raise DamagedFile(index, f"{name!r:.100} is no safetensors file of this directory")
    return table


def _file_sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
