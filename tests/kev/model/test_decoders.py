"""Any decoder of transformers is a backbone: dense, windowed, with experts, recurrent, or part of a larger model."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from asking import LEVEL, TEAM, URGENT
from comparing import answers, close, equal

from kev.model.adapters import target_modules
from kev.model.backbone import is_hybrid, load_backbone
from kev.model.loading import load_checkpoint, new_model
from kev.model.saving import save_checkpoint
from kev.model.settings import Settings

SHAPE: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "initializer_range": 0.2,
    "tie_word_embeddings": True,
}
WINDOW = {"sliding_window": 12}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "norm_topk_prob": True}

DECODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaConfig", {}),
    "qwen2": ("Qwen2Config", {}),
    "qwen3-windows": ("Qwen3Config", {"use_sliding_window": True, "max_window_layers": 1, **WINDOW}),
    "qwen3-experts": ("Qwen3MoeConfig", EXPERTS),
    "gemma3": ("Gemma3TextConfig", {"layer_types": ["sliding_attention", "full_attention"], **WINDOW}),
    "mistral-windows": ("MistralConfig", WINDOW),
    "lfm2": ("Lfm2Config", {"layer_types": ["conv", "full_attention"]}),
    "mamba2": ("Mamba2Config", {"num_heads": 4, "head_dim": 16, "state_size": 8, "n_groups": 1, "chunk_size": 16}),
}
RECURRENT = {"lfm2", "mamba2"}


def saved(directory: Path, model: Any, tokenizer_of: Path) -> Path:
    """`model` as its makers publish it, with the tokenizer of another base."""
    directory.mkdir()
    model.save_pretrained(directory)
    shutil.copy(tokenizer_of / "tokenizer.json", directory)
    return directory


@pytest.mark.parametrize("name", DECODERS)
def test_packed_and_row_form_agree_unless_a_layer_is_recurrent(name: str, attention_base: Path, tmp_path: Path) -> None:
    kind, particular = DECODERS[name]
    vocabulary = json.loads((attention_base / "config.json").read_text())["vocab_size"]
    config = getattr(transformers, kind)(**{**SHAPE, **particular}, vocab_size=vocabulary, pad_token_id=0)
    torch.manual_seed(0)
    whole = transformers.AutoModelForCausalLM.from_config(config)
    model = new_model(str(saved(tmp_path / "base", whole, attention_base)), Settings(lora=0)).eval()
    encodings = [model.encoder.encode("a state " * length, [TEAM, URGENT, LEVEL]) for length in (3, 12)]
    with torch.inference_mode():
        packed = model(model.collate(encodings, rows=False)).ragged()
        rows = model(model.collate(encodings, rows=True)).ragged()
        alone = model(model.collate([model.encoder.encode("a state " * 12, [LEVEL])])).ragged()
    assert model.hybrid is (name in RECURRENT)
    assert close(packed, rows, 1e-4) is not model.hybrid
    assert close(rows[-1:], alone, 1e-4)
    assert not close(rows[2:3], rows[5:6], 1e-3), "another state ought to show"
    save_checkpoint(tmp_path / "c", model)
    assert equal(answers(load_checkpoint(tmp_path / "c")), answers(model))


def test_the_language_part_of_a_larger_model_is_the_backbone(hybrid_base: Path, tmp_path: Path) -> None:
    text = transformers.AutoConfig.from_pretrained(hybrid_base)
    vision = {"depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 1, "out_hidden_size": 64}
    config = transformers.Qwen3_5Config(text_config=text.to_dict(), vision_config=vision, tie_word_embeddings=True)
    torch.manual_seed(0)
    whole = transformers.Qwen3_5ForConditionalGeneration(config)
    base = saved(tmp_path / "base", whole, hybrid_base)
    backbone = load_backbone(base)
    assert type(backbone).__name__ == "Qwen3_5TextModel" and is_hybrid(backbone)
    expected = whole.model.language_model.state_dict()
    assert backbone.state_dict().keys() == expected.keys()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in backbone.state_dict().items())
    for settings in (Settings(lora=0), Settings(lora=2)):
        model = new_model(str(base), settings)
        assert model.hybrid
        save_checkpoint(tmp_path / settings.weights, model)
        assert equal(answers(load_checkpoint(tmp_path / settings.weights, merge=False)), answers(model))


@pytest.mark.parametrize(
    ("targets", "attention", "hybrid"),
    [
        ("all", {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}, True),
        ("dense", {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}, False),
        ("attn", {"q_proj", "k_proj", "v_proj", "o_proj"}, True),
        ("qv", {"q_proj", "v_proj"}, False),
    ],
)
def test_adapters_go_where_their_targets_say(
    targets: Any, attention: set[str], hybrid: bool, attention_base: Path, hybrid_base: Path
) -> None:
    recurrent = {"in_proj_qkv", "in_proj_z", "in_proj_a", "in_proj_b", "out_proj"}
    assert set(target_modules(targets, hybrid=False)) == attention
    assert set(target_modules(targets, hybrid=True)) == attention | (recurrent if hybrid else set())
    for base, expected in [(attention_base, attention), (hybrid_base, attention | (recurrent if hybrid else set()))]:
        model = new_model(str(base), Settings(lora=2, lora_targets=targets))
        adapted = {
            name.partition(".lora_A")[0].rpartition(".")[2] for name, _ in model.named_parameters() if "lora_A" in name
        }
        assert adapted == expected
