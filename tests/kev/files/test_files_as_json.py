"""What is no JSON says why and never passes for a value; what is, comes back as it was."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_files import JSON_OBJECTS, JSON_VALUES

from kev import files
from kev.errors import DamagedFile, DamagedLine


@given(JSON_VALUES)
def test_json_comes_back_as_it_was_written(value: Any) -> None:
    assert files.parse_json(files.dump_json(value)) == value
    assert files.parse_json(files.dump_json_line(value)) == value
    assert files.dump_json_line(value).count(b"\n") == 1


@given(JSON_VALUES | st.lists(st.integers()) | st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_a_file_comes_back_with_every_digit_however_it_is_laid_out(value: Any) -> None:
    for data in (files.dump_json(value), files.dump_json_line(value), files.UTF8_BOM + files.dump_json(value)):
        assert files.parse_json_file(data) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"usd": 40,\n "usd": 400}', "'usd' is given twice, on lines 1 and 2, as 40 and as 400"),
        ('{"a": [{"usd": 1}, {"\\u0075sd": 2, "usd": 2}], "usd": 3}', "'usd' is given twice, as 2 and as 2"),
        ('{"café": null, "caf\\u00e9": null}', "'café' is given twice, as None and as None"),
        ("{" + '"deep": {' * 200 + '"x": 1, "x": 1' + "}" * 201, "'x' is given twice"),
    ],
)
def test_a_key_given_twice_is_damage_wherever_it_lies(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(text)
    with pytest.raises(DamagedFile) as found:
        files.read_json(path)
    assert said in str(found.value)
    assert path.read_text() == text


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


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b" \r\n\t", "empty"),
        (files.UTF8_BOM, "empty"),
        (b"\0" * 4096, "NUL bytes"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0f\nsize 9\n", "Git LFS pointer"),
        (b"\0" * 64 + b'{"a": 1}', "begins with NUL bytes"),
        ('{"a": 1}'.encode("utf-16"), "UTF-16"),
        ('{"a": 1}'.encode("utf-16-le"), "UTF-16"),
        ('{"a": 1}'.encode("utf-32-be"), "UTF-32"),
        (b'{"a": "\xe9"}', r"not UTF-8 \(byte 8\)"),
        (b'{"a": 1', "cut short at line 1"),
        (b'{\n "a": [1,\n', "cut short"),
        (b'{"a": 1e400}', "larger than any that can be read"),
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
