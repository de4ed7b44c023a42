"""Nothing is published without its owner's word, nor anything that is not whole; and no test reaches a Hub."""

import socket
from dataclasses import replace
from pathlib import Path

import numpy
import pytest
from safetensors.numpy import save_file

from kev.checkpoint import Head, write_head
from kev.errors import DamagedFile, KevError, Refused, UsageError
from kev.publish import Upload, main, publish

pytest.importorskip("torch")


class Shelf:
    """A Hub that keeps what it is given."""

    def __init__(self) -> None:
        self.taken: list[Upload] = []

    def upload(self, upload: Upload) -> str:
        self.taken.append(upload)
        return "0" * 40


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **settings: object) -> None:
        raise AssertionError("a test tried to reach the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture
def upload(tmp_path: Path) -> Upload:
    run = tmp_path / "checkpoint"
    write_head(run, Head({"base": "org/base", "weights": "lora"}))
    (run / "adapter_config.json").write_text("{}")
    save_file({"lora_A": numpy.ones(2)}, run / "adapter_model.safetensors")
    (tmp_path / "card.md").write_text("# A model\n")
    return Upload(run, "owner/model", tmp_path / "card.md", "first")


def test_the_owner_s_word_names_the_very_repository(upload: Upload) -> None:
    shelf = Shelf()
    assert publish(upload, "owner/model", shelf) == "0" * 40
    assert shelf.taken == [upload]
    for word in (None, "owner/other", "", "owner"):
        with pytest.raises(Refused, match="owner"):
            publish(upload, word, shelf)
    assert shelf.taken == [upload]


@pytest.mark.parametrize("repo", ["model", "a/b/c", "../x", "owner/", "own er/model", "owner/model@main", "-x/y"])
def test_what_is_no_repository_is_refused(upload: Upload, repo: str) -> None:
    with pytest.raises(UsageError, match="owner/name"):
        publish(replace(upload, repo=repo), repo, Shelf())


def test_a_checkpoint_that_is_not_whole_is_refused(upload: Upload, tmp_path: Path) -> None:
    shelf = Shelf()
    (upload.run / "resume").mkdir()
    with pytest.raises(Refused, match="still in training"):
        publish(upload, "owner/model", shelf)
    (upload.run / "resume").rmdir()
    (upload.run / "adapter_model.safetensors").unlink()
    with pytest.raises(DamagedFile, match=r"adapter_model\.safetensors: missing"):
        publish(upload, "owner/model", shelf)
    with pytest.raises(KevError, match="no such file"):
        publish(replace(upload, run=tmp_path / "nowhere"), "owner/model", shelf)
    assert not shelf.taken


def test_a_torn_file_and_files_left_over_are_not_published(upload: Upload) -> None:
    adapter, shelf = upload.run / "adapter_model.safetensors", Shelf()
    whole = adapter.read_bytes()
    adapter.write_bytes(whole[:-1])
    with pytest.raises(DamagedFile, match="cut short"):
        publish(upload, "owner/model", shelf)
    write_head(upload.run, Head({"base": "org/base", "weights": "full"}))
    (upload.run / "config.json").write_text("{}")
    (upload.run / "model.safetensors").write_bytes(whole)
    with pytest.raises(Refused, match=r"left beside whole weights.*remove what is not meant"):
        publish(upload, "owner/model", shelf)
    assert not shelf.taken


def test_an_empty_card_is_refused(upload: Upload) -> None:
    upload.card.write_text(" \n")
    with pytest.raises(Refused, match="empty card"):
        publish(upload, "owner/model", Shelf())


def test_the_command_refuses_in_one_line_and_says_what_the_owner_adds(
    upload: Upload, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--run", str(upload.run), "--repo", "owner/model", "--card", str(upload.card)]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "--i-am-the-owner-of owner/model" in error
