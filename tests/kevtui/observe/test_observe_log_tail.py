import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kev.errors import DamagedFile, NotFound
from kevtui.observe.log_tail import FIRST_READ, LONGEST_LINE, LogTail


def read_all(tail: LogTail) -> list[bytes]:
    lines: list[bytes] = []
    while True:
        piece = tail.read()
        lines += piece.lines
        if not piece.more:
            return lines


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as stream:
        stream.write(data)


@given(pieces=st.lists(st.binary(max_size=40), max_size=20))
def test_every_line_comes_once_however_the_writer_cuts_it(tmp_path_factory: pytest.TempPathFactory,
                                                          pieces: list[bytes]) -> None:  # fmt: skip
    path = tmp_path_factory.mktemp("log") / "train.log"
    path.touch()
    tail = LogTail(path, carriage_returns=False)
    lines = read_all(tail)
    for piece in pieces:
        append(path, piece)
        lines += read_all(tail)
    assert lines == b"".join(pieces).split(b"\n")[:-1]


def test_a_line_appears_when_its_end_is_written(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(b"one\ntw")
    tail = LogTail(path)
    first = tail.read()
    assert (first.lines, first.partial, first.first_line) == ((b"one",), b"tw", 1)
    append(path, b"o\n")
    second = tail.read()
    assert (second.lines, second.first_line) == ((b"two",), 2)


def test_a_large_file_is_read_from_its_end_and_then_only_what_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(b"".join(b"line %d\n" % number for number in range(400_000)))
    asked: list[int] = []
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, count, offset: asked.append(count) or pread(fd, count, offset))
    tail = LogTail(path)
    assert read_all(tail)[-1] == b"line 399999"
    assert sum(asked) <= FIRST_READ + 1
    asked.clear()
    append(path, b"line 400000\n")
    assert read_all(tail) == [b"line 400000"]
    assert sum(asked) <= 100


def test_the_line_cut_by_starting_in_the_middle_is_not_taken_for_a_line(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(b"0123456789\nnext\n")
    tail = LogTail(path, first_read=8)
    piece = tail.read()
    assert (piece.lines, piece.first_line) == ((b"next",), None)


@pytest.mark.parametrize("rewritten", [b"", b"new\n", b"quite another beginning, longer than before\n"])
def test_a_file_that_was_cut_or_rewritten_in_place_is_read_anew(tmp_path: Path, rewritten: bytes) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(b"old one\nold two\n")
    tail = LogTail(path)
    tail.read()
    path.write_bytes(rewritten)
    piece = tail.read()
    assert piece.restarted
    assert piece.lines == tuple(rewritten.split(b"\n")[:-1])


def test_a_file_put_in_the_place_of_another_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(b"same\n")
    tail = LogTail(path)
    tail.read()
    (tmp_path / "next").write_bytes(b"same\nmore\n")
    (tmp_path / "next").replace(path)
    piece = tail.read()
    assert piece.restarted and piece.lines == (b"same", b"more")


def test_a_progress_bar_of_carriage_returns_does_not_hide_the_lines_after_it(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(b"bar 1%\rbar 2%\rep0 step 10/100 loss 2.0\r\nnext\n")
    assert [line for line in read_all(LogTail(path)) if line] == [
        b"bar 1%", b"bar 2%", b"ep0 step 10/100 loss 2.0", b"next"]  # fmt: skip


@pytest.mark.parametrize("filler", [b"x", b"\r", b"ab\r"])
def test_a_line_without_an_end_is_followed_in_bounded_memory(tmp_path: Path, filler: bytes) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(b"")
    tail = LogTail(path, carriage_returns=False)
    tail.read()
    tracemalloc.start()
    for _ in range(12):
        append(path, filler * (1_000_000 // len(filler)))
        read_all(tail)
    append(path, b"\nafter\n")
    lines = read_all(tail)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(lines[0]) <= LONGEST_LINE and lines[-1] == b"after"
    assert held < 1_000_000


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        LogTail(tmp_path / "absent").read()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DamagedFile, match="not a regular file"):
        LogTail(tmp_path / "pipe").read()
    with pytest.raises(DamagedFile, match="not a regular file"):
        LogTail(tmp_path).read()
