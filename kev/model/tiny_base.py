"""Small random bases, saved like snapshots from the Hub: every mechanism of the big ones on one core.

They know nothing: what a model on them can do, it has learned from its own training data.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
import transformers
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from kev import files
from kev.model.backbone import build_backbone
from kev.model.delimiters import FAMILIES, neutralise
from kev.model.layout import CONFIG, WEIGHTS, full_weights

Kind = Literal["attention", "hybrid"]

END_OF_TEXT = "<|endoftext|>"
BYTES = 256
WORDS = (
    "a about after all also and any are as at back before between both but by can case change day does each first for"
    " from get go has have here if in into is it item its last list long make more most new no none not now of old on"
    " one only or order other out over page part people place policy question same say score see set should so state"
    " some than that the their them then there these they this time to two under up use was what when where which who"
    " will with within work would year yes your"
)


def make_tiny_base(
    directory: Path,
    *,
    kind: Kind = "attention",
    texts: Iterable[str] = (WORDS,),
    vocabulary: int = 1024,
    hidden: int = 128,
    layers: int = 3,
    seed: int = 0,
) -> Path:
    """Make a base in `directory` and return it: config, weights in fp32, and a tokenizer trained on `texts`.

    `attention` has ordinary attention in every layer; `hybrid` puts a recurrent layer before every attention layer.
    The same arguments give the same bytes. The vocabulary is smaller where the texts have less to merge.
    """
    tokenizer = train_tokenizer(texts, vocabulary)
    config = _config(kind, tokenizer.get_vocab_size(), hidden, layers)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        backbone = build_backbone(config)
    files.write_atomic(directory / "tokenizer.json", tokenizer.to_str(pretty=True).encode())
    files.write_atomic(directory / "tokenizer_config.json", files.dump_json(_tokenizer_config()))
    config.architectures = [type(backbone).__name__]
    config.dtype = torch.float32
    files.write_atomic(directory / CONFIG, files.dump_json(json.loads(config.to_json_string())))
    tensors = {name: tensor.contiguous() for name, tensor in backbone.state_dict().items()}
    files.write_through(directory / WEIGHTS, lambda temporary: save_file(tensors, temporary, metadata={"format": "pt"}))
    return directory


def base_sha256(directory: Path) -> str:
    """The hash of a base's weights, which stands in for a revision where there is no Hub."""
    return full_weights(directory).sha256


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> Tokenizer:
    """A byte-level BPE of at most `vocabulary` tokens, with the delimiters as special tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = [END_OF_TEXT, *FAMILIES[0]]
    trainer = trainers.BpeTrainer(
        vocab_size=max(vocabulary, BYTES + len(special)),
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator((neutralise(text) for text in texts), trainer)
    return tokenizer


def _config(kind: Kind, vocabulary: int, hidden: int, layers: int) -> Any:
    heads = max(1, hidden // 32)
    shared = {
        "vocab_size": vocabulary,
        "hidden_size": hidden,
        "intermediate_size": 2 * hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": max(1, heads // 2),
        "head_dim": 32,
        # At the usual 0.02 so narrow a model learns nothing: states would begin all but equal.
        "initializer_range": round(hidden**-0.5, 4),
        "tie_word_embeddings": True,
        "use_cache": False,
        "pad_token_id": 0,
        "eos_token_id": 0,
    }
    if kind == "attention":
        return transformers.Qwen3Config(**shared)
    kinds: Sequence[str] = ["linear_attention" if layer % 2 == 0 else "full_attention" for layer in range(layers)]
    return transformers.Qwen3_5TextConfig(
        **shared,
        layer_types=list(kinds),
        linear_num_key_heads=2,
        linear_num_value_heads=2,
        linear_key_head_dim=16,
        linear_value_head_dim=16,
    )


def _tokenizer_config() -> dict[str, Any]:
    # These two spellings are read by transformers 4 and 5 alike; those that 5 writes itself are not.
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "additional_special_tokens": list(FAMILIES[0]),
        "eos_token": END_OF_TEXT,
        "pad_token": END_OF_TEXT,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 32_768,
    }
