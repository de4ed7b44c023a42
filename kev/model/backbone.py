"""Any transformers decoder as the backbone: loaded from local files, without its vocabulary head."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file
from torch import Tensor, nn

from kev.errors import DamagedFile, Refused
from kev.model.batch import Batch
from kev.model.layout import (
    ADAPTER,
    ADAPTER_CONFIG,
    Layout,
    beside_adapter,
    full_weights,
    read_config_file,
    why_none,
)
from kev.model.mask import additive_mask, visible_keys
from kev.text import shorten, visible

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}

STORED = "stored"
EAGER = "eager"

MASKABLE = frozenset({"full_attention", "sliding_attention", "attention"})
"""Kinds of layers that read a mask of ours as it is meant. Recurrent ones carry a state past every mask."""


def find_backbone(directory: Path) -> Layout:
    """The files of the weights of a base, or of a checkpoint's backbone.

    Raises DamagedFile, or Refused for an adapter: alone, or beside weights that it may or may not be merged into.
    """
    layout = full_weights(directory)
    described, adapter = (directory / ADAPTER_CONFIG).is_file(), (directory / ADAPTER).is_file()
    if not layout.weights:
        if described or adapter:
            raise Refused(f"{directory}: an adapter without the weights it belongs to; merge it into its base first")
        read_config(directory)  # what is wrong with it, or that it is not there, says more
        raise DamagedFile(directory, f"holds no weights: {why_none([path.name for path in directory.iterdir()])}")
    if described and adapter:
        raise Refused(
            f"{directory / ADAPTER}: an adapter beside full weights, and nothing says whether it is merged into them; "
            f"merge it, or remove it and {ADAPTER_CONFIG}"
        )
    return beside_adapter(layout) if described else layout


def load_backbone(
    directory: Path, *, weights: Sequence[Path] | None = None, dtype: str = "fp32", attention: str = "sdpa"
) -> nn.Module:
    """The decoder whose `config.json` and weights lie in `directory`; no remote code is run and nothing fetched.

    `weights` are the files that count, those of `find_backbone` unless given. `dtype` is fp32, bf16, fp16, or `stored`
    for that of the files; `attention` gives way to `eager` where the architecture has no other. Raises NotFound,
    DamagedFile, or Refused for one that transformers does not know.
    """
    config = read_config(directory)
    paths = find_backbone(directory).weights if weights is None else weights
    transformers.utils.logging.disable_progress_bar()
    multimodal = config.get_text_config() is not config
    try:
        with _quiet():
            model, report = _loaded(config, _tensors(paths), dtype, attention, language_only=multimodal)
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise DamagedFile(directory, f"no backbone loads from it: {_reason(error)}") from None
    if report["mismatched_keys"]:
        name, there, asked = min(report["mismatched_keys"])
        raise DamagedFile(directory, f"{name} is {tuple(there)} in its files, and {tuple(asked)} by its config.json")
    missing = sorted(report["missing_keys"])
    if missing:
        raise DamagedFile(directory, f"{len(missing)} weights are not in its files, {missing[0]} the first")
    backbone: nn.Module = model.model if multimodal else model
    return backbone


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the tables that transformers prints of what did not fit: what counts of them is raised."""
    logging = transformers.utils.logging
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _tensors(paths: Sequence[Path]) -> dict[str, Tensor]:
    """What the files hold, mapped and not read."""
    found: dict[str, Tensor] = {}
    for path in paths:
        found |= load_file(path)
    return found


