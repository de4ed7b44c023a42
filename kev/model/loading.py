"""Opening a decision model: a checkpoint as it was saved, or a new head on a base. Local files only."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import nn

from kev import files
from kev.checkpoint import HEAD, Head, read_head
from kev.errors import DamagedFile, Refused, UsageError
from kev.model.adapters import adapter_from, add_adapter, merge_adapter, trains_tokens
from kev.model.backbone import DTYPES, STORED, find_backbone, is_hybrid, load_backbone, read_config
from kev.model.context import TRAINING, Context
from kev.model.decision_model import DecisionModel
from kev.model.encoding import Encoder
from kev.model.head import PointerHead
from kev.model.layout import ADAPTER_CONFIG, Layout, find_layout
from kev.model.places import locate
from kev.model.settings import Settings

MAX_HEAD_DIM = 65_536
DIVERGED = "its training diverged, or the file is damaged: take another checkpoint"


def new_model(
    base: str,
    settings: Settings,
    *,
    seed: int = 0,
    context: Context = TRAINING,
    attention: str = "sdpa",
    device: str = "cpu",
) -> DecisionModel:
    """A model on `base`, a directory or a Hub id, with a fresh head, and a fresh adapter where `lora` is not 0.

    The same seed gives the same weights, and torch's own random stream is left as it was. In training mode.
    Raises NotFound, DamagedFile or Refused.
    """
    directory = locate(base, settings.base_revision)
    found = find_backbone(directory)
    backbone = load_backbone(directory, weights=found.weights, dtype=settings.weights_dtype, attention=attention)
    hybrid = is_hybrid(backbone)
    encoder = _encoder([directory], backbone, context, hybrid, settings.option_isolation)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if settings.lora:
            tokens = encoder.delimiters.ids if settings.special_embeddings else ()
            backbone = add_adapter(
                backbone, settings.lora, targets=settings.lora_targets, hybrid=hybrid, token_ids=tokens
            )
        head = PointerHead(_hidden_size(backbone), settings.head_dim)
    model = DecisionModel(backbone, head, encoder, Head(settings.head_values(base)), directory)
    model.remarks = found.remarks
    return model.to(device).train()


def load_checkpoint(
    run: str | Path,
    *,
    dtype: str | None = None,
    merge: bool | None = None,
    lora_scale: float = 1.0,
    temperature: float | None = None,
    context: Context = TRAINING,
    attention: str = "sdpa",
    device: str = "cpu",
) -> DecisionModel:
    """The checkpoint `run`, a directory or a Hub id, in evaluation mode.

    `dtype` (fp32, bf16, fp16) is that of the training unless given. An adapter is merged into fp32 weights unless
    `merge` says otherwise; only one that is not merged can be trained on or saved. `lora_scale` from 0 to 1 takes part
    of an adapter. `temperature` replaces the checkpoint's; 1 is raw. Raises NotFound, DamagedFile or Refused.
    """
    if dtype is not None and dtype not in DTYPES:
        raise UsageError(f"dtype {dtype!r}: one of {', '.join(DTYPES)}")
    directory = locate(str(run))
    head = open_head(directory)
    layout = find_layout(directory, head)
    if layout.kind == "full":
        if lora_scale != 1.0:
            raise Refused(f"{directory}: lora_scale belongs to adapters; these are full weights")
        backbone, places, remarks = _full(layout, head, dtype, attention), [directory], layout.remarks
    else:
        base = locate(head.base, head.get("base_revision"))
        found = find_backbone(base)
        backbone = _adapted(layout, base, found, head, dtype=dtype, merge=merge, scale=lora_scale, attention=attention)
        places, remarks = [directory, base], (*layout.remarks, *found.remarks)
    isolated = bool(head.get("option_isolation"))
    encoder = _encoder(places, backbone, context, is_hybrid(backbone), isolated)
    pointer = pointer_head(directory, head, _hidden_size(backbone))
    if temperature is not None:
        pointer.temperature = temperature
    tokenizer = next(place for place in places if (place / "tokenizer.json").is_file())
    model = DecisionModel(backbone, pointer, encoder, head, tokenizer)
    model.remarks = remarks
    return model.to(device).eval()


def open_head(directory: Path) -> Head:
    """A checkpoint's head, with a head_dim and a weights_dtype that can be meant. Raises NotFound or DamagedFile."""
    head = read_head(directory)
    dimension, weights_dtype = head.get("head_dim"), head.get("weights_dtype")
    if type(dimension) is not int or not 1 <= dimension <= MAX_HEAD_DIM:
        raise DamagedFile(
            directory / HEAD, f"its head_dim {dimension!r:.40} is not a number from 1 to {MAX_HEAD_DIM:,}"
        )
    if weights_dtype not in list(DTYPES):
        raise DamagedFile(directory / HEAD, f"its weights_dtype {weights_dtype!r:.40} is none of {', '.join(DTYPES)}")
    return head


