"""A strange file under the name of a record neither hangs the reader nor passes for data."""

import os
import resource
from pathlib import Path

import pytest

from kev import files
from kev.errors import DamagedFile, NotFound


def test_nothing_there_is_told_apart_from_something_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"{}")
    (tmp_path / "dangling").symlink_to(tmp_path / "gone")
    for path in (tmp_path / "none", tmp_path / "file" / "below", tmp_path / "dangling"):
        with pytest.raises(NotFound):
            files.read_json(path)


def test_what_is_no_regular_file_neither_hangs_nor_passes(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name, reason in (("pipe", "not a regular"), ("directory", "not a regular"), ("loop", "loop of symbolic")):
        with pytest.raises(DamagedFile, match=reason):
            files.read_json(tmp_path / name)


def test_a_file_past_the_limit_is_refused_by_its_size_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as stream:
        stream.truncate(files.MAX_JSON_BYTES + 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    with pytest.raises(DamagedFile, match="268,435,457 bytes, more than"):
        files.read_json(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < 0.05
    path.write_bytes(b"[1, 2, 3]")
    assert files.read_bytes(path, limit=9) == b"[1, 2, 3]"
    with pytest.raises(DamagedFile, match="9 bytes, more than the 8"):
        files.read_bytes(path, limit=8)


def test_no_name_of_a_file_or_holder_reaches_a_terminal_raw(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[31m\nb.json"
    path.write_bytes(b"")
    with pytest.raises(DamagedFile) as damage:
        files.read_json(path)
    assert r"a\x1b[31m\nb.json: empty" in str(damage.value) and damage.value.path == path
    with pytest.raises(NotFound) as absence:
        files.read_json(tmp_path / "\x9bnone")
    assert r"\x9bnone: no such file" in str(absence.value)


def test_a_name_out_of_a_file_that_no_path_can_have_is_a_file_that_is_not_there(tmp_path: Path) -> None:
    for name in ("half \ud800", "with \0 in it"):
        with pytest.raises(NotFound, match="can be none of such a name"):
            files.read_json(tmp_path / name / "result.json")
        assert files.list_names(tmp_path / name) == []


@pytest.mark.parametrize("copy", [".r9.json.x1.tmp", "r9.json.tmp", "r9.json.x1.tmp", "r9.json.bak", "r9.json~"])
def test_a_complete_copy_beside_a_torn_file_is_named_whoever_made_it(tmp_path: Path, copy: str) -> None:
    (tmp_path / "r9.json").write_bytes(b"")
    (tmp_path / copy).write_bytes(b"{")
    with pytest.raises(DamagedFile) as torn:
        files.read_json(tmp_path / "r9.json")
    assert torn.value.recoverable is None
    (tmp_path / copy).write_bytes(b"{}")
    with pytest.raises(DamagedFile) as damage:
        files.read_json(tmp_path / "r9.json")
    assert damage.value.recoverable == tmp_path / copy
