"""Logs read from their end: lines, follow, rotation, search, and the bounds that keep hostile files cheap."""

import itertools
import os
import resource
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kev.errors import DamagedFile, NotFound, UsageError
from kev.text import visible_bytes
from kevtui.observe import log_file
from kevtui.observe.log_file import BLOCK, Change, LogFile
from kevtui.observe.log_search import Query, Search


def texts(lines: list[log_file.LogLine]) -> list[str]:
    return [line.text for line in lines]


def search(log: LogFile, text: str, *, origin: int | None = None, backwards: bool = True) -> str | None:
    origin = log.size if origin is None else origin
    found = Search(log, Query.parse(text), origin, backwards=backwards)
    found.run(60, time.monotonic)
    line = None if found.found is None else log.line_at(found.found)
    return line.text if line else None


def test_the_last_lines_are_read_and_an_unfinished_one_is_marked(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(b"one\r\ntwo\n\nthr")
    lines = LogFile(path).before(path.stat().st_size, 10)
    assert texts(lines) == ["one", "two", "", "thr"]
    assert [line.complete for line in lines] == [True, True, True, False]


def test_opening_a_sparse_gigabyte_reads_only_its_end(tmp_path: Path) -> None:
    path = tmp_path / "big.log"
    with path.open("wb") as stream:
        stream.truncate(1 << 30)
        stream.seek(0, os.SEEK_END)
        stream.write(b"\n" + b"step 1\nstep 2\n" * 100_000)
    before = resource.getrusage(resource.RUSAGE_SELF)
    tracemalloc.start()
    log = LogFile(path)
    lines = log.before(log.size, 50)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert texts(lines[-2:]) == ["step 1", "step 2"]
    assert peak < 4 * BLOCK
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.2
    assert not log.counted and log.number_of(lines[0].start) is None


def test_a_line_of_ten_megabytes_becomes_bounded_pieces_that_join_up(tmp_path: Path) -> None:
    path = tmp_path / "bar.log"
    path.write_bytes(b"first\n" + b"\r 10%|##" * 1_250_000 + b"\nlast\n")
    log = LogFile(path)
    lines = log.before(log.size, 1000)
    assert lines == log.after(0, 1000)
    assert lines[0].text == "first" and lines[-1].text == "last"
    assert all(before.end == after.start for before, after in itertools.pairwise(lines))
    assert 10_000_000 // BLOCK <= len(lines) <= 10_000_000 // BLOCK + 4
    assert all(len(line.text) < 6 * log_file.SHOWN_HEAD for line in lines)
    assert all(line.continued for line in lines[2:-1]) and not lines[1].continued


@pytest.mark.parametrize("raw", [b"\x1b[2J\x1b]0;title\x07", b"a\rb", b"\x9b31m", b"\xff\xfe", b"\x00", b"\x08\x7f"])
def test_nothing_raw_leaves_a_line(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(raw + b"\n" + b"x" * 10_000 + raw + b"\n")
    text = "".join(texts(LogFile(path).after(0, 10)))
    assert text.isprintable()


def test_a_character_cut_by_the_bound_is_left_out_not_shown_as_wrong_bytes(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(("x" + "ß" * 10_000 + "\n").encode())
    assert "\\x" not in LogFile(path).after(0, 1)[0].text.partition("[")[0]


lines_of_bytes = st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")), max_size=60)


@given(lines_of_bytes, st.booleans(), st.sampled_from([7, 16, 64]))
@settings(max_examples=150, deadline=None)
def test_walking_back_and_forth_gives_the_same_lines_and_every_byte_once(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], ended: bool, block: int
) -> None:
    path = tmp_path_factory.mktemp("log") / "train.log"
    data = b"\n".join(lines) + (b"\n" if ended else b"")
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_file, "BLOCK", block)
        log = LogFile(path)
        forth = log.after(0, 10_000)
        assert log.before(log.size, 10_000) == forth
        assert b"".join(log.text_of(line.start, line.end) for line in forth) == data
        while log.count_block():
            pass
        for line in forth:
            assert log.number_of(line.start) == data.count(b"\n", 0, line.start) + 1
            assert log.line_at(line.end - 1) == line
        log.close()


def test_follow_reads_on_and_notices_cutting_back_rotation_and_deletion(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(b"one\ntw")
    log = LogFile(path)
    assert log.check() is Change.NONE
    with path.open("ab") as stream:
        stream.write(b"o\nthree\n")
    assert log.check() is Change.GREW
    assert texts(log.after(0, 9)) == ["one", "two", "three"]
    path.write_bytes(b"new\n")
    assert log.check() is Change.TRUNCATED
    assert texts(log.after(0, 9)) == ["new"]
    path.rename(tmp_path / "train.log.1")
    assert log.check() is Change.GONE
    assert texts(log.after(0, 9)) == ["new"]
    path.write_bytes(b"after rotation\n")
    assert log.check() is Change.REPLACED
    assert texts(log.after(0, 9)) == ["after rotation"]


def test_a_file_rewritten_to_a_larger_size_is_not_taken_for_an_appended_one(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(b"attempt 1, step 1\n")
    log = LogFile(path)
    with path.open("r+b") as stream:
        stream.write(b"attempt 2, step 1\nattempt 2, step 2\n")
    assert log.check() is Change.TRUNCATED
    assert texts(log.after(0, 9)) == ["attempt 2, step 1", "attempt 2, step 2"]


def test_lines_have_numbers_once_they_are_counted_and_keep_them_as_the_log_grows(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(b"0123456\n" * (BLOCK // 4))
    log = LogFile(path)
    assert log.number_of(log.size - 8) is None
    while log.count_block():
        pass
    assert log.counted and log.number_of(log.size - 8) == BLOCK // 4
    with path.open("ab") as stream:
        stream.write(b"x\n" * BLOCK)
    log.check()
    while log.count_block():
        pass
    assert log.number_of(log.size - 2) == BLOCK // 4 + BLOCK


@pytest.mark.parametrize("backwards", [True, False])
def test_search_finds_lines_across_block_borders(tmp_path: Path, backwards: bool) -> None:
    path = tmp_path / "train.log"
    filler = b"x" * 99 + b"\n"
    head = filler * (BLOCK // 100)
    path.write_bytes(head + b"y" * (BLOCK - len(head) - 3) + b" needle one\n" + filler * 5000)
    log = LogFile(path)
    assert (search(log, "needle", origin=log.size if backwards else 0, backwards=backwards) or "").endswith(
        "needle one"
    )
    assert search(log, "absent") is None


def test_search_goes_on_from_a_match_in_both_directions(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(b"".join(b"step %d\n" % step for step in range(100)))
    log = LogFile(path)
    assert search(log, "step 1") == "step 19"
    assert search(log, "~step 1$") == "step 1"
    at_19 = Search(log, Query.parse("step 19"), log.size, backwards=True)
    at_19.run(1, time.monotonic)
    assert at_19.found is not None
    assert search(log, "step 1", origin=at_19.found) == "step 18"
    assert search(log, "step 2", origin=log.end_of(at_19.found), backwards=False) == "step 20"


def test_a_search_stops_when_its_time_is_up_and_goes_on_later(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(b"needle\n" + b"x" * 63 + b"\n" * (BLOCK * 4))
    log = LogFile(path)
    looking = Search(log, Query.parse("needle"), log.size, backwards=True)
    ticks = iter(range(1000))
    rounds = 1
    while not looking.run(1, lambda: float(next(ticks))):
        rounds += 1
    assert rounds >= 3 and looking.found == 0


def test_case_matters_only_where_the_query_has_capitals(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(b"Loss NaN\n")
    log = LogFile(path)
    assert search(log, "nan") and search(log, "NaN") and not search(log, "NAN")


def test_brackets_in_a_plain_search_are_text_and_a_bad_expression_is_said(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(b"see [node_modules]\n")
    assert search(LogFile(path), "[node_") == "see [node_modules]"
    with pytest.raises(UsageError, match="not a regular expression"):
        Query.parse("~[node_")
    with pytest.raises(UsageError):
        Query.parse("~")


def test_what_is_no_readable_file_is_refused_with_its_reason(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        LogFile(tmp_path / "absent.log")
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(DamagedFile, match="not a regular file"):
            LogFile(tmp_path / name)


@given(st.binary(max_size=30))
def test_visible_text_never_holds_a_control_character(data: bytes) -> None:
    assert all(
        character == " " or character.isprintable() or ord(character) > 0x9F for character in visible_bytes(data)
    )
