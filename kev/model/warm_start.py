"""Taking over the weights of a checkpoint, where model and checkpoint are of one make."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import Tensor, nn

from kev import files
from kev.checkpoint import HEAD
from kev.errors import Refused
from kev.model.adapters import set_adapter_weights
from kev.model.decision_model import DecisionModel
from kev.model.layout import Layout, find_layout
from kev.model.loading import open_head, pointer_head
from kev.model.places import locate
from kev.model.settings import differences
from kev.torch_files import MAX_BYTES


def warm_start(model: DecisionModel, run: str | Path) -> dict[str, Any]:
    """Give `model` the weights and the head of the checkpoint `run`; its temperature is not taken over.

    Returns the record of it that `head.pt` and `training_config.json` keep as `init_source`. Raises Refused, naming
    every difference, before anything is changed; NotFound or DamagedFile for a checkpoint that cannot be read.
    """
    directory = locate(str(run))
    head = open_head(directory)
    found = differences(model.values, head)
    if found:
        raise Refused(f"{run}: no warm start from a checkpoint with {'; '.join(found)}")
    layout = find_layout(directory, head)
    pointer = pointer_head(directory, head, model.head.q.in_features)
    tensors = _load(model.backbone, layout)
    model.head.load_state_dict(pointer.state_dict())
    model.remarks = (*model.remarks, *layout.remarks)
    return {
        "init_from": str(run),
        "resolved": str(directory),
        "weights_sha256": layout.sha256,
        "head_sha256": hashlib.sha256(files.read_bytes(directory / HEAD, limit=MAX_BYTES)).hexdigest(),
        "tensors": tensors,
    }


def _load(backbone: nn.Module, layout: Layout) -> int:
    if layout.kind == "lora":
        weights = load_file(layout.weights[0])
        set_adapter_weights(backbone, weights)
        return len(weights)
    own: Mapping[str, Tensor] = backbone.state_dict()
    missing = set(own)
    for path in layout.weights:
        shard = load_file(path)
        strange = sorted(name for name in shard if name not in own or own[name].shape != shard[name].shape)
        if strange:
            raise Refused(f"{path}: the model has no weights {strange[0]} of that shape")
        missing -= shard.keys()
        backbone.load_state_dict(shard, strict=False)
    if missing:
        raise Refused(f"{layout.weights[0].parent}: {len(missing)} weights are not in it, {min(missing)} the first")
    return len(own)
