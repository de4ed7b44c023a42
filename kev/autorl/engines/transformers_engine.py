"""Completions with transformers: on whatever this machine has, a CPU included."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kev.errors import DamagedFile, UsageError
from kev.text import shorten

BATCH = 64


class TransformersEngine:
    """A causal model in memory. Raises UsageError without torch, DamagedFile for a model that cannot be loaded."""

    name = "transformers"

    def __init__(self, model: Path, tokenizer: Path) -> None:
        try:
            import torch
            import transformers
        except ImportError:
            raise UsageError("grading needs torch: install the extra, `pip install 'kevtui[train]'`") from None
        self._torch = torch
        device = "cuda" if torch.cuda.is_available() else "cpu"
        safe: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
        try:
            self._tokenizer: Any = transformers.AutoTokenizer.from_pretrained(tokenizer, padding_side="left", **safe)
            dtype = torch.float32 if device == "cpu" else torch.bfloat16
            opened: Any = transformers.AutoModelForCausalLM.from_pretrained(
                model, use_safetensors=True, dtype=dtype, output_loading_info=True, **safe
            )
        except Exception as error:  # the library's own, many, and other ones in each version
            words = shorten(f"{type(error).__name__}: {error}", 300)
            raise DamagedFile(model, f"could not be loaded ({words})") from error
        loaded, report = opened
        if missing := sorted(report["missing_keys"]):
            # The library draws them at random and goes on.
            raise DamagedFile(
                model,
                f"{len(missing)} weights that its config.json asks for are not in its files, {missing[0]} the first",
            )
        self._model = loaded.to(device).eval()
        if self._tokenizer.pad_token_id is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token or self._tokenizer.convert_ids_to_tokens(0)
        # The sampling is ours: what the model brought along is put away.
        self._settings = transformers.GenerationConfig(
            do_sample=False,
            num_beams=1,
            use_cache=True,
            pad_token_id=self._tokenizer.pad_token_id,
            eos_token_id=self._tokenizer.eos_token_id,
        )
        self._model.generation_config = self._settings

    def generate(self, prompts: Sequence[str], *, max_new_tokens: int) -> list[str]:
        """As the protocol says. Prompts of about one length share a pass, so little is padded."""
        order = sorted(range(len(prompts)), key=lambda place: len(prompts[place]))
        texts = [""] * len(prompts)
        for start in range(0, len(order), BATCH):
            places = order[start : start + BATCH]
            for place, text in zip(
                places, self._batch([prompts[each] for each in places], max_new_tokens), strict=True
            ):
                texts[place] = text
        return texts

    def _batch(self, prompts: list[str], max_new_tokens: int) -> list[str]:
        encoded = self._tokenizer(prompts, return_tensors="pt", padding=True, return_token_type_ids=False)
        encoded = encoded.to(self._model.device)
        with self._torch.inference_mode():
            found = self._model.generate(**encoded, generation_config=self._settings, max_new_tokens=max_new_tokens)
        completions = found[:, encoded["input_ids"].shape[1] :]
        decoded: list[str] = self._tokenizer.batch_decode(completions, skip_special_tokens=True)
        return decoded
