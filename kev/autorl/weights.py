"""The weights of a submission: those files that kev.model.layout finds, and nothing that is an adapter's."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from kev.autorl.rejection import Rejected
from kev.errors import DamagedFile, NotFound
from kev.model.layout import ADAPTER_CONFIG, beside_adapter, full_weights, why_none
from kev.model.tensors import Tensor, read_tensors

MERGE = "merge it into its base (merge_and_unload) and save the whole model"


@dataclass(frozen=True, slots=True)
class Weights:
    """The tensors that a directory stands for, the files they are in, and what was decided on the way."""

    tensors: dict[str, Tensor]
    names: tuple[str, ...]
    remarks: tuple[str, ...] = ()


def find_weights(directory: Path, left_out: Collection[str] = ()) -> Weights:
    """The weights in `directory`; `left_out` are further names where it came from.

    Raises Rejected: `adapter`, `no_safetensors` or `broken_weights`, naming the file.
    """
    names = {*left_out, *(each.name for each in directory.iterdir())}
    try:
        layout = full_weights(directory)
        if not layout.weights:
            raise without_weights(names)
        found = {name: tensor for path in layout.weights for name, tensor in read_tensors(path).items()}
    except DamagedFile as error:
        raise Rejected("broken_weights", f"{error.path.name}: {error.reason}") from None
    except NotFound as error:
        raise Rejected("broken_weights", str(error)) from None
    if not found:
        raise Rejected("broken_weights", f"{layout.weights[0].name}: holds no tensor")
    if adapted := next((name for name in found if "lora_" in name or name.startswith("base_model.")), None):
        raise Rejected("adapter", f"{adapted}: weights of an adapter that is not merged; {MERGE}")
    if ADAPTER_CONFIG in names:
        layout = beside_adapter(layout)
    return Weights(found, tuple(path.name for path in layout.weights), layout.left_over)


def without_weights(names: Collection[str]) -> Rejected:
    """Why there is nothing to grade in a directory whose files are called `names`."""
    if ADAPTER_CONFIG in names:
        return Rejected("adapter", f"{ADAPTER_CONFIG} without whole weights: an adapter (LoRA) alone; {MERGE}")
    return Rejected("no_safetensors", why_none(names))
