"""A GGUF file, as llama.cpp reads it, turned into a directory like a snapshot from the Hub.

The weights come out in fp32, exactly what the file's quantised ones stand for: no more than that of the model it was
made from. `origin.json` says where they are from.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import save_file
from tokenizers import pre_tokenizers

from kev import files
from kev.errors import DamagedFile, Refused, UsageError
from kev.model.layout import CONFIG, WEIGHTS
from kev.text import shorten, visible

ORIGIN = "origin.json"

NOT_SAVED = ("quantization_config", "_name_or_path", "_model_name_or_path")
"""Keys of a loaded configuration that speak of the GGUF file, which is not there any more."""


def convert_gguf(source: Path, directory: Path, *, origin: Mapping[str, Any]) -> Path:
    """Write the model in `source` to `directory` and return it: config, fp32 weights, tokenizer, and `origin`.

    The directory appears whole or not at all. Raises UsageError without the gguf package, Refused where something is
    there already, and DamagedFile for a file that is no model of a decoder.
    """
    try:
        import gguf  # type: ignore[import-not-found,unused-ignore]  # noqa: F401 - transformers imports it later
    except ImportError:
        raise UsageError("reading GGUF needs its library: install the extra, `pip install 'kevtui[gguf]'`") from None
    if directory.exists():
        raise Refused(f"{directory}: exists already; a base that something was trained on must not change")
    model, tokenizer = _load(source)
    unfinished = directory.with_name(f".{directory.name}.unfinished")
    files.remove_tree(unfinished)
    try:
        _write(unfinished, model, tokenizer)
        files.write_atomic(unfinished / ORIGIN, files.dump_json(dict(origin)))
        files.move(unfinished, directory)
    except BaseException:
        files.remove_tree(unfinished)
        raise
    return directory


def _load(source: Path) -> tuple[Any, Any]:
    from gguf import GGUFReader

    transformers.utils.logging.disable_progress_bar()
    place = {"pretrained_model_name_or_path": source.parent, "gguf_file": source.name, "local_files_only": True}
    try:
        splitting = GGUFReader(source).get_field("tokenizer.ggml.pre")
        model = transformers.AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32)
        tokenizer = transformers.AutoTokenizer.from_pretrained(**place)
    except Exception as error:  # the reader's and the converter's own, of many kinds and undocumented
        reason = shorten(visible(str(error).strip().partition("\n")[0] or type(error).__name__), 200)
        raise DamagedFile(source, f"no model and tokenizer load from it: {reason}") from None
    if splitting is not None and splitting.contents() == "smollm":
        # transformers 5.24 splits as GPT-2 does. These models were trained with every digit apart, which shows where
        # several spaces stand before a number.
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
    return model, tokenizer


def _write(directory: Path, model: Any, tokenizer: Any) -> None:
    values = {key: value for key, value in json.loads(model.config.to_json_string()).items() if key not in NOT_SAVED}
    files.write_atomic(directory / CONFIG, files.dump_json({**values, "architectures": [type(model).__name__]}))
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    if model.config.tie_word_embeddings:
        tensors.pop("lm_head.weight", None)  # the same tensor as the embeddings, which safetensors does not keep twice
    files.write_through(directory / WEIGHTS, lambda temporary: save_file(tensors, temporary, metadata={"format": "pt"}))
    files.write_atomic(directory / "tokenizer.json", tokenizer.backend_tokenizer.to_str(pretty=True).encode())
    files.write_atomic(directory / "tokenizer_config.json", files.dump_json(_tokenizer_config(tokenizer)))
    if tokenizer.chat_template:
        files.write_atomic(directory / "chat_template.jinja", str(tokenizer.chat_template).encode())


def _tokenizer_config(tokenizer: Any) -> dict[str, Any]:
    # Spelled as transformers 4 and 5 both read it; what 5 writes itself 4 refuses.
    added = tokenizer.added_tokens_decoder
    special = [added[number].content for number in sorted(added) if added[number].special]
    named = {key: value for key, value in tokenizer.special_tokens_map.items() if isinstance(value, str)}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "additional_special_tokens": [token for token in special if token not in named.values()],
        **named,
        "clean_up_tokenization_spaces": False,
    }
