"""A file that arrives in pieces appears whole, or not at all."""

from pathlib import Path

import pytest

from kev import files


def test_a_file_that_arrives_in_pieces_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    arriving = files.IncomingFile(path)
    arriving.seek(3)
    arriving.write(b"def")
    arriving.seek(0)
    arriving.write(b"abc")
    assert (arriving.size, arriving.tell(), path.exists()) == (6, 3, False)
    arriving.finish(modified=1_700_000_000)
    arriving.abandon()
    assert path.read_bytes() == b"abcdef"
    assert path.stat().st_mtime == 1_700_000_000
    second = files.IncomingFile(path)
    second.write(b"half")
    second.abandon()
    assert path.read_bytes() == b"abcdef"
    assert [each.name for each in path.parent.iterdir()] == ["file"]


def test_an_arriving_file_is_not_written_through_a_link_that_lies_in_its_place(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    (tmp_path / "file.part").symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"):
        files.IncomingFile(tmp_path / "file")
    assert target.read_text() == "mine"
