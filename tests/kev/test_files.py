"""No kill, full disk, racer or strange file loses what was acknowledged, hangs the reader or passes for data."""

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kev import files
from kev.errors import DamagedFile, DamagedLine, LockHeld, NotFound

JSON_LEAVES = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False,
    allow_infinity=False) | st.text()  # fmt: skip
JSON_VALUES = st.recursive(
    JSON_LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
JSON_OBJECTS = st.dictionaries(st.text(), JSON_VALUES, max_size=4)


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """The kernel refuses every write past `size` bytes of a file, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def names(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


# ------------------------------------------------------------------------------------------------ whole files


@given(JSON_VALUES)
def test_json_comes_back_as_it_was_written(value: Any) -> None:
    assert files.parse_json(files.dump_json(value)) == value
    assert files.parse_json(files.dump_json_line(value)) == value
    assert files.dump_json_line(value).count(b"\n") == 1


@given(JSON_OBJECTS, st.data())
def test_a_file_torn_at_any_byte_is_damaged_and_never_another_value(value: dict[str, Any], data: st.DataObject) -> None:
    whole = files.dump_json(value)
    # The last two bytes are the closing brace and the newline, which may be missing.
    cut = data.draw(st.integers(0, len(whole) - 2))
    with pytest.raises(ValueError, match=r"empty|cut short|not JSON|not UTF-8"):
        files.parse_json(whole[:cut])


@pytest.mark.parametrize("text", ["half \ud83d a pair", "\udc80", "\ud800\ud800"])
def test_half_a_surrogate_pair_survives_the_round_trip(text: str) -> None:
    data = files.dump_json({text: [text]})
    assert files.parse_json(data) == {text: [text]}
    assert files.dump_json(files.parse_json(data)) == data


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": [float("-inf")]}])
def test_what_other_readers_cannot_read_is_not_written(value: Any) -> None:
    with pytest.raises(ValueError):
        files.dump_json(value)
    with pytest.raises(ValueError):
        files.dump_json_line(value)


def test_a_replaced_file_is_readable_by_others_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "a.json"
    for turn in range(3):
        files.write_atomic(path, files.dump_json(turn))
        assert files.read_json(path) == turn
    assert names(path.parent) == ["a.json"]
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_write_that_the_device_refuses_leaves_the_old_bytes_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    files.write_atomic(path, b"old\n")
    with largest_file(1000), pytest.raises(OSError) as refusal:
        files.write_atomic(path, b"n" * 5000)
    assert refusal.value.errno == errno.EFBIG
    assert (path.read_bytes(), names(tmp_path)) == (b"old\n", ["a.json"])
    with largest_file(1000), pytest.raises(OSError):
        files.create_exclusive(tmp_path / "b.json", b"n" * 5000)
    assert names(tmp_path) == ["a.json"]


def test_a_directory_under_the_name_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.json").mkdir()
    with pytest.raises(OSError):
        files.write_atomic(tmp_path / "a.json", b"x\n")
    assert names(tmp_path) == ["a.json"]


def test_a_writer_killed_at_any_moment_leaves_one_whole_value(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    code = (
        "import sys; from pathlib import Path; from kev import files\n"
        "for turn in range(10**6):\n"
        "    files.write_atomic(Path(sys.argv[1]), files.dump_json([turn] * 9000)); print(turn, flush=True)"
    )
    for lines in (1, 2, 5):
        writer = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
        with writer:
            assert writer.stdout is not None
            acknowledged = [int(writer.stdout.readline()) for _ in range(lines)][-1]
            writer.send_signal(signal.SIGKILL)
        value = files.read_json(path)
        assert len(value) == 9000 and len(set(value)) == 1 and value[0] >= acknowledged


def test_of_many_creators_one_wins_and_its_bytes_are_whole(tmp_path: Path) -> None:
    path, start, won = tmp_path / "a.json", threading.Barrier(8), []

    def create(racer: int) -> None:
        start.wait()
        try:
            files.create_exclusive(path, files.dump_json([racer] * 2000))
            won.append(racer)
        except FileExistsError:
            pass

    racers = [threading.Thread(target=create, args=(racer,)) for racer in range(8)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert len(won) == 1
    assert files.read_json(path) == won * 2000
    assert names(tmp_path) == ["a.json"]


# ------------------------------------------------------------------------------------------------------ lines


@settings(max_examples=40, deadline=None)
@given(st.lists(JSON_OBJECTS, min_size=1, max_size=4), st.data())
def test_a_line_after_a_torn_one_is_whole(
    tmp_path_factory: pytest.TempPathFactory, values: list[dict[str, Any]], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("torn") / "a.jsonl"
    whole = b"".join(files.dump_json_line(value) for value in values)
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    files.append(path, files.dump_json_line({"after": True}))
    lines = list(files.parse_json_lines(path.read_bytes()))
    kept = whole[:cut].count(b"\n")
    assert [line.value for line in lines[:kept]] == values[:kept]
    assert lines[-1].value == {"after": True}
    assert len(lines) <= kept + 2


def test_lines_appended_at_once_are_all_there_and_whole(tmp_path: Path) -> None:
    path, start = tmp_path / "new" / "a.jsonl", threading.Barrier(6)

    def write(writer: int) -> None:
        start.wait()
        for turn in range(10):
            files.append(path, files.dump_json_line({"writer": writer, "turn": turn, "text": "x" * 9000}))

    writers = [threading.Thread(target=write, args=(writer,)) for writer in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    found = [(value["writer"], value["turn"]) for value in files.read_json_lines(path)]
    assert sorted(found) == [(writer, turn) for writer in range(6) for turn in range(10)]


def test_a_line_that_the_device_refuses_is_taken_back_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    files.append(path, b'{"kept": 1}\n')
    with largest_file(1000), pytest.raises(OSError):
        files.append(path, files.dump_json_line({"text": "x" * 5000}))
    assert path.read_bytes() == b'{"kept": 1}\n'


def test_only_whole_lines_are_appended(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="whole lines"):
        files.append(tmp_path / "a.jsonl", b"no newline")
    assert names(tmp_path) == []


@given(st.lists(JSON_OBJECTS, max_size=6), st.sampled_from([b"\n", b"\r\n", b"\n\n", b"\n \t\n"]), st.booleans())
def test_lines_end_at_a_newline_and_nowhere_else(values: list[dict[str, Any]], end: bytes, bom: bool) -> None:
    marked = [{**value, "text": "a\u2028b\u2029c\u0085d\ufeffe\x0bf"} for value in values]
    data = (files.UTF8_BOM if bom else b"") + end.join(files.dump_json_line(value).rstrip(b"\n") for value in marked)
    assert [line.value for line in files.parse_json_lines(data)] == marked


def test_a_bad_line_is_named_by_its_number_and_column(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\n\n{"a": oops}\n{"a": 2}\n')
    with pytest.raises(DamagedLine, match=r"line 3: not JSON at column 7$") as damage:
        files.read_json_lines(path)
    assert damage.value.line == 3
    lines = list(files.parse_json_lines(path.read_bytes(), first=11))
    assert [(line.number, line.damage is None) for line in lines] == [(11, True), (13, False), (14, True)]


# ---------------------------------------------------------------------------------------------------- strange


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


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b" \r\n\t", "empty"),
        (files.UTF8_BOM, "empty"),
        (b"\0" * 4096, "NUL bytes"),
        ('{"a": 1}'.encode("utf-16"), "UTF-16"),
        ('{"a": 1}'.encode("utf-16-le"), "UTF-16"),
        ('{"a": 1}'.encode("utf-32-be"), "UTF-32"),
        (b'{"a": "\xe9"}', r"not UTF-8 \(byte 8\)"),
        (b'{"a": 1', "cut short at line 1"),
        (b'{\n "a": [1,\n', "cut short"),
        (b'{"a": NaN}', "NaN is not a number"),
        (b'{"a": -Infinity}', "Infinity is not a number"),
        (b'{"a": "\\ud800", "b": NaN}', "not JSON"),
        (b'{"a": 1} {"b": 2}', "not JSON"),
        (b"[" * 100_000, "not JSON|cut short"),
        (b'{"a": 01}', "not JSON"),
    ],
)
def test_what_is_no_json_says_why_in_one_line(data: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(data)
    with pytest.raises(DamagedFile, match=reason) as damage:
        files.read_json(path)
    assert str(path) in str(damage.value) and "\n" not in str(damage.value)


def test_no_name_of_a_file_or_holder_reaches_a_terminal_raw(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[31m\nb.json"
    path.write_bytes(b"")
    with pytest.raises(DamagedFile) as damage:
        files.read_json(path)
    assert r"a\x1b[31m\nb.json: empty" in str(damage.value) and damage.value.path == path
    with pytest.raises(NotFound) as absence:
        files.read_json(tmp_path / "\x9bnone")
    assert r"\x9bnone: no such file" in str(absence.value)


def test_a_utf8_byte_order_mark_is_no_damage(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(files.UTF8_BOM + b'{"a": "\xc3\xa9"}')
    assert files.read_json(tmp_path / "a.json") == {"a": "é"}


@given(st.binary(max_size=200))
def test_no_bytes_make_the_parser_raise_anything_but_its_reason(data: bytes) -> None:
    try:
        value = files.parse_json(data)
    except ValueError as error:
        assert str(error) and "\n" not in str(error)
    else:
        json.dumps(value, allow_nan=False)


@pytest.mark.parametrize("name", ["a.json", "r[1]*.json"])
def test_a_damaged_file_names_the_newest_complete_copy_beside_it(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"")
    with pytest.raises(DamagedFile) as damage:
        files.read_json(path)
    assert damage.value.recoverable is None
    for age, (suffix, data) in enumerate([(".tmp", b'{"old": 1}'), (".x1.tmp", b'{"new": 1}'), (".x2.tmp", b'{"torn')]):
        copy = tmp_path / f".{name}{suffix}"
        copy.write_bytes(data)
        os.utime(copy, (1000 + age, 1000 + age))
    with pytest.raises(DamagedFile, match="a complete copy is in") as damage:
        files.read_json(path)
    assert damage.value.recoverable == tmp_path / f".{name}.x1.tmp"


@pytest.mark.parametrize(
    ("value", "finite"),
    [
        (1, 1.0),
        (2.5, 2.5),
        (True, None),
        ("1", None),
        (None, None),
        (float("nan"), None),
        (float("-inf"), None),
        (10**400, None),
    ],
)
def test_a_figure_is_a_finite_number_or_none(value: object, finite: float | None) -> None:
    assert files.as_finite(value) == finite


# ------------------------------------------------------------------------------------------------------ locks


def test_a_held_lock_is_refused_by_its_holder_and_free_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "locks" / ".a.lock"
    with files.locked(path), pytest.raises(LockHeld, match=f"process {os.getpid()} on"), files.locked(path):
        pass
    with files.locked(path), files.locked(tmp_path / ".other.lock"):
        pass


def test_a_lock_dies_with_its_holder(tmp_path: Path) -> None:
    path = tmp_path / ".a.lock"
    code = (
        "import sys; from pathlib import Path; from kev import files\n"
        "with files.locked(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with pytest.raises(LockHeld, match=f"process {holder.pid}"), files.locked(path):
            pass
        holder.send_signal(signal.SIGKILL)
    with files.locked(path):
        pass


def test_waiting_for_a_lock_ends_when_it_is_given_back(tmp_path: Path) -> None:
    path, inside, order = tmp_path / ".a.lock", threading.Event(), []

    def wait() -> None:
        inside.set()
        with files.locked(path, wait=True):
            order.append("waiter")

    waiter = threading.Thread(target=wait)
    with files.locked(path):
        waiter.start()
        inside.wait()
        order.append("holder")
    waiter.join()
    assert order == ["holder", "waiter"]


def test_what_a_writer_puts_into_its_temporary_replaces_the_file_wholly_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    files.write_through(path, lambda temporary: temporary.write_bytes(b"first"))
    assert path.read_bytes() == b"first" and path.stat().st_mode & 0o777 == 0o644

    def fail(temporary: Path) -> None:
        temporary.write_bytes(b"half")
        raise OSError("the device is full")

    with pytest.raises(OSError, match="full"):
        files.write_through(path, fail)
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


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
