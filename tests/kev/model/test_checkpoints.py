"""A checkpoint comes back as it was saved, older ones still open, and a damaged one is told in one line."""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from comparing import answers, close, contents, disturbed, equal
from safetensors.torch import load_file, save_file

from kev.checkpoint import Head, read_head, read_twin, write_head
from kev.errors import DamagedFile, NotFound, Refused
from kev.model.decision_model import DecisionModel
from kev.model.layout import find_layout
from kev.model.loading import load_checkpoint, new_model
from kev.model.saving import contents_of, save_checkpoint, write_checkpoint
from kev.model.settings import Settings


@pytest.fixture(params=["attention", "hybrid"])
def base(request: pytest.FixtureRequest) -> Path:
    path: Path = request.getfixturevalue(f"{request.param}_base")
    return path


@pytest.mark.parametrize(
    "settings",
    [
        Settings(lora=0),
        Settings(lora=0, weights_dtype="bf16", head_dim=128),
        Settings(lora=4, lora_targets="qv"),
        Settings(lora=2, special_embeddings=True),
        Settings(lora=2, weights_dtype="bf16"),
    ],
    ids=["full", "full-bf16", "lora", "lora-tokens", "lora-on-bf16"],
)
def test_a_model_comes_back_bit_for_bit(base: Path, settings: Settings, tmp_path: Path) -> None:
    model = disturbed(new_model(str(base), settings))
    model.temperature = 1.75
    extra = {"args": {"lr": 1e-4, "suite": "evals/x"}, "snapshot": {"step": 3}, "unheard_of": [1, None]}
    save_checkpoint(tmp_path / "one", model, extra=extra)
    back = load_checkpoint(tmp_path / "one", merge=False)
    assert equal(answers(back), answers(model))
    assert back.temperature == 1.75 and not back.training
    own, other = model.state_dict(), back.state_dict()
    assert own.keys() == other.keys()
    assert all(torch.equal(own[name], other[name]) and own[name].dtype == other[name].dtype for name in own)
    assert {key: back.values.get(key) for key in extra} == extra
    assert read_twin(tmp_path / "one")["unheard_of"] == [1, None]
    save_checkpoint(tmp_path / "two", back)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_a_merged_adapter_answers_as_beside_the_weights(base: Path, tmp_path: Path) -> None:
    model = disturbed(new_model(str(base), Settings(lora=4)))
    save_checkpoint(tmp_path / "c", model)
    merged = load_checkpoint(tmp_path / "c")
    assert not any("lora" in name for name, _ in merged.named_parameters())
    assert close(answers(merged), answers(model))
    untouched = new_model(str(base), Settings(lora=0))
    untouched.head.load_state_dict(model.head.state_dict())
    assert equal(answers(load_checkpoint(tmp_path / "c", lora_scale=0)), answers(untouched))
    assert not close(answers(merged), answers(untouched), 1e-3)
    with pytest.raises(Refused, match="merge=False"):
        save_checkpoint(tmp_path / "again", merged)


def test_a_merge_into_bf16_rounds_once(attention_base: Path, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "c", disturbed(new_model(str(attention_base), Settings(lora=4))))
    exact = load_checkpoint(tmp_path / "c").backbone.state_dict()
    rounded = load_checkpoint(tmp_path / "c", dtype="bf16", merge=True).backbone.state_dict()
    assert all(torch.equal(rounded[name], exact[name].to(torch.bfloat16)) for name in exact)


