"""Writing a checkpoint: the layout that every reader of the format knows.

`head.pt` comes last but for its twin: where it lies, everything else does.
"""

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from huggingface_hub import split_torch_state_dict_into_shards
from peft import PeftModel
from safetensors.torch import save_file
from torch import Tensor

from kev import files
from kev.checkpoint import HEAD, Head, write_head
from kev.errors import NotFound, Refused
from kev.model.adapters import adapter_config, adapter_weights
from kev.model.decision_model import DecisionModel
from kev.model.layout import ADAPTER, ADAPTER_CONFIG, CONFIG, INDEX

SHARD_BYTES = 5_000_000_000
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
    "chat_template.jinja",
)

KNOWN = frozenset(
    {
        "base",
        "head",
        "base_revision",
        "lora",
        "head_dim",
        "option_isolation",
        "special_embeddings",
        "weights_dtype",
        "temperature",
        "weights",
    }
)
"""Keys of `head.pt` that the model itself decides."""


@dataclass(frozen=True, slots=True)
class Contents:
    """Everything a checkpoint consists of. `config` is that of the adapter or of the backbone, as `head` says."""

    head: Head
    config: Mapping[str, Any]
    weights: Mapping[str, Tensor]
    tokenizer: Path


def contents_of(
    model: DecisionModel,
    *,
    weights: Mapping[str, Tensor] | None = None,
    extra: Mapping[str, Any] | None = None,
    detach: bool = False,
) -> Contents:
    """What a checkpoint of `model` holds now.

    `weights` replaces the model's own, for one whose tensors are gathered from several processes. `extra` are further
    keys of `head.pt`; the known ones win over them. With `detach` the tensors are copies on the CPU, which a thread may
    write while training goes on. Raises Refused for an adapter that is merged already.
    """
    backbone: Any = model.backbone
    adapted = isinstance(backbone, PeftModel)
    if model.values.get("weights") == "lora" and not adapted:
        raise Refused("the adapter is merged into the weights and cannot be saved again; load with merge=False")
    if weights is None:
        weights = adapter_weights(backbone) if adapted else backbone.state_dict()
    config = adapter_config(backbone, model.values.base) if adapted else _backbone_config(backbone, weights)
    head = {name: _on_cpu(tensor, copied=True) for name, tensor in model.head.state_dict().items()}
    further = {key: value for key, value in (extra or {}).items() if key not in KNOWN}
    values = {**model.values.values, "head": head, "temperature": model.temperature, **further}
    return Contents(
        Head(values),
        config,
        {name: _on_cpu(tensor, copied=detach) for name, tensor in weights.items()},
        model.directory,
    )


def save_checkpoint(directory: Path, model: DecisionModel, *, extra: Mapping[str, Any] | None = None) -> None:
    """Write `model` into `directory`. Raises Refused where a checkpoint lies already, OSError where none can be."""
    write_checkpoint(directory, contents_of(model, extra=extra))


def write_checkpoint(directory: Path, contents: Contents, *, shard_bytes: int = SHARD_BYTES) -> None:
    """Write `contents` into `directory`, file by file, each wholly or not at all."""
    if (directory / HEAD).exists():
        raise Refused(f"{directory}: a checkpoint lies here already; choose another directory")
    for name in TOKENIZER_FILES:
        try:
            files.write_atomic(directory / name, files.read_bytes(contents.tokenizer / name))
        except NotFound:
            continue
    if contents.head.get("weights") == "lora":
        files.write_atomic(directory / ADAPTER_CONFIG, files.dump_json(dict(contents.config)))
        _write_tensors(directory / ADAPTER, contents.weights)
    else:
        files.write_atomic(directory / CONFIG, files.dump_json(dict(contents.config)))
        _write_shards(directory, contents.weights, shard_bytes)
    write_head(directory, contents.head)


def _write_shards(directory: Path, weights: Mapping[str, Tensor], shard_bytes: int) -> None:
    split = split_torch_state_dict_into_shards(
        dict(weights), filename_pattern="model{suffix}.safetensors", max_shard_size=shard_bytes
    )
    for name, tensors in split.filename_to_tensors.items():
        _write_tensors(directory / name, {tensor: weights[tensor] for tensor in tensors})
    if split.is_sharded:
        index = {"metadata": dict(split.metadata), "weight_map": dict(split.tensor_to_filename)}
        files.write_atomic(directory / INDEX, files.dump_json(index))


def _write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    whole = {name: tensor.contiguous() for name, tensor in tensors.items()}
    files.write_through(path, lambda temporary: save_file(whole, temporary, metadata={"format": "pt"}))


def _backbone_config(backbone: Any, weights: Mapping[str, Tensor]) -> dict[str, Any]:
    config = copy.deepcopy(backbone.config)
    config.architectures = [type(backbone).__name__.removeprefix("FSDP")]
    # What is saved counts: a trainer may hold in fp32 what it hands over rounded.
    config.dtype = next((tensor.dtype for tensor in weights.values()), backbone.dtype)
    return cast("dict[str, Any]", json.loads(config.to_json_string()))


def _on_cpu(tensor: Tensor, *, copied: bool) -> Tensor:
    here = tensor.detach().to("cpu")
    return here.clone() if copied and here.data_ptr() == tensor.data_ptr() else here
