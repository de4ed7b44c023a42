"""A line that was acknowledged stays whole, whatever was torn before it or fails after it."""

import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_files import JSON_OBJECTS, largest_file, names

from kev import files


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
