"""head.pt: nothing in it is ever run, every damage has its own words, and nothing it holds is lost."""

import json
import os
import pickle
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from kev.checkpoint import HEAD, TWIN, Head, read_head, read_twin, write_head
from kev.errors import DamagedFile, KevError, NotFound
from kev.torch_files import load_weights_only


class Runs:
    """Pickles as a call that would make a directory, if anybody ran it."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.marker),)


def head_values() -> dict[str, Any]:
    return {
        "base": "org/tiny",
        "head": {"q.weight": torch.arange(6.0).reshape(2, 3), "q.bias": torch.tensor([0.1, float("nan")])},
        "lora": 8,
        "temperature": 1.0,
        "args": {"suite": "evals/decision-v1", "lr": 2e-5},
        "measured": [1, {"loss": float("inf")}, torch.ones(2, dtype=torch.bfloat16)],
        "note\u2028": "line \u2028 end",
    }


def torch_file(path: Path, value: Any) -> Path:
    torch.save(value, path)
    return path


def test_the_extra_keys_the_tensors_and_the_defaults_come_back_as_they_were(tmp_path: Path) -> None:
    write_head(tmp_path, Head(head_values()))
    head = read_head(tmp_path)
    assert list(head.values) == list(head_values())
    assert torch.equal(head.values["head"]["q.weight"], head_values()["head"]["q.weight"])
    assert head.values["measured"][2].dtype == torch.bfloat16
    assert (head.get("lora"), head.get("head_dim"), head.get("weights")) == (8, 256, "lora")
    changed = head.changed(temperature=1.5)
    write_head(tmp_path, changed)
    assert read_head(tmp_path).temperature == 1.5
    assert list(read_head(tmp_path).values) == list(head_values())


def test_the_twin_says_everything_but_the_tensors_and_is_json(tmp_path: Path) -> None:
    write_head(tmp_path, Head(head_values()))
    twin = json.loads((tmp_path / TWIN).read_text(), parse_constant=pytest.fail)
    assert twin["base"] == "org/tiny"
    assert twin["args"] == {"suite": "evals/decision-v1", "lr": 2e-5}
    assert twin["note\u2028"] == "line \u2028 end"
    assert twin["tensors"]["head.q.weight"] == {"shape": [2, 3], "dtype": "float32"}
    assert twin["measured"][1] == {}
    assert twin == read_twin(tmp_path)


def test_a_twin_of_another_head_is_not_believed(tmp_path: Path) -> None:
    write_head(tmp_path, Head(head_values()))
    old = (tmp_path / TWIN).read_bytes()
    write_head(tmp_path, Head(head_values()).changed(temperature=2.0))
    (tmp_path / TWIN).write_bytes(old)
    with pytest.raises(DamagedFile, match=r"another head\.pt"):
        read_twin(tmp_path)


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_file_that_would_run_code_is_refused_by_what_it_names_and_runs_nothing(tmp_path: Path, protocol: int) -> None:
    marker = tmp_path / "ran"
    bare = tmp_path / "bare.pt"
    bare.write_bytes(pickle.dumps(Runs(marker), protocol=protocol))
    wrapped = tmp_path / HEAD
    torch.save({**head_values(), "extra": Runs(marker)}, wrapped, pickle_protocol=protocol)
    with pytest.raises(DamagedFile, match=r"a bare pickle.*mkdir"):
        load_weights_only(bare)
    with pytest.raises(DamagedFile, match=r"loading it would call .*mkdir"):
        read_head(tmp_path)
    assert not marker.exists()


def test_numpy_and_python_states_are_refused_as_what_they_are(tmp_path: Path) -> None:
    path = torch_file(tmp_path / "rank1.pt", {"numpy": np.random.default_rng(3).bit_generator.state["state"], "x": 1})
    assert load_weights_only(path)["x"] == 1
    path = torch_file(tmp_path / "rank2.pt", {"numpy": np.arange(4), "python": random.Random(3).getstate()})
    with pytest.raises(DamagedFile, match="holds numpy objects"):
        load_weights_only(path)


def damaged(tmp_path: Path) -> dict[str, bytes]:
    whole = torch_file(tmp_path / "whole.pt", {"a": torch.zeros(300)}).read_bytes()
    torch.save({"a": 1}, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("notes/readme.txt", "hello")
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("head/data.pkl", b"\0" * 3_000_000)
    swapped = bytearray(whole)
    swapped[whole.index(b"\x80\x02") : whole.index(b"\x80\x02") + 6] = b"\xff" * 6
    return {
        "empty": b"",
        "git lfs pull": b"version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 9\n",
        "bare pickle": b"cos\nmkdir\n(V/nowhere\ntR.",
        "before 1.6": (tmp_path / "old.pt").read_bytes(),
        "begins with": b"<html><title>404 \x1b[31m</title>",
        "no table of contents": whole[:400],
        "not one that torch wrote": (tmp_path / "other.zip").read_bytes(),
        "would unpack to": (tmp_path / "bomb.zip").read_bytes(),
        "damaged": bytes(swapped),
    }


def test_every_damage_has_its_own_line(tmp_path: Path) -> None:
    path = tmp_path / "rank0.pt"
    lines = set()
    for words, content in damaged(tmp_path).items():
        path.write_bytes(content)
        with pytest.raises(DamagedFile, match=words) as raised:
            load_weights_only(path, limit=1_000_000)
        line = str(raised.value)
        assert "\n" not in line and "\x1b" not in line
        lines.add(line)
    assert len(lines) == len(damaged(tmp_path))
    with pytest.raises(NotFound):
        load_weights_only(tmp_path / "absent.pt")


def test_a_file_cut_at_any_place_is_said_to_be_damaged(tmp_path: Path) -> None:
    whole = torch_file(tmp_path / "whole.pt", head_values()).read_bytes()
    path = tmp_path / HEAD
    for size in range(0, len(whole), 37):
        path.write_bytes(whole[:size])
        with pytest.raises(DamagedFile):
            read_head(tmp_path)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([1], "table of named values"),
        ({1: 2}, "table of named values"),
        ({"head": {}}, "name its base"),
        ({"base": "b", "temperature": 0.0}, "not a number above 0"),
        ({"base": "b", "temperature": float("nan")}, "not a number above 0"),
        ({"base": "b", "temperature": "1"}, "not a number above 0"),
    ],
)
def test_a_head_of_another_shape_is_named(tmp_path: Path, value: Any, words: str) -> None:
    torch_file(tmp_path / HEAD, value)
    with pytest.raises(DamagedFile, match=words):
        read_head(tmp_path)


def test_a_head_nested_beyond_reason_ends_in_words(tmp_path: Path) -> None:
    deep: Any = "x"
    for _ in range(300):
        deep = [deep]
    torch_file(tmp_path / HEAD, {"base": "b", "deep": deep})
    try:
        read_head(tmp_path)
    except KevError as error:
        assert "\n" not in str(error)
