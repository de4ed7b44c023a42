"""What is graded is what was submitted: nothing leads out of a workspace, and left-overs are told from weights."""

import json
import os
from pathlib import Path, PurePosixPath

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_directories import model, safetensors, tensors, trained

from kev.autorl.lineage import NotNumbers, trace
from kev.autorl.model_files import repaired_tokenizer
from kev.autorl.opening import inside
from kev.autorl.rejection import Rejected
from kev.autorl.sealing import Sealer
from kev.errors import DamagedFile
from kev.model.tensors import read_tensors

BASE = tensors(0)


@pytest.fixture
def space(tmp_path: Path) -> Path:
    (tmp_path / "w" / "output").mkdir(parents=True)
    return tmp_path / "w"


def sealer(space: Path) -> Sealer:
    return Sealer(space, space.parent / "vault")


def code_of(space: Path, path: str) -> str:
    with pytest.raises(Rejected) as found:
        sealer(space).seal(path)
    assert not list((space.parent / "vault").glob("[!.]*")) and not list((space.parent / "vault").glob(".scratch*"))
    return found.value.code


# ------------------------------------------------------------------------------------------------- paths


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../secret", "path_outside"), ("output/../../secret", "path_outside"), ("/etc", "path_outside"),
        ("output/v1\0", "bad_path"), ("", "bad_path"), (".", "bad_path"), ("x" * 5000, "bad_path"),
        ("output/\ud800", "bad_path"), ("output/none", "missing_model"), ("output/file", "missing_model"),
        ("output/out", "link"), ("way/v1", "link"), ("output/dangling", "link"), ("output/inner", "link"),
    ],
)  # fmt: skip
def test_a_path_leads_nowhere_but_into_the_workspace(space: Path, path: str, code: str) -> None:
    model(space.parent / "secret", BASE)
    model(space / "output" / "v1", BASE)
    (space / "output" / "file").write_text("x")
    (space / "output" / "out").symlink_to(space.parent / "secret")
    (space / "output" / "inner").symlink_to("v1")
    (space / "output" / "dangling").symlink_to("nowhere")
    (space / "way").symlink_to(space / "output")
    assert code_of(space, path) == code


def test_absolute_and_relative_spellings_of_a_path_are_one(space: Path) -> None:
    model(space / "output" / "v1", BASE)
    spelled = [str(space / "output" / "v1"), "output/v1", "./output//v1/", str(space.resolve() / "output/v1/")]
    assert {inside(space, each) for each in spelled} == {PurePosixPath("output/v1")}
    assert len({sealer(space).seal(each).sha256 for each in spelled}) == 1


@given(st.text(max_size=40))
def test_no_text_names_a_place_outside(text: str) -> None:
    try:
        path = inside(Path("/w"), text)
    except Rejected:
        return
    assert not path.is_absolute() and ".." not in path.parts and path.parts


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_file_that_is_a_link_or_a_pipe_is_refused(space: Path, name: str) -> None:
    directory = model(space / "output" / "v1", BASE)
    (directory / name).rename(space.parent / "elsewhere")
    (directory / name).symlink_to(space.parent / "elsewhere")
    assert code_of(space, "output/v1") == "link"
    (directory / name).unlink()
    os.mkfifo(directory / name)
    assert code_of(space, "output/v1") == "bad_path"


# ------------------------------------------------------------------------------------------------- copies


def test_a_copy_holds_what_loaders_read_and_nothing_that_runs(space: Path) -> None:
    config = b'{"model_type": "x", "auto_map": {"AutoModel": "mine.Model"}}'
    directory = model(
        space / "output" / "v1", BASE, config__json=config, mine__py=b"boom", training_args__bin=b"pickle",
        optimizer__pt=b"pickle", generation_config__json=b"{}", chat_template__jinja=b"x", README__md=b"x",
    )  # fmt: skip
    (directory / "2027_results").mkdir()
    sealed = sealer(space).seal("output/v1")
    assert sorted(path.name for path in sealed.directory.iterdir()) == ["config.json", "model.safetensors"]
    assert "auto_map" not in json.loads((sealed.directory / "config.json").read_text())
    assert (directory / "config.json").read_bytes() == config
    assert any("never run" in remark for remark in sealed.remarks)


def test_a_change_of_equal_size_with_its_time_set_back_is_another_submission(space: Path) -> None:
    directory = model(space / "output" / "v1", BASE)
    path, one = directory / "model.safetensors", sealer(space)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    first = one.seal("output/v1").sha256
    assert one.seal("output/v1").sha256 == first
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    with path.open("r+b") as stream:
        stream.write(content)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    second = one.seal("output/v1")
    assert second.sha256 != first
    assert (second.directory / "model.safetensors").read_bytes() == bytes(content)