def pointer_head(directory: Path, head: Head, hidden: int) -> PointerHead:
    """The pointer head that `head` holds, for states of width `hidden`. Raises DamagedFile, naming `directory`."""
    tensors = head.get("head")
    pointer = PointerHead(hidden, head.get("head_dim"), temperature=head.temperature)
    wanted = {name: tuple(tensor.shape) for name, tensor in pointer.state_dict().items()}
    tensors = tensors if isinstance(tensors, Mapping) else {}
    found = {name: tuple(getattr(tensor, "shape", ())) for name, tensor in tensors.items()}
    if found != wanted:
        raise DamagedFile(directory / HEAD, f"its head has tensors {found}, where {wanted} belong")
    for name, tensor in tensors.items():
        # What torch reads as data may also be sparse, quantized, or without any values.
        if tensor.layout != torch.strided or tensor.device.type != "cpu" or not tensor.is_floating_point():
            raise DamagedFile(directory / HEAD, f"its head's {name} is no plain tensor of floats")
        if not tensor.isfinite().all():
            raise DamagedFile(directory / HEAD, f"its head's {name} holds values that are no numbers; {DIVERGED}")
    pointer.load_state_dict(tensors)
    return pointer


def _full(layout: Layout, head: Head, dtype: str | None, attention: str) -> nn.Module:
    directory = layout.weights[0].parent
    said = head.get("weights_dtype")
    stored = str(read_config(directory).dtype or "").removeprefix("torch.")
    if stored and stored != {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}.get(said):
        raise DamagedFile(directory, f"config.json says {stored} weights, {HEAD} {said}")
    return load_backbone(directory, weights=layout.weights, dtype=dtype or said, attention=attention)


def _adapted(
    layout: Layout,
    base: Path,
    found: Layout,
    head: Head,
    *,
    dtype: str | None,
    merge: bool | None,
    scale: float,
    attention: str,
) -> nn.Module:
    directory = layout.weights[0].parent
    config = files.read_json(directory / ADAPTER_CONFIG)
    if not isinstance(config, dict):
        raise DamagedFile(directory / ADAPTER_CONFIG, "does not hold an object")
    rounded = head.get("weights_dtype") != "fp32"
    dtype = dtype or head.get("weights_dtype")
    if merge is None:
        # What was trained beside rounded weights, or trains embeddings, is served as it was trained.
        merge = not rounded and not trains_tokens(config)
    if merge and trains_tokens(config):
        raise Refused(f"{directory}: its adapter trains embeddings, which are never merged")
    if scale != 1.0 and not merge:
        raise Refused(f"{directory}: lora_scale needs a merged adapter")
    stored = load_backbone(base, weights=found.weights, dtype=STORED if merge else dtype, attention=attention)
    try:
        adapted = adapter_from(stored, config, load_file(layout.weights[0]))
    except Refused as error:
        raise DamagedFile(directory, str(error)) from None
    return merge_adapter(adapted, DTYPES[dtype], scale=scale) if merge else adapted


def _encoder(
    places: list[Path], backbone: nn.Module, context: Context, hybrid: bool, option_isolation: bool
) -> Encoder:
    if option_isolation and hybrid:
        raise Refused("isolated options need a mask, which a recurrent backbone does not obey")
    place = next((place for place in places if (place / "tokenizer.json").is_file()), places[0])
    encoder = Encoder.from_directory(place, context=context, option_isolation=option_isolation)
    config: Any = backbone.config
    rows = config.get_text_config().vocab_size
    if encoder.tokenizer.get_vocab_size() > rows:
        raise DamagedFile(
            place / "tokenizer.json",
            f"{encoder.tokenizer.get_vocab_size():,} tokens, but the backbone has {rows:,} embeddings",
        )
    return encoder


def _hidden_size(backbone: nn.Module) -> int:
    config: Any = backbone.config
    return int(config.get_text_config().hidden_size)
