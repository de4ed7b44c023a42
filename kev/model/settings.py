"""What decides a model's shape and meaning apart from its weights."""

from dataclasses import dataclass
from typing import Any, Literal

from kev.checkpoint import Head
from kev.model.adapters import Targets


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings by the names of `head.pt`. `lora` is the rank of the adapter, 0 for full weights."""

    lora: int = 16
    lora_targets: Targets = "all"
    head_dim: int = 256
    option_isolation: bool = False
    special_embeddings: bool = False
    weights_dtype: Literal["fp32", "bf16"] = "fp32"
    base_revision: str | None = None

    @property
    def weights(self) -> Literal["lora", "full"]:
        """The checkpoint's layout."""
        return "lora" if self.lora else "full"

    def head_values(self, base: str) -> dict[str, Any]:
        """The values of `head.pt` that these settings fix, for a model on `base`."""
        return {
            "base": base,
            "base_revision": self.base_revision,
            "lora": self.lora,
            "head_dim": self.head_dim,
            "option_isolation": self.option_isolation,
            "special_embeddings": self.special_embeddings,
            "weights_dtype": self.weights_dtype,
            "weights": self.weights,
            "temperature": 1.0,
            "holdout": [],
        }


WARM_START_FIELDS = (
    "base",
    "base_revision",
    "lora",
    "head_dim",
    "option_isolation",
    "special_embeddings",
    "weights",
)
"""What a model and a checkpoint must agree on before one takes over the other's weights."""


def differences(own: Head, other: Head) -> list[str]:
    """The warm-start fields in which two heads disagree, in words. A missing base_revision agrees with any."""
    found = []
    for name in WARM_START_FIELDS:
        mine, theirs = own.get(name), other.get(name)
        if name == "base_revision" and not (mine and theirs):
            continue
        if name in ("option_isolation", "special_embeddings"):
            mine, theirs = bool(mine), bool(theirs)
        if mine != theirs:
            found.append(f"{name} {theirs!r}, not {mine!r}")
    return found
