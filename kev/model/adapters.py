"""LoRA by peft: which modules get one, and how it comes into the weights."""

import warnings
from collections.abc import Mapping
from typing import Any, Literal, cast

import peft
import torch
from peft.tuners.lora import LoraLayer
from torch import Tensor, nn

from kev.errors import Refused

Targets = Literal["all", "dense", "attn", "qv"]

ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
FEED_FORWARD = ("gate_proj", "up_proj", "down_proj")
DELTA_NET = ("in_proj_qkv", "in_proj_z", "in_proj_a", "in_proj_b", "out_proj")
DROPOUT = 0.05
MAX_RANK = 4096

MEANINGFUL = frozenset(
    {
        "task_type",
        "r",
        "lora_alpha",
        "lora_dropout",
        "bias",
        "target_modules",
        "exclude_modules",
        "layers_to_transform",
        "layers_pattern",
        "rank_pattern",
        "alpha_pattern",
        "fan_in_fan_out",
        "use_rslora",
        "trainable_token_indices",
        "modules_to_save",
    }
)
"""Keys of `adapter_config.json` that decide what trained weights mean. Others decide how an adapter is initialised, or
name modules to import, which a file from outside does not."""


def target_modules(targets: Targets, *, hybrid: bool) -> list[str]:
    """The module names of a set of targets; `all` and `attn` of a hybrid backbone take its recurrent layers in."""
    recurrent = DELTA_NET if hybrid and targets in ("all", "attn") else ()
    match targets:
        case "all" | "dense":
            return [*ATTENTION, *FEED_FORWARD, *recurrent]
        case "attn":
            return [*ATTENTION, *recurrent]
        case "qv":
            return ["q_proj", "v_proj"]


def add_adapter(
    backbone: nn.Module, rank: int, *, targets: Targets, hybrid: bool, token_ids: tuple[int, ...] = ()
) -> nn.Module:
    """`backbone` with a fresh LoRA of `rank` in fp32, alpha twice the rank; the rest is frozen.

    The embeddings of `token_ids` are trained along with it.
    """
    names = {name.rpartition(".")[2] for name, _ in backbone.named_modules()}
    config = peft.LoraConfig(
        task_type=peft.TaskType.FEATURE_EXTRACTION,
        r=rank,
        lora_alpha=2 * rank,
        lora_dropout=DROPOUT,
        target_modules=[name for name in target_modules(targets, hybrid=hybrid) if name in names],
        trainable_token_indices={"embed_tokens": list(token_ids)} if token_ids else None,
    )
    return _wrap(backbone, config)


def adapter_from(backbone: nn.Module, config: Mapping[str, Any], weights: Mapping[str, Tensor]) -> nn.Module:
    """`backbone` with the adapter that `adapter_config.json` and its weights describe.

    Raises Refused unless the weights are exactly those that the configuration asks for.
    """
    model = _wrap(backbone, peft_config(config))
    set_adapter_weights(model, weights)
    return model


def peft_config(config: Mapping[str, Any]) -> Any:
    """peft's configuration from the content of `adapter_config.json`. Raises Refused for what is no plain LoRA."""
    if config.get("peft_type") != "LORA":
        raise Refused(f"an adapter of type {config.get('peft_type')!r}; LORA is what is read")
    rank = config.get("r")
    if type(rank) is not int or not 1 <= rank <= MAX_RANK:
        raise Refused(f"an adapter of rank {rank!r}; 1 to {MAX_RANK:,} is what is read")
    try:
        return peft.LoraConfig(**{key: value for key, value in config.items() if key in MEANINGFUL})
    except (TypeError, ValueError) as error:
        raise Refused(f"adapter_config.json: {error}") from None


def adapter_weights(model: nn.Module) -> dict[str, Tensor]:
    """The adapter's tensors under the names of `adapter_model.safetensors`."""
    return cast("dict[str, Tensor]", peft.get_peft_model_state_dict(cast(Any, model), save_embedding_layers=False))


def set_adapter_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Load an adapter's tensors. Raises Refused unless names and shapes are exactly those of `model`."""
    own = adapter_weights(model)
    for title, names in (("lacks", own.keys() - weights.keys()), ("has besides", weights.keys() - own.keys())):
        if names:
            raise Refused(f"the adapter {title} {len(names)} tensors, {min(names)} the first")
    different = [name for name in sorted(own) if own[name].shape != weights[name].shape]
    if different:
        raise Refused(f"the adapter's {different[0]} has shape {tuple(weights[different[0]].shape)}")
    peft.set_peft_model_state_dict(cast(Any, model), dict(weights))


@torch.no_grad()
def merge_adapter(model: Any, dtype: torch.dtype, *, scale: float = 1.0) -> nn.Module:
    """The backbone in `dtype` with the adapter added into it; `scale` takes only that part of the adapter.

    The sum is made in fp32 and rounded once.
    """
    for module in model.modules():
        if isinstance(module, LoraLayer):
            weight = cast(nn.Parameter, cast(nn.Module, module.get_base_layer()).weight)
            delta = sum(cast(Any, module).get_delta_weight(name).float() for name in module.active_adapters)
            weight.data = (weight.float() + scale * delta).to(dtype)
    merged: nn.Module = model.unload()
    return merged.to(dtype)


def adapter_config(model: Any, base: str) -> dict[str, Any]:
    """The content of `adapter_config.json` for the adapter of `model`, on `base`."""
    values = {**model.peft_config["default"].to_dict(), "base_model_name_or_path": base, "inference_mode": True}
    return {key: sorted(value) if isinstance(value, set) else value for key, value in values.items()}


def trains_tokens(config: Mapping[str, Any]) -> bool:
    """Whether an adapter trains embeddings too; such a one is never merged."""
    return bool(config.get("trainable_token_indices"))


def _wrap(backbone: nn.Module, config: Any) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # peft asks transformers by a name that is going away
        return cast(nn.Module, peft.get_peft_model(cast(Any, backbone), config, autocast_adapter_dtype=True))