def _loaded(config: Any, tensors: dict[str, Tensor], dtype: str, attention: str, *, language_only: bool) -> Any:
    # A model of several senses is opened as the language model in it. transformers is given tensors, not a directory:
    # there it would choose the files by their names, and follow an adapter's configuration wherever it leads.
    known: Any = transformers.MODEL_FOR_CAUSAL_LM_MAPPING if language_only else transformers.MODEL_MAPPING
    classes = known[type(config)]
    loader = classes[0] if isinstance(classes, tuple) else classes
    if loader.config_class is type(config.get_text_config()):
        config = config.get_text_config()
    try:
        return loader.from_pretrained(
            None,
            config=config,
            state_dict=tensors,
            dtype="auto" if dtype == STORED else DTYPES[dtype],
            attn_implementation=attention,
            local_files_only=True,
            ignore_mismatched_sizes=True,  # to be told which
            output_loading_info=True,
        )
    except ValueError as error:
        if attention == EAGER or "does not support an attention implementation" not in str(error):
            raise
        return _loaded(config, tensors, dtype, EAGER, language_only=language_only)


def build_backbone(config: Any, *, dtype: str = "fp32", attention: str = "sdpa") -> nn.Module:
    """A decoder of `config` with fresh weights from torch's current random stream."""
    backbone: nn.Module = transformers.AutoModel.from_config(
        copy.deepcopy(config), dtype=DTYPES[dtype], attn_implementation=attention
    )
    return backbone


def read_config(directory: Path) -> Any:
    """The configuration in `directory`. Raises NotFound, DamagedFile or Refused."""
    path = directory / "config.json"
    content = read_config_file(path)
    if not isinstance(content, dict) or not isinstance(content.get("model_type"), str):
        raise DamagedFile(path, "does not say its model_type")
    try:
        return transformers.AutoConfig.from_pretrained(directory, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Refused(f"{path}: {_reason(error)}") from None


def layer_kinds(config: Any) -> set[str]:
    """The kinds of layers a configuration names; those of architectures with one kind of layer name none."""
    text = config.get_text_config()
    kinds = set(getattr(text, "layer_types", None) or getattr(text, "layers_block_type", None) or ())
    if not kinds and getattr(text, "sliding_window", None):
        return {"sliding_attention"}
    return kinds


def is_hybrid(backbone: Any) -> bool:
    """Whether recurrence lets a token reach what a mask hides, so that every question needs a row of its own."""
    stateful = bool(getattr(backbone, "_is_stateful", False))  # how transformers marks recurrent architectures
    return stateful or bool(layer_kinds(backbone.config) - MASKABLE)


def last_states(backbone: Any, batch: Batch) -> Tensor:
    """The backbone's final, normed states [B, L, d] of a batch in either form."""
    if batch.seg is None:
        # Padding lies on the right, where nothing causal sees it, and rows count their positions from 0: so neither
        # is told, and the fastest causal kernels apply.
        mask = positions = None
    else:
        mask, positions = _packed_mask(backbone, batch), batch.pos
    states: Tensor = backbone(
        input_ids=batch.ids, position_ids=positions, attention_mask=mask, use_cache=False
    ).last_hidden_state
    return states


def _packed_mask(backbone: Any, batch: Batch) -> Tensor | dict[str, Tensor]:
    assert batch.seg is not None
    device = batch.ids.device.type
    autocast = torch.is_autocast_enabled(device)
    dtype = torch.get_autocast_dtype(device) if autocast else backbone.dtype
    allowed = visible_keys(batch.seg, batch.opt)
    text = backbone.config.get_text_config()
    full = additive_mask(allowed, dtype)
    if "sliding_attention" not in layer_kinds(text):
        return full
    # Distance is that of positions: a branch begins right behind the state wherever it lies in the packed record.
    near = (batch.pos[:, :, None] - batch.pos[:, None, :]).abs() < text.sliding_window
    own = torch.eye(batch.ids.shape[1], dtype=torch.bool, device=batch.ids.device)
    windowed = additive_mask(allowed & near | own, dtype)
    # Where layers are of several kinds each takes its mask by name, otherwise all take the one there is.
    named = getattr(text, "layer_types", None)
    return {"full_attention": full, "sliding_attention": windowed} if named else windowed


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return shorten(visible(lines[0] if lines else type(error).__name__), 200)
