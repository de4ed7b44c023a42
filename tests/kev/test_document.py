"""Places in a JSON text: every key has its line, and a key given twice has both."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kev.document import format_path, read_document, read_value
from kev.errors import DamagedFile

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)


def written(directory: Path, data: str | bytes) -> Path:
    path = directory / "spec.json"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def places_of(value: Any, where: tuple[str | int, ...] = ()) -> set[tuple[str | int, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return {where}.union(*(places_of(item, (*where, key)) for key, item in items))


@given(VALUES)
def test_every_key_and_element_has_a_place_and_nothing_else_does(tmp_path_factory: Any, value: Any) -> None:
    path = written(tmp_path_factory.mktemp("document"), json.dumps(value, indent=1))
    document = read_document(path)
    assert document.value == json.loads(path.read_text())
    assert set(document.places) == places_of(document.value)
    assert document.repeated == ()


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.integers(), min_size=1, max_size=6), st.booleans())
def test_a_key_stands_on_its_own_line_whatever_ends_the_lines(
    tmp_path_factory: Any, value: dict[str, int], windows: bool
) -> None:
    text = json.dumps(value, indent=2)
    data = text.replace("\n", "\r\n" if windows else "\n").encode()
    document = read_document(written(tmp_path_factory.mktemp("document"), data))
    for number, key in enumerate(value):
        assert document.places[(key,)].line == number + 2
        assert document.places[(key,)].column == 3


@pytest.mark.parametrize("second", ['"budget"', '"b\\u0075dget"', '"\\u0062udge\\u0074"'])
def test_a_key_given_twice_is_found_with_both_lines_however_it_is_spelled(tmp_path: Path, second: str) -> None:
    text = '{"a": {\n"budget": 40,\n"x": [1, 2],\n' + second + ": 400}}"
    (repeat,) = read_document(written(tmp_path, text)).repeated
    assert repeat.where == ("a", "budget")
    assert str(repeat) == "given twice, on lines 2 and 4"


def test_a_repeated_object_is_one_finding_and_not_one_per_key_in_it(tmp_path: Path) -> None:
    text = '{"c": {"left": 1, "op": {"x": 1}}, "c": {"left": 2, "op": {"x": 2}}}'
    (repeat,) = read_document(written(tmp_path, text)).repeated
    assert repeat.where == ("c",)
    assert "columns 2 and 36" in str(repeat)


def test_equal_keys_of_two_objects_are_no_repetition(tmp_path: Path) -> None:
    assert read_document(written(tmp_path, '[{"a": 1}, {"a": 1}, {"b": {"a": 2}, "a": 3}]')).repeated == ()


def test_a_mark_at_the_start_is_read_over_and_moves_no_line(tmp_path: Path) -> None:
    document = read_document(written(tmp_path, b'\xef\xbb\xbf{\r\n"a": 1\r\n}'))
    assert document.value == {"a": 1}
    assert document.places[("a",)] == (2, 1)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_another_encoding_is_named(tmp_path: Path, encoding: str) -> None:
    with pytest.raises(DamagedFile, match="UTF-16"):
        read_document(written(tmp_path, '{"a": 1}'.encode(encoding)))


@pytest.mark.parametrize(
    ("text", "words"), [("", "empty"), ('{"a": [1, 2', "cut short at line 1"), ('{"a": NaN}', "NaN")]
)
def test_text_that_is_no_json_is_refused_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(DamagedFile, match=words):
        read_document(written(tmp_path, text))


@pytest.mark.parametrize("depth", [65, 900, 5000])
def test_deep_nesting_is_refused_in_words(tmp_path: Path, depth: int) -> None:
    assert len(read_document(written(tmp_path, "[" * 64 + "]" * 64)).places) == 64
    with pytest.raises(DamagedFile, match=r"nested more than 64 deep|not JSON"):
        read_document(written(tmp_path, '[\n{"a": ' * (depth // 2) + "[]" + "}]" * (depth // 2)))


def test_a_missing_key_has_the_line_of_the_object_it_is_missing_from(tmp_path: Path) -> None:
    document = read_document(written(tmp_path, '{"a": 1,\n"b": {\n"c": 2}}'))
    assert document.line(("b", "d", "e")) == 2


def test_paths_are_written_so_that_a_key_with_dots_can_be_told() -> None:
    assert format_path(("rule", "criteria", "at_most_0.02", "left", 1)) == 'rule.criteria["at_most_0.02"].left[1]'
    assert format_path(("", "a")) == '[""].a'


def test_a_file_written_by_hand_is_refused_for_a_key_given_twice(tmp_path: Path) -> None:
    assert read_value(written(tmp_path, '[{"lr": 1}]')) == [{"lr": 1}]
    with pytest.raises(DamagedFile, match=r"\[0\]\.lr: given twice, on lines 2 and 3"):
        read_value(written(tmp_path, '[{\n"lr": 1,\n"lr": 2}]'))
