"""Which files of a model directory hold its weights, decided by looking into them.

Directories hold left-overs: an index of another sharding, an older save, the configuration of an adapter that has
been merged. Each is told from what it resembles, and what was decided is said.
"""

from dataclasses import dataclass
from pathlib import Path

from kev import files
from kev.autorl.rejection import Rejected
from kev.autorl.tensors import Tensor, read_tensors
from kev.errors import DamagedFile, NotFound
from kev.model.layout import ADAPTER_CONFIG, INDEX, WEIGHTS

PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
MERGE = "merge it into its base (merge_and_unload) and save the whole model"


@dataclass(frozen=True, slots=True)
class Weights:
    """The tensors that a directory stands for, the files they are in, and what was decided on the way."""

    tensors: dict[str, Tensor]
    names: tuple[str, ...]
    remarks: tuple[str, ...] = ()


def find_weights(directory: Path, there: set[str] | None = None) -> Weights:
    """The weights in `directory`; `there` are the names it had where it came from, left-overs included.

    Raises Rejected: `adapter`, `no_safetensors` or `broken_weights`, naming the file.
    """
    if there is None:
        there = {each.name for each in directory.iterdir()}
    single = WEIGHTS in there
    shards = _indexed(directory) if INDEX in there else {}
    if not single and not shards:
        raise _nothing(there)
    remarks = []
    if shards:
        missing = sorted({name for name in shards.values() if name not in there})
        if missing and not single:
            raise Rejected("broken_weights", f"{missing[0]}: missing, though {INDEX} names it; was the save cut off?")
        if missing:
            found = _read(directory, [WEIGHTS])
            if absent := sorted(shards.keys() - found.keys()):
                raise Rejected("broken_weights", f"{missing[0]}: missing, and {WEIGHTS} lacks {absent[0]} of {INDEX}")
            remarks.append(f"{INDEX} is of another sharding and is ignored; every tensor is in {WEIGHTS}")
            names = [WEIGHTS]
        else:
            names = sorted(set(shards.values()))
            found = _read(directory, names)
            if absent := sorted(shards.keys() - found.keys()):
                raise Rejected("broken_weights", f"{shards[absent[0]]}: lacks {absent[0]}, which {INDEX} puts there")
            if single and WEIGHTS not in names:
                names, found, remark = _choose(directory, names, found)
                remarks.append(remark)
    else:
        names, found = [WEIGHTS], _read(directory, [WEIGHTS])
    if adapted := next((name for name in found if "lora_" in name or name.startswith("base_model.")), None):
        raise Rejected("adapter", f"{adapted}: weights of an adapter that is not merged; {MERGE}")
    if ADAPTER_CONFIG in there:
        remarks.append(f"{ADAPTER_CONFIG} lies beside whole weights and is ignored")
    return Weights(found, tuple(names), tuple(remarks))


def _choose(directory: Path, names: list[str], sharded: dict[str, Tensor]) -> tuple[list[str], dict[str, Tensor], str]:
    """Two saves in one directory: the one that has more, or neither."""
    whole = _read(directory, [WEIGHTS])
    if whole.keys() < sharded.keys():
        return names, sharded, f"{WEIGHTS} is an older save with fewer tensors; {', '.join(names)} are used"
    if whole.keys() > sharded.keys():
        return [WEIGHTS], whole, f"the shards of {INDEX} are an older save with fewer tensors; {WEIGHTS} is used"
    raise Rejected("broken_weights", f"two saves, {WEIGHTS} and {names[0]}: remove the one that is not meant")


def _nothing(there: set[str]) -> Rejected:
    """Why there is nothing to grade."""
    if ADAPTER_CONFIG in there:
        return Rejected("adapter", f"{ADAPTER_CONFIG} without whole weights: an adapter (LoRA) alone; {MERGE}")
    if pickled := sorted(name for name in there if name.endswith(PICKLES)):
        return Rejected(
            "no_safetensors",
            f"{pickled[0]}: pickled weights are never opened; save with safetensors (safe_serialization=True)",
        )
    if shards := sorted(name for name in there if name.endswith(".safetensors")):
        return Rejected("no_safetensors", f"{shards[0]} without {INDEX}, and no {WEIGHTS}: save with save_pretrained")
    return Rejected("no_safetensors", f"no {WEIGHTS} and no {INDEX}: save the model with save_pretrained")


def _indexed(directory: Path) -> dict[str, str]:
    """Tensor to file, as the index says; {} for an index that names nothing."""
    try:
        content = files.read_json(directory / INDEX)
    except (DamagedFile, NotFound) as error:
        raise Rejected("broken_weights", f"{INDEX}: {getattr(error, 'reason', error)}") from None
    table = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(table, dict):
        raise Rejected("broken_weights", f"{INDEX}: has no weight_map")
    for name in table.values():
        if not isinstance(name, str) or "/" in name or "\0" in name or not name.endswith(".safetensors"):
            raise Rejected("broken_weights", f"{INDEX}: {name!r:.100} is no safetensors file of this directory")
    return table


def _read(directory: Path, names: list[str]) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for name in names:
        try:
            tensors = read_tensors(directory / name)
        except DamagedFile as error:
            raise Rejected("broken_weights", f"{name}: {error.reason}") from None
        if twice := found.keys() & tensors.keys():
            raise Rejected("broken_weights", f"{name}: {min(twice)} is in another file too")
        found |= tensors
    if not found:
        raise Rejected("broken_weights", f"{names[0]}: holds no tensor")
    return found
