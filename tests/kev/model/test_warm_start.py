"""A model takes over a checkpoint's weights where both are of one make, and refuses by name where they are not."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from comparing import answers, disturbed, equal
from safetensors.torch import load_file, save_file

from kev.checkpoint import read_head, write_head
from kev.errors import DamagedFile, Refused
from kev.model.loading import load_checkpoint, new_model
from kev.model.saving import contents_of, save_checkpoint, write_checkpoint
from kev.model.settings import Settings
from kev.model.warm_start import warm_start

ADAPTED = Settings(lora=2, head_dim=128, base_revision="abc")


@pytest.mark.parametrize("settings", [ADAPTED, Settings(lora=0)], ids=["lora", "full"])
def test_weights_and_head_are_taken_over_and_the_temperature_is_not(
    attention_base: Path, tmp_path: Path, settings: Settings
) -> None:
    parent = disturbed(new_model(str(attention_base), settings))
    parent.temperature = 3.0
    write_checkpoint(tmp_path / "parent", contents_of(parent), shard_bytes=200_000)
    child = new_model(str(attention_base), settings, seed=1)
    source = warm_start(child, tmp_path / "parent")
    parent.temperature = 1.0
    assert equal(answers(child), answers(parent))
    assert source["init_from"] == source["resolved"] == str(tmp_path / "parent")
    assert source["head_sha256"] == hashlib.sha256((tmp_path / "parent" / "head.pt").read_bytes()).hexdigest()
    assert source["tensors"] == len(contents_of(parent).weights)
    save_checkpoint(tmp_path / "child", child, extra={"init_source": source})
    assert load_checkpoint(tmp_path / "child").values.get("init_source") == source


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"base": "another"}, "base 'another', not "),
        ({"base_revision": "def"}, "base_revision 'def', not 'abc'"),
        ({"lora": 4}, "lora 4, not 2"),
        ({"head_dim": 256}, "head_dim 256, not 128"),
        ({"option_isolation": True}, "option_isolation True, not False"),
        ({"special_embeddings": 1}, "special_embeddings True, not False"),
        ({"weights": "full"}, "weights 'full', not 'lora'"),
    ],
)
def test_each_of_the_seven_settings_is_compared_and_named(
    attention_base: Path, tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    model = new_model(str(attention_base), ADAPTED)
    save_checkpoint(tmp_path / "c", disturbed(new_model(str(attention_base), ADAPTED)))
    write_head(tmp_path / "c", read_head(tmp_path / "c").changed(**change))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(Refused, match=f"no warm start from a checkpoint with {words}"):
        warm_start(model, tmp_path / "c")
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_all_differences_are_named_at_once(attention_base: Path, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "c", new_model(str(attention_base), Settings(lora=4, head_dim=256)))
    with pytest.raises(Refused, match=r"lora 4, not 0; head_dim 256, not 512; weights 'lora', not 'full'"):
        warm_start(new_model(str(attention_base), Settings(lora=0, head_dim=512)), tmp_path / "c")


@pytest.mark.parametrize("revision", [None, ""])
def test_a_revision_that_is_not_known_agrees_with_any(attention_base: Path, tmp_path: Path, revision: Any) -> None:
    save_checkpoint(tmp_path / "c", new_model(str(attention_base), replace(ADAPTED, base_revision=None)))
    write_head(tmp_path / "c", read_head(tmp_path / "c").changed(base_revision=revision))
    warm_start(new_model(str(attention_base), ADAPTED), tmp_path / "c")


def test_adapters_of_other_modules_are_refused_though_the_settings_agree(attention_base: Path, tmp_path: Path) -> None:
    narrow = replace(ADAPTED, lora_targets="qv")
    save_checkpoint(tmp_path / "c", new_model(str(attention_base), narrow))
    with pytest.raises(Refused, match=r"the adapter lacks \d+ tensors, base_model\.model\.layers\.0\.mlp"):
        warm_start(new_model(str(attention_base), ADAPTED), tmp_path / "c")
    save_checkpoint(tmp_path / "d", new_model(str(attention_base), ADAPTED))
    with pytest.raises(Refused, match=r"the adapter has besides \d+ tensors"):
        warm_start(new_model(str(attention_base), narrow), tmp_path / "d")


@pytest.mark.parametrize("kept", ["fewer", "strange"])
def test_full_weights_must_be_those_of_the_model(attention_base: Path, tmp_path: Path, kept: str) -> None:
    settings = Settings(lora=0)
    save_checkpoint(tmp_path / "c", new_model(str(attention_base), settings))
    path = tmp_path / "c" / "model.safetensors"
    tensors = load_file(path)
    norm = tensors.pop("norm.weight")
    if kept == "strange":
        tensors["norm.gain"] = norm
    save_file(tensors, path, metadata={"format": "pt"})
    words = {"fewer": "1 weights are not in it, norm.weight", "strange": "the model has no weights norm.gain"}[kept]
    with pytest.raises(Refused, match=words):
        warm_start(new_model(str(attention_base), settings), tmp_path / "c")


def test_a_head_of_another_shape_is_refused_before_any_weight_is_taken(attention_base: Path, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "c", disturbed(new_model(str(attention_base), ADAPTED)))
    head = read_head(tmp_path / "c")
    write_head(tmp_path / "c", head.changed(head={**head.values["head"], "q.bias": torch.zeros(3)}))
    model = new_model(str(attention_base), ADAPTED)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(DamagedFile, match=r"head\.pt: its head has tensors"):
        warm_start(model, tmp_path / "c")
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
