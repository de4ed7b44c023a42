"""Completions with vLLM, on a GPU."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kev.errors import DamagedFile, UsageError
from kev.text import shorten


class VllmEngine:
    """A causal model on the GPUs that CUDA_VISIBLE_DEVICES names.

    Raises UsageError without vLLM, DamagedFile for a model that cannot be loaded.
    """

    name = "vllm"

    def __init__(self, model: Path, tokenizer: Path) -> None:
        try:
            from vllm import LLM, SamplingParams  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            raise UsageError(
                "vLLM is not installed: install the extra, `pip install 'kevtui[gpu]'`, or choose --engine transformers"
            ) from None
        self._sampling = SamplingParams
        try:
            self._model: Any = LLM(
                model=str(model),
                tokenizer=str(tokenizer),
                trust_remote_code=False,
                load_format="safetensors",
                generation_config="vllm",  # its neutral one, not that of the model
                seed=0,
            )
        except Exception as error:  # the library's own, which change between versions
            words = shorten(f"{type(error).__name__}: {error}", 300)
            raise DamagedFile(model, f"could not be loaded ({words})") from error

    def generate(self, prompts: Sequence[str], *, max_new_tokens: int) -> list[str]:
        settings = self._sampling(temperature=0.0, max_tokens=max_new_tokens)
        return [str(found.outputs[0].text) for found in self._model.generate(list(prompts), settings, use_tqdm=False)]