def test_a_touched_or_moved_copy_is_the_same_submission(space: Path) -> None:
    directory = model(space / "output" / "v1", BASE)
    first = sealer(space).seal("output/v1")
    os.utime(directory / "model.safetensors")
    directory.rename(space / "output" / "v2")
    assert sealer(space).seal("output/v2") == first


def test_a_file_that_is_written_while_it_is_read_is_refused(space: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = model(space / "output" / "v1", BASE)
    read = os.read

    def read_while_writing(descriptor: int, size: int) -> bytes:
        with (directory / "model.safetensors").open("ab") as stream:
            stream.write(b"x")
        return read(descriptor, 64)

    monkeypatch.setattr(os, "read", read_while_writing)
    size = (directory / "model.safetensors").stat().st_size
    with pytest.raises(Rejected) as found:
        sealer(space).seal("output/v1")
    assert found.value.code == "changed_while_read"
    assert (directory / "model.safetensors").stat().st_size < 2 * size, "it grows as it is read, and would never end"


# ------------------------------------------------------------------------------------------------- weights

A, B = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
NAMES = list(BASE)


def sharded(space: Path, files: dict[str, list[str]], index: dict[str, str] | None, *others: str) -> Path:
    directory = space / "output" / "v1"
    directory.mkdir()
    (directory / "config.json").write_text("{}")
    for name, keys in files.items():
        (directory / name).write_bytes(safetensors({key: BASE[key] for key in keys}))
    if index is not None:
        (directory / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    for name in others:
        (directory / name).write_text('{"peft_type": "LORA"}')
    return directory


INDEXED = {name: A if place < 2 else B for place, name in enumerate(NAMES)}
HALVES = {A: NAMES[:2], B: NAMES[2:]}


@pytest.mark.parametrize(
    ("files", "index", "others", "used", "remark"),
    [
        (HALVES, INDEXED, (), [A, B], ""),
        ({"model.safetensors": NAMES}, dict.fromkeys(NAMES, "model-00001-of-00009.safetensors"), (),
         ["model.safetensors"], "another sharding"),
        ({**HALVES, "model.safetensors": NAMES[:1]}, INDEXED, (), [A, B], "another save"),
        ({"model.safetensors": NAMES}, None, ("adapter_config.json",), ["model.safetensors"], "beside whole weights"),
    ],
)  # fmt: skip
def test_left_overs_beside_whole_weights_are_named_and_not_copied(
    space: Path, files: dict[str, list[str]], index: dict[str, str] | None, others: tuple[str, ...], used: list[str],
    remark: str,
) -> None:  # fmt: skip
    sharded(space, files, index, *others)
    sealed = sealer(space).seal("output/v1")
    assert sorted(path.name for path in sealed.directory.glob("*.safetensors")) == used
    assert sealed.weights().tensors.keys() == BASE.keys()
    assert not (sealed.directory / "adapter_config.json").exists()
    assert any(remark in said for said in sealed.remarks) or not remark


@pytest.mark.parametrize(
    ("files", "index", "others", "code", "says"),
    [
        ({A: NAMES[:2]}, INDEXED, (), "broken_weights", B),
        ({A: NAMES[:2], "model.safetensors": NAMES[:3]}, INDEXED, (), "broken_weights", B),
        ({A: NAMES[:2], B: NAMES[3:]}, INDEXED, (), "broken_weights", f"{B}: lacks"),
        ({**HALVES, "model.safetensors": NAMES}, INDEXED, (), "broken_weights", "two saves"),
        ({"adapter_model.safetensors": NAMES}, None, ("adapter_config.json",), "adapter", "merge_and_unload"),
        ({}, None, ("pytorch_model.bin",), "no_safetensors", "pickled"),
        ({"other.safetensors": NAMES}, None, (), "no_safetensors", "other.safetensors"),
        ({}, None, (), "no_safetensors", "save_pretrained"),
        ({}, {"a": "../x.safetensors"}, (), "broken_weights", "of this directory"),
    ],
)  # fmt: skip
def test_weights_that_are_not_whole_are_never_graded(
    space: Path, files: dict[str, list[str]], index: dict[str, str] | None, others: tuple[str, ...], code: str,
    says: str,
) -> None:  # fmt: skip
    sharded(space, files, index, *others)
    with pytest.raises(Rejected, match=says) as found:
        sealer(space).seal("output/v1")
    assert found.value.code == code


@pytest.mark.parametrize(
    "content",
    [
        b"", b"1234567", safetensors(BASE)[:-5], safetensors(BASE) + b"x", b"\xff" * 100, b"\2\0\0\0\0\0\0\0[]",
        b"\x0a\0\0\0\0\0\0\0" + b'{"a": 5}  ',
    ],
)  # fmt: skip
def test_a_broken_file_of_weights_is_refused_by_name(space: Path, content: bytes) -> None:
    directory = model(space / "output" / "v1", BASE)
    (directory / "model.safetensors").write_bytes(content)
    with pytest.raises(Rejected, match=r"^model\.safetensors: ") as found:
        sealer(space).seal("output/v1")
    assert found.value.code == "broken_weights"


@given(st.data())
def test_no_change_to_a_header_makes_a_file_lie_about_its_tensors(data: st.DataObject) -> None:
    import tempfile

    content = bytearray(safetensors({"a": numpy.ones((2, 3)), "b": numpy.ones(4)}))
    place = data.draw(st.integers(0, len(content) - 1 - 40))
    content[place] = data.draw(st.integers(0, 255))
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "x"
        path.write_bytes(bytes(content))
        try:
            found = read_tensors(path)
        except DamagedFile:
            return
        assert sum(tensor.end - tensor.start for tensor in found.values()) == 40


def test_weights_with_an_adapter_inside_are_not_merged(space: Path) -> None:
    model(space / "output" / "v1", {"base_model.model.layer.lora_A.weight": numpy.ones((2, 2))})
    assert code_of(space, "output/v1") == "adapter"


# ------------------------------------------------------------------------------------------------- tokenizers


@pytest.mark.parametrize(
    ("extra", "becomes"),
    [(["<a>", "<b>"], ["<b>", "<a>"]), (None, ["<b>"]), ({"user": "<a>"}, ["<b>"]), ([], ["<b>"])],
)
def test_a_tokenizer_is_put_right_in_the_copy_only(space: Path, extra: object, becomes: list[str]) -> None:
    config = {"extra_special_tokens": extra, "additional_special_tokens": ["<b>"], "tokenizer_class": "X", "mine": 1}
    written = json.dumps(config).encode()
    directory = model(space / "output" / "v1", BASE, tokenizer_config__json=written)
    sealed = sealer(space).seal("output/v1")
    found = json.loads((sealed.directory / "tokenizer_config.json").read_text())
    assert found["additional_special_tokens"] == becomes and found["mine"] == 1
    assert found.get("extra_special_tokens") == (extra if isinstance(extra, dict) else None)
    assert bool(sealed.remarks) == (not isinstance(extra, dict))
    assert (directory / "tokenizer_config.json").read_bytes() == written


@pytest.mark.parametrize(
    ("key", "written", "becomes"),
    [
        ("extra_special_tokens", "<a>", {"additional_special_tokens": ["<a>"]}),
        ("extra_special_tokens", 7, {}),
        ("extra_special_tokens", ["<a>", None, 3, "<a>"], {"additional_special_tokens": ["<a>"]}),
        ("extra_special_tokens", {"user": None, "tool": "<t>"}, {"extra_special_tokens": {"tool": "<t>"}}),
        (
            "extra_special_tokens",
            {"user": {"content": "<u>"}},
            {"extra_special_tokens": {"user": {"content": "<u>", "__type": "AddedToken"}}},
        ),
        ("additional_special_tokens", {"user": "<u>"}, {"additional_special_tokens": ["<u>"]}),
        (
            "additional_special_tokens",
            [{"content": "<u>", "lstrip": True}],
            {"additional_special_tokens": [{"content": "<u>", "lstrip": True, "__type": "AddedToken"}]},
        ),
    ],
)
def test_tokens_in_a_shape_that_no_loader_reads_are_written_in_one_that_all_do(
    key: str, written: object, becomes: dict[str, object]
) -> None:
    repaired, said = repaired_tokenizer({key: written})
    assert repaired == becomes
    assert len(said) == 1 and key in said[0]
    assert repaired_tokenizer(repaired) == (repaired, [])


def test_infinity_in_a_configuration_is_read_as_python_writes_it(space: Path) -> None:
    config = b'{"model_type": "made-up", "time_step_limit": [0.0, Infinity], "auto_map": {"AutoModel": "x.Y"}}'
    model(space / "output" / "v1", BASE, config__json=config)
    sealed = sealer(space).seal("output/v1")
    found = json.loads((sealed.directory / "config.json").read_text())
    assert found == {"model_type": "made-up", "time_step_limit": [0.0, float("inf")]}


def test_the_class_that_one_generation_writes_is_made_one_that_all_read() -> None:
    repaired, said = repaired_tokenizer({"tokenizer_class": "TokenizersBackend"})
    assert repaired == {"tokenizer_class": "PreTrainedTokenizerFast"} and len(said) == 1
    assert repaired_tokenizer(repaired) == (repaired, [])


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff\xfe{"])
def test_a_configuration_that_cannot_be_read_is_refused_by_name(space: Path, content: bytes) -> None:
    model(space / "output" / "v1", BASE, config__json=content)
    assert code_of(space, "output/v1") == "bad_config"


# ------------------------------------------------------------------------------------------------- lineage


def read(directory: Path, weights: dict[str, object], dtype: str = "F32") -> dict[str, object]:
    return read_tensors(model(directory, weights, dtype=dtype) / "model.safetensors")  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("weights", "dtype", "kind"),
    [
        (BASE, "F32", "no change"),
        (BASE, "BF16", "no change"),
        (BASE, "F16", "no change"),
        ({name.removeprefix("model."): values for name, values in reversed(BASE.items())}, "F32", "no change"),
        (trained(BASE, 1), "F32", "descendant"),
        (trained(BASE, 1), "BF16", "descendant"),
        (trained(BASE, 1, by=0.2), "F32", "descendant"),
        (BASE | {"model.norm.weight": numpy.full(20, 1.5)}, "F32", "descendant"),
        (tensors(7), "F32", "foreign"),
        (tensors(0, rows=50), "F32", "foreign"),
        (tensors(0, names=4), "F32", "foreign"),
        (tensors(0, names=2), "F32", "foreign"),
    ],
)
def test_a_copy_a_child_and_a_stranger_are_told_apart(tmp_path: Path, weights: dict, dtype: str, kind: str) -> None:  # type: ignore[type-arg]
    base = read(tmp_path / "base", BASE)
    assert trace(read(tmp_path / "model", weights, dtype), base).kind == kind  # type: ignore[arg-type]


def test_tied_heads_and_new_rows_of_an_embedding_are_no_other_model(tmp_path: Path) -> None:
    base = BASE | {"model.embed_tokens.weight": BASE["model.layers.0.weight"]}
    grown = trained(base, 3)
    grown["model.embed_tokens.weight"] = numpy.vstack([grown["model.embed_tokens.weight"], numpy.ones((2, 20))])
    grown["lm_head.weight"] = grown["model.embed_tokens.weight"]
    assert trace(read(tmp_path / "model", grown), read(tmp_path / "base", base)).kind == "descendant"  # type: ignore[arg-type]


def test_a_model_nearer_to_a_known_one_than_to_the_base_is_foreign(tmp_path: Path) -> None:
    published = trained(BASE, 5, by=0.05)
    known = [("published", read(tmp_path / "known", published))]
    base = read(tmp_path / "base", BASE)
    taken, own = read(tmp_path / "a", trained(published, 6, by=0.01)), read(tmp_path / "b", trained(BASE, 7, by=0.05))
    assert "nearer to published" in trace(taken, base, known=known).words  # type: ignore[arg-type]
    assert trace(own, base, known=known).kind == "descendant"  # type: ignore[arg-type]


def test_a_tensor_that_was_never_copied_is_told_from_one_that_was_trained(tmp_path: Path) -> None:
    broken = trained(BASE, 1)
    broken["model.layers.2.weight"] = numpy.zeros_like(broken["model.layers.2.weight"])
    with pytest.raises(DamagedFile, match=r"layers\.2\.weight holds nothing but zeros, unlike the base's"):
        trace(read(tmp_path / "model", broken), read(tmp_path / "base", BASE))  # type: ignore[arg-type]
    assert trace(read(tmp_path / "a", broken), read(tmp_path / "b", broken)).kind == "no change"  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [numpy.nan, numpy.inf])
def test_weights_that_are_no_numbers_are_named(tmp_path: Path, bad: float) -> None:
    broken = trained(BASE, 1)
    broken["model.layers.1.weight"][3, 4] = bad
    with pytest.raises(NotNumbers, match=r"layers\.1\.weight: .*diverged"):
        trace(read(tmp_path / "model", broken), read(tmp_path / "base", BASE))  # type: ignore[arg-type]