def test_the_head_stays_fp32_beside_weights_of_any_type(attention_base: Path, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "c", new_model(str(attention_base), Settings(lora=0)))
    exact = load_checkpoint(tmp_path / "c")
    half = load_checkpoint(tmp_path / "c", dtype="bf16")
    assert (half.dtype, half.head.q.weight.dtype) == (torch.bfloat16, torch.float32)
    assert answers(half)[0].dtype == torch.float32
    assert close(answers(half), answers(exact), 0.2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert answers(exact)[0].dtype == torch.float32


def test_full_weights_are_divided_into_shards_and_come_together_again(attention_base: Path, tmp_path: Path) -> None:
    model = disturbed(new_model(str(attention_base), Settings(lora=0)))
    write_checkpoint(tmp_path / "c", contents_of(model), shard_bytes=200_000)
    shards = sorted(path.name for path in (tmp_path / "c").glob("model*.safetensors"))
    assert len(shards) > 1 and shards[0] == f"model-00001-of-{len(shards):05}.safetensors"
    assert equal(answers(load_checkpoint(tmp_path / "c")), answers(model))
    lines = [f"{name}:{hashlib.sha256((tmp_path / 'c' / name).read_bytes()).hexdigest()}" for name in shards]
    layout = find_layout(tmp_path / "c", model.values)
    assert layout.sha256 == hashlib.sha256("\n".join(lines).encode()).hexdigest()
    (tmp_path / "c" / shards[-1]).unlink()
    with pytest.raises(DamagedFile, match=rf"{shards[-1]}: missing, though model\.safetensors\.index\.json names it"):
        load_checkpoint(tmp_path / "c")


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ({"weight_map": {"w": "../elsewhere.safetensors"}}, "is no safetensors file of this directory"),
        ({"weight_map": {"w": 3}}, "3 is no safetensors file"),
        ({"weight_map": {}}, "does not say which file"),
        ([], "does not say which file"),
    ],
)
def test_an_index_that_leads_nowhere_is_refused(attention_base: Path, tmp_path: Path, index: Any, words: str) -> None:
    save_checkpoint(tmp_path / "c", new_model(str(attention_base), Settings(lora=0)))
    (tmp_path / "c" / "model.safetensors").unlink()
    (tmp_path / "c" / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(DamagedFile, match=words):
        load_checkpoint(tmp_path / "c")


def test_an_adapter_checkpoint_opens_with_the_tokenizer_of_its_own(attention_base: Path, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "c", new_model(str(attention_base), Settings(lora=2)))
    assert load_checkpoint(tmp_path / "c").directory == tmp_path / "c"
    (tmp_path / "c" / "tokenizer.json").unlink()
    assert load_checkpoint(tmp_path / "c").directory == attention_base


def test_full_weights_need_nothing_but_their_own_directory(attention_base: Path, tmp_path: Path) -> None:
    base = tmp_path / "base"
    shutil.copytree(attention_base, base)
    model = new_model(str(base), Settings(lora=0))
    save_checkpoint(tmp_path / "c", model)
    shutil.rmtree(base)
    assert equal(answers(load_checkpoint(tmp_path / "c")), answers(model))


def test_what_is_detached_does_not_follow_the_training(attention_base: Path, tmp_path: Path) -> None:
    model = new_model(str(attention_base), Settings(lora=0))
    before, kept = answers(model), contents_of(model, detach=True)
    after = answers(disturbed(model))
    write_checkpoint(tmp_path / "c", kept)
    assert equal(answers(load_checkpoint(tmp_path / "c")), before) and not equal(before, after)


def test_weights_gathered_in_another_type_are_saved_as_what_they_are(attention_base: Path, tmp_path: Path) -> None:
    model = new_model(str(attention_base), Settings(lora=0, weights_dtype="bf16"))
    gathered = {name: tensor.to(torch.bfloat16) for name, tensor in model.backbone.float().state_dict().items()}
    write_checkpoint(tmp_path / "c", contents_of(model, weights=gathered))
    back = load_checkpoint(tmp_path / "c")
    assert back.dtype == torch.bfloat16
    assert all(torch.equal(tensor, gathered[name]) for name, tensor in back.backbone.state_dict().items())


def test_the_known_keys_are_the_models_own(attention_base: Path, tmp_path: Path) -> None:
    model = new_model(str(attention_base), Settings(lora=0))
    wrong = {"base": "elsewhere", "lora": 9, "head": {}, "temperature": 3.0, "weights": "lora", "holdout": ["s"]}
    save_checkpoint(tmp_path / "c", model, extra=wrong)
    head = read_head(tmp_path / "c")
    assert (head.base, head.get("lora"), head.temperature) == (str(attention_base), 0, 1.0)
    assert head.get("holdout") == ["s"]
    load_checkpoint(tmp_path / "c")


def test_no_checkpoint_is_written_over_another(attention_base: Path, tmp_path: Path) -> None:
    model = new_model(str(attention_base), Settings(lora=2))
    save_checkpoint(tmp_path / "c", model)
    before = contents(tmp_path / "c")
    with pytest.raises(Refused, match="lies here already"):
        save_checkpoint(tmp_path / "c", model)
    assert contents(tmp_path / "c") == before


def test_where_head_pt_lies_everything_else_does(
    attention_base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = new_model(str(attention_base), Settings(lora=0))
    renames = 0
    replace = Path.replace

    def dying(self: Path, target: Path) -> Path:
        nonlocal renames
        if renames == 0:
            raise KeyboardInterrupt
        renames -= 1
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", dying)
    for survived in range(6):
        renames, directory = survived, tmp_path / str(survived)
        with pytest.raises(KeyboardInterrupt):
            save_checkpoint(directory, model)
        if (directory / "head.pt").exists():
            load_checkpoint(directory)
        else:
            with pytest.raises(NotFound):
                load_checkpoint(directory)
        assert not list(directory.glob(".*.tmp"))
    assert (tmp_path / "5" / "head.pt").exists(), "only the twin was left to write"


def first_generation(directory: Path, model: DecisionModel, **values: Any) -> None:
    """The same checkpoint with the `head.pt` that the oldest writers made."""
    tensors = {name: tensor.clone() for name, tensor in model.head.state_dict().items()}
    (directory / "head.json").unlink()
    torch.save({"base": model.values.base, "head": tensors, **values}, directory / "head.pt")


def test_heads_of_older_writers_open_with_the_defaults_of_their_time(attention_base: Path, tmp_path: Path) -> None:
    model = disturbed(new_model(str(attention_base), Settings(lora=3)))
    save_checkpoint(tmp_path / "c", model)
    first_generation(tmp_path / "c", model, lora=3)
    back = load_checkpoint(tmp_path / "c")
    assert back.temperature == 1.0 and not back.encoder.option_isolation
    assert close(answers(back), answers(model))
    first_generation_head = read_head(tmp_path / "c")
    write_head(tmp_path / "c", first_generation_head.changed(temperature=2.0))
    assert close(answers(load_checkpoint(tmp_path / "c")), [row / 2 for row in answers(model)])
    assert equal(answers(load_checkpoint(tmp_path / "c", temperature=1.0)), answers(back))


def test_a_configuration_of_an_older_transformers_names_its_dtype_otherwise(
    attention_base: Path, tmp_path: Path
) -> None:
    save_checkpoint(tmp_path / "c", new_model(str(attention_base), Settings(lora=0, weights_dtype="bf16")))
    path = tmp_path / "c" / "config.json"
    config = json.loads(path.read_text())
    config["torch_dtype"] = config.pop("dtype")
    path.write_text(json.dumps(config))
    assert load_checkpoint(tmp_path / "c").dtype == torch.bfloat16


class Runs:
    """Pickles as a call that would make a directory, if anybody ran it."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.marker),)


def damage(directory: Path, what: str) -> None:
    head = read_head(directory)
    adapter, weights = directory / "adapter_model.safetensors", directory / "model.safetensors"
    match what:
        case "hostile":
            torch.save({**head.values, "x": Runs(directory / "MARKER")}, directory / "head.pt")
        case "torn":
            path = adapter if adapter.exists() else weights
            path.write_bytes(path.read_bytes()[:-5])
        case "stub":
            (adapter if adapter.exists() else weights).write_bytes(b"\xff" * 40)
        case "no weights":
            (adapter if adapter.exists() else weights).unlink()
        case "other weights":
            write_head(directory, head.changed(weights="full" if head.get("weights") == "lora" else "lora"))
        case "no head tensors":
            write_head(directory, Head({key: value for key, value in head.values.items() if key != "head"}))
        case "wrong head size":
            write_head(directory, head.changed(head_dim=64))
        case "lost tensor":
            path = adapter if adapter.exists() else weights
            tensors = load_file(path)
            tensors.pop(min(tensors))
            save_file(tensors, path, metadata={"format": "pt"})
        case "other dtype":
            write_head(directory, head.changed(weights_dtype="bf16"))
        case "other adapter":
            path = directory / "adapter_config.json"
            path.write_text(json.dumps(json.loads(path.read_text()) | {"peft_type": "IA3"}))
        case "huge head":
            write_head(directory, head.changed(head_dim=10**9))
        case "strange dtype":
            write_head(directory, head.changed(weights_dtype=["bf16"]))
        case "head is a list":
            write_head(directory, head.changed(head=[1]))
        case "diverged head" | "empty head" | "sparse head" | "whole numbers":
            made = {
                "diverged head": lambda tensor: tensor * float("nan"),
                "empty head": lambda tensor: tensor.to("meta"),
                "sparse head": torch.Tensor.to_sparse,
                "whole numbers": torch.Tensor.long,
            }[what]
            values = {name: made(tensor) for name, tensor in head.get("head").items()}
            torch.save({**head.values, "head": values}, directory / "head.pt")
        case "huge rank":
            path = directory / "adapter_config.json"
            path.write_text(json.dumps(json.loads(path.read_text()) | {"r": 10**9}))
        case "no base":
            write_head(directory, head.changed(base="nobody/nothing"))


@pytest.mark.parametrize(
    ("lora", "what", "words"),
    [
        (2, "hostile", r"head\.pt: loading it would call .*mkdir"),
        (2, "torn", r"adapter_model\.safetensors: .* bytes where its header describes"),
        (0, "torn", r"model\.safetensors: .* bytes where its header describes"),
        (0, "stub", r"model\.safetensors: .*do not begin with the header of a safetensors file"),
        (2, "no weights", r"adapter_model\.safetensors: missing, though adapter_config\.json is there"),
        (0, "no weights", r"holds neither an adapter .* nor full weights"),
        (2, "other weights", r"its files are those of lora weights, its head\.pt speaks of full"),
        (0, "other weights", r"its files are those of full weights, its head\.pt speaks of lora"),
        (0, "no head tensors", r"head\.pt: its head has tensors {}"),
        (0, "wrong head size", r"head\.pt: its head has tensors .*256"),
        (2, "lost tensor", r"the adapter lacks 1 tensors, base_model\.model\.layers\.0"),
        (0, "lost tensor", r"1 weights are not in its files, embed_tokens\.weight"),
        (0, "other dtype", r"config\.json says float32 weights, head\.pt bf16"),
        (2, "other adapter", r"an adapter of type 'IA3'"),
        (0, "huge head", r"head\.pt: its head_dim 1000000000 is not a number from 1 to"),
        (0, "strange dtype", r"head\.pt: its weights_dtype \['bf16'\] is none of fp32, bf16, fp16"),
        (0, "head is a list", r"head\.pt: its head has tensors {}"),
        (0, "diverged head", r"head\.pt: its head's q\.weight holds values that are no numbers; its training diverged"),
        (0, "empty head", r"head\.pt: its head's q\.weight is no plain tensor of floats"),
        (0, "sparse head", r"head\.pt: its head's q\.weight is no plain tensor of floats"),
        (0, "whole numbers", r"head\.pt: its head's q\.weight is no plain tensor of floats"),
        (2, "huge rank", r"an adapter of rank 1000000000; 1 to 4,096 is what is read"),
        (2, "no base", r"nobody/nothing: neither a directory nor in the Hub's cache; fetch it with `hf download"),
    ],
)
def test_damage_is_told_in_one_line(attention_base: Path, tmp_path: Path, lora: int, what: str, words: str) -> None:
    directory = tmp_path / "c"
    save_checkpoint(directory, new_model(str(attention_base), Settings(lora=lora)))
    damage(directory, what)
    with pytest.raises((DamagedFile, NotFound), match=words) as caught:
        load_checkpoint(directory)
    assert "\n" not in str(caught.value)
    assert not (directory / "MARKER").exists()


def test_an_adapters_configuration_names_no_module_to_import(
    attention_base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "planted.py").write_text(f"open({str(tmp_path / 'MARKER')!r}, 'w')")
    monkeypatch.syspath_prepend(tmp_path)
    save_checkpoint(tmp_path / "c", new_model(str(attention_base), Settings(lora=2)))
    path = tmp_path / "c" / "adapter_config.json"
    planted = {"megatron_config": {"x": 1}, "megatron_core": "planted", "a_key_of_a_newer_peft": True}
    path.write_text(json.dumps(json.loads(path.read_text()) | planted))
    load_checkpoint(tmp_path / "c")
    assert not (tmp_path / "MARKER").exists()


@pytest.mark.parametrize("cut", [1, 5, 1_000])
def test_a_base_whose_weights_are_cut_short_is_told_by_the_file(attention_base: Path, tmp_path: Path, cut: int) -> None:
    base = shutil.copytree(attention_base, tmp_path / "base")
    path = base / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(
        DamagedFile, match=r"model\.safetensors: [\d,]+ bytes where its header describes [\d,]+: cut short"
    ):
        new_model(str(base), Settings(lora=0))


def test_an_adapter_alone_is_no_base_and_is_not_taken_for_one_left_over(attention_base: Path, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "c", new_model(str(attention_base), Settings(lora=2)))
    with pytest.raises(Refused, match="an adapter without the weights it belongs to; merge it"):
        new_model(str(tmp_path / "c"), Settings(lora=0))


@pytest.mark.parametrize("value", [["<|user|>"], {"user": "<|user|>"}, {"user": {"content": "<|user|>"}}, None])
def test_what_a_tokenizers_configuration_says_of_extra_tokens_does_not_matter(
    attention_base: Path, tmp_path: Path, value: Any
) -> None:
    model = new_model(str(attention_base), Settings(lora=0))
    save_checkpoint(tmp_path / "c", model)
    path = tmp_path / "c" / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"extra_special_tokens": value}))
    assert equal(answers(load_checkpoint(tmp_path / "c")), answers(model))
