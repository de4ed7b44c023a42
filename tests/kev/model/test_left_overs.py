"""Files left over from other saves: what is used is decided by looking into them, and said."""

import json
import shutil
from pathlib import Path

import pytest
from comparing import answers, disturbed, equal
from safetensors.torch import load_file, save_file

from kev.benchmark import main as benchmark
from kev.errors import DamagedFile, KevError, Refused
from kev.model.decision_model import DecisionModel
from kev.model.interpolation import interpolate, left_overs
from kev.model.loading import load_checkpoint, new_model
from kev.model.saving import contents_of, save_checkpoint, write_checkpoint
from kev.model.settings import Settings
from kev.model.tiny_base import base_sha256
from kev.model.warm_start import warm_start
from kev.reads.records import select_file
from kev.trial.tools import torch_tools
from kev.worker.models import read_checkpoint


def two_saves(base: Path, directory: Path) -> tuple[DecisionModel, list[Path]]:
    """A checkpoint in one file in `directory`, and the shards and the index of the same one beside it."""
    model = disturbed(new_model(str(base), Settings(lora=0)))
    save_checkpoint(directory, model)
    write_checkpoint(directory / "sharded", contents_of(model), shard_bytes=200_000)
    shards = []
    for path in sorted((directory / "sharded").glob("model*")):
        shutil.move(path, directory)
        shards += [directory / path.name] if path.suffix == ".safetensors" else []
    shutil.rmtree(directory / "sharded")
    return model, shards


def without_last(path: Path) -> None:
    """Take the tensor that stands last in every model out of a file."""
    tensors = load_file(path)
    kept = {name: tensor.clone() for name, tensor in tensors.items() if name != "norm.weight"}
    assert len(kept) < len(tensors)
    save_file(kept, path, metadata={"format": "pt"})


def test_an_index_of_another_sharding_beside_whole_weights_is_ignored_and_said_so(
    attention_base: Path, tmp_path: Path
) -> None:
    model, shards = two_saves(attention_base, tmp_path / "c")
    for gone in range(len(shards)):
        shards[gone].unlink()  # a part of them is as good as none
        opened = load_checkpoint(tmp_path / "c")
        assert equal(answers(opened), answers(model))
        assert opened.remarks == (
            f"{tmp_path / 'c'}: model.safetensors.index.json is of another sharding and is ignored; "
            "every tensor is in model.safetensors",
        )


def test_a_missing_shard_is_not_made_up_for_by_a_file_that_lacks_a_tensor(attention_base: Path, tmp_path: Path) -> None:
    _, shards = two_saves(attention_base, tmp_path / "c")
    shards[0].unlink()
    without_last(tmp_path / "c" / "model.safetensors")
    with pytest.raises(DamagedFile, match=rf"{shards[0].name}: missing.*, and model\.safetensors lacks norm\.weight$"):
        load_checkpoint(tmp_path / "c")


def test_of_two_saves_the_one_that_has_more_is_used_and_named(attention_base: Path, tmp_path: Path) -> None:
    model, shards = two_saves(attention_base, tmp_path / "c")
    other = shutil.copytree(tmp_path / "c", tmp_path / "other")
    without_last(tmp_path / "c" / "model.safetensors")
    opened = load_checkpoint(tmp_path / "c")
    assert equal(answers(opened), answers(model))
    [remark] = opened.remarks
    assert "model.safetensors is another save with fewer tensors and is ignored" in remark
    assert all(shard.name in remark for shard in shards)

    index = other / "model.safetensors.index.json"
    table = json.loads(index.read_text())
    last = table["weight_map"].pop("norm.weight")
    index.write_text(json.dumps(table))
    without_last(other / last)
    opened = load_checkpoint(other)
    assert equal(answers(opened), answers(model))
    assert opened.remarks[0].endswith("are another save with fewer tensors and are ignored; model.safetensors is used")


def test_two_saves_of_the_same_tensors_are_refused_by_name(attention_base: Path, tmp_path: Path) -> None:
    two_saves(attention_base, tmp_path / "c")
    with pytest.raises(DamagedFile, match=r"/model\.safetensors: one of two saves, the other in model-00001-of-"):
        load_checkpoint(tmp_path / "c")


def test_a_shard_that_lacks_what_the_index_puts_there_is_refused_by_name(attention_base: Path, tmp_path: Path) -> None:
    _, shards = two_saves(attention_base, tmp_path / "c")
    (tmp_path / "c" / "model.safetensors").unlink()
    without_last(shards[-1])
    with pytest.raises(DamagedFile, match=rf"{shards[-1].name}: lacks norm\.weight, which .*index\.json puts there"):
        load_checkpoint(tmp_path / "c")


