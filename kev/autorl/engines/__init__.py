"""What generates text with a model: vLLM on a GPU, transformers elsewhere. Greedy, with our own template and limits.

The tokenizer is the base's as long as the model has the base's vocabulary: rules of a tokenizer that comes with a
submission could turn a question into its answer. No template, no sampling default and no code of the model is used.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from kev.autorl.weights import find_weights
from kev.errors import UsageError

ENGINES = ("auto", "transformers", "vllm")
_EMBEDDINGS = ("embed_tokens.weight", "wte.weight", "word_embeddings.weight")


class Engine(Protocol):
    """Completes prompts."""

    name: str

    def generate(self, prompts: Sequence[str], *, max_new_tokens: int) -> list[str]:
        """The likeliest completion of each prompt, without the prompt and without special tokens."""
        ...


def open_engine(name: str, model: Path, base: Path) -> Engine:
    """An engine with `model` loaded. Raises UsageError for one that is not here, DamagedFile or Refused for a model."""
    if name not in ENGINES:
        raise UsageError(f"engine {name!r}: one of {', '.join(ENGINES)}")
    tokenizer = tokenizer_for(model, base)
    if name == "vllm" or (name == "auto" and _vllm_works()):
        from kev.autorl.engines.vllm_engine import VllmEngine

        return VllmEngine(model, tokenizer)
    from kev.autorl.engines.transformers_engine import TransformersEngine

    return TransformersEngine(model, tokenizer)


def tokenizer_for(model: Path, base: Path) -> Path:
    """Whose tokenizer reads the prompts: the base's, unless the model has another number of tokens."""
    return base if _rows(model) == _rows(base) else model


def _rows(directory: Path) -> int | None:
    tensors = find_weights(directory).tensors.values()
    return next((tensor.shape[0] for tensor in tensors if tensor.name.endswith(_EMBEDDINGS)), None)


def _vllm_works() -> bool:
    """Whether vLLM is installed and a GPU is there."""
    from importlib.util import find_spec

    if find_spec("vllm") is None:
        return False
    import torch

    return torch.cuda.is_available()