def test_a_base_is_opened_by_the_same_files_as_a_checkpoint(attention_base: Path, tmp_path: Path) -> None:
    model, shards = two_saves(attention_base, tmp_path / "base")
    without_last(tmp_path / "base" / "model.safetensors")
    opened = new_model(str(tmp_path / "base"), Settings(lora=0))
    assert shards[0].name in opened.remarks[0]
    assert equal(list(opened.backbone.parameters()), list(model.backbone.parameters()))
    adapted = new_model(str(tmp_path / "base"), Settings(lora=2))
    save_checkpoint(tmp_path / "adapter", adapted)
    assert load_checkpoint(tmp_path / "adapter").remarks == opened.remarks
    shards[0].unlink()
    for opening in (Settings(lora=0), Settings(lora=2)):
        with pytest.raises(DamagedFile, match=rf"{shards[0].name}: missing"):
            new_model(str(tmp_path / "base"), opening)


def test_the_hash_of_a_base_is_that_of_the_files_that_are_used(attention_base: Path, tmp_path: Path) -> None:
    two_saves(attention_base, tmp_path / "base")
    single = tmp_path / "base" / "model.safetensors"
    without_last(single)
    found = base_sha256(tmp_path / "base")
    single.unlink()
    assert base_sha256(tmp_path / "base") == found


def test_an_adapters_configuration_left_beside_merged_weights_is_not_followed_and_said_so(
    attention_base: Path, tmp_path: Path
) -> None:
    model = disturbed(new_model(str(attention_base), Settings(lora=0)))
    save_checkpoint(tmp_path / "c", model)
    (tmp_path / "c" / "adapter_config.json").write_text('{"peft_type": "LORA", "base_model_name_or_path": "x/y"}')
    remark = f"{tmp_path / 'c'}: adapter_config.json left beside whole weights, used without it"
    opened = load_checkpoint(tmp_path / "c")
    assert equal(answers(opened), answers(model)) and opened.remarks == (remark,)
    based = new_model(str(tmp_path / "c"), Settings(lora=0))
    assert equal(list(based.backbone.parameters()), list(model.backbone.parameters())) and based.remarks == (remark,)


def test_an_adapter_whole_beside_full_weights_is_told_by_the_head_and_refused_without_one(
    attention_base: Path, tmp_path: Path
) -> None:
    model = disturbed(new_model(str(attention_base), Settings(lora=0)))
    save_checkpoint(tmp_path / "c", model)
    save_checkpoint(tmp_path / "adapter", new_model(str(attention_base), Settings(lora=2)))
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        shutil.copy(tmp_path / "adapter" / name, tmp_path / "c")
    opened = load_checkpoint(tmp_path / "c")
    assert equal(answers(opened), answers(model))
    assert "adapter_config.json and adapter_model.safetensors left beside whole weights" in opened.remarks[0]
    with pytest.raises(Refused, match="nothing says whether it is merged"):
        new_model(str(tmp_path / "c"), Settings(lora=0))


def test_a_tensor_in_two_files_of_one_index_is_refused(attention_base: Path, tmp_path: Path) -> None:
    _, shards = two_saves(attention_base, tmp_path / "c")
    (tmp_path / "c" / "model.safetensors").unlink()
    first = load_file(shards[0])
    save_file({**load_file(shards[1]), min(first): first[min(first)].clone()}, shards[1], metadata={"format": "pt"})
    with pytest.raises(DamagedFile, match=rf"{shards[1].name}: {min(first)} is in another file too"):
        load_checkpoint(tmp_path / "c")


def break_weights(path: Path, how: str) -> None:
    whole = path.read_bytes()
    contents = {
        "cut": whole[:-1],
        "cut in its header": whole[:40],
        "longer": whole + b"x",
        "empty": b"",
        "pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:0f\nsize 41\n",
        "pickle": b"\x80\x02}q\x00.",
    }
    path.write_bytes(contents[how])


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("cut", "cut short"), ("cut in its header", "do not begin with the header"), ("longer", "header describes"),
        ("empty", ": empty"), ("pointer", "a Git LFS pointer"), ("pickle", "do not begin with the header"),
    ],
)  # fmt: skip
def test_weights_that_are_not_whole_are_refused_by_name_wherever_they_are_opened(
    attention_base: Path, tmp_path: Path, how: str, says: str
) -> None:
    model = disturbed(new_model(str(attention_base), Settings(lora=0)))
    save_checkpoint(tmp_path / "whole", model)
    save_checkpoint(tmp_path / "c", model)
    base = shutil.copytree(attention_base, tmp_path / "base")
    for directory in (tmp_path / "c", base):
        break_weights(directory / "model.safetensors", how)
    for opening in (
        lambda: load_checkpoint(tmp_path / "c"),
        lambda: warm_start(model, tmp_path / "c"),
        lambda: new_model(str(base), Settings(lora=2)),
        lambda: base_sha256(base),
        lambda: interpolate(tmp_path / "c", attention_base, 0.5, tmp_path / "out", blend_head=False, note={}),
        lambda: interpolate(tmp_path / "whole", tmp_path / "c", 0.5, tmp_path / "out", blend_head=False, note={}),
        lambda: interpolate(tmp_path / "whole", base, 0.5, tmp_path / "out", blend_head=False, note={}),
    ):
        with pytest.raises(DamagedFile, match=rf"/model\.safetensors: .*{says}|/model\.safetensors{says}$"):
            opening()
    assert not (tmp_path / "out" / "head.pt").exists()


@pytest.mark.parametrize(
    ("name", "says"),
    [("pytorch_model.bin", "pickled weights are never opened"), ("mine.safetensors", "save with save_pretrained")],
)
def test_a_directory_whose_weights_have_other_names_says_what_is_there(
    attention_base: Path, tmp_path: Path, name: str, says: str
) -> None:
    save_checkpoint(tmp_path / "c", disturbed(new_model(str(attention_base), Settings(lora=0))))
    base = shutil.copytree(attention_base, tmp_path / "base")
    for directory in (tmp_path / "c", base):
        (directory / "model.safetensors").rename(directory / name)
        (directory / "optimizer.pt").touch()
    for opening in (lambda: load_checkpoint(tmp_path / "c"), lambda: new_model(str(base), Settings(lora=0))):
        with pytest.raises(KevError, match=rf"{name}.*{says}"):
            opening()


def test_whoever_reads_a_checkpoint_says_what_it_did_not_use(
    attention_base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_checkpoint(tmp_path / "c", disturbed(new_model(str(attention_base), Settings(lora=0))))
    (tmp_path / "c" / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    remark = f"!!! {tmp_path / 'c'}: adapter_config.json left beside whole weights, used without it"
    record = {"state": "a", "questions": {"q": {"type": "noul", "label": True, "src": "s"}}}
    (tmp_path / "one.jsonl").write_text(json.dumps(record))
    said: list[str] = []
    torch_tools("cpu", say=said.append).open_scorer(tmp_path / "c")
    read_checkpoint(tmp_path / "c", select_file(tmp_path / "one.jsonl"), tmp_path / "read", said.append, name="c")
    assert said.count(remark) == 2
    arguments = ["--data", str(tmp_path / "one.jsonl"), "--out", str(tmp_path / "other"), "--device", "cpu"]
    assert benchmark(["--run", str(tmp_path / "c"), *arguments]) == 0
    assert remark in capsys.readouterr().err.splitlines()


def test_a_warm_start_and_a_blend_say_what_they_did_not_use(attention_base: Path, tmp_path: Path) -> None:
    _, shards = two_saves(attention_base, tmp_path / "c")
    shards[0].unlink()
    started = new_model(str(attention_base), Settings(lora=0))
    warm_start(started, tmp_path / "c")
    assert started.remarks == left_overs(tmp_path / "c") == load_checkpoint(tmp_path / "c").remarks
    assert left_overs(attention_base) == ()
    interpolate(tmp_path / "c", attention_base, 0.5, tmp_path / "out", blend_head=False, note={})
    assert load_checkpoint(tmp_path / "out").remarks == ()


def test_a_configuration_of_another_width_names_the_first_weight_that_does_not_fit(
    attention_base: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    base = shutil.copytree(attention_base, tmp_path / "base")
    config = json.loads((base / "config.json").read_text())
    width = config["hidden_size"]
    (base / "config.json").write_text(json.dumps({**config, "hidden_size": 2 * width}))
    with pytest.raises(DamagedFile, match=rf"embed_tokens\.weight is \(\d+, {width}\) .*, {2 * width}\) by its config"):
        new_model(str(base), Settings(lora=0))
    assert capfd.readouterr().err == "", "one line says it"
