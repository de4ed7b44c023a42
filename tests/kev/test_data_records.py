"""Records: what is refused at write time, how content is read as text, and the stream of random choices."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kev.data.draw import Draw
from kev.data.record import DataRecord, check_partition
from kev.data.render import MAX_DEPTH, render, text_sha256

TEAM = {
    "type": "choice",
    "instructions": "Whose?",
    "criteria": {"red": "fire", "blue": None},
    "label": "red",
    "src": "t",
}
SURE = {"type": "noul", "instructions": "Sure?", "label": True, "src": "s"}
LEVEL = {"type": "score", "instructions": "How high?", "criteria": ["low", "high"], "label": 1, "src": "l"}


def record(question: dict[str, Any], **meta: Any) -> DataRecord:
    return DataRecord.build("some text", {"q": question}, **{"id": "r1", "source": "made", **meta})


def test_each_type_of_question_has_its_keys_its_options_and_its_label() -> None:
    questions = DataRecord.build("x", {"a": TEAM, "b": SURE, "c": LEVEL}, id="r", source="s").questions
    assert [q.keys for q in questions.values()] == [["red", "blue"], ["false", "true"], ["0", "1"]]
    assert [q.options for q in questions.values()] == [["red: fire", "blue"], ["no", "yes"], ["low", "high"]]
    assert [q.label_index for q in questions.values()] == [0, 1, 1]


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({**TEAM, "label": "green"}, "none of the options"),
        ({**TEAM, "criteria": {}}, "1 to 255"),
        ({**TEAM, "criteria": {str(n): None for n in range(256)}, "label": "0"}, "1 to 255"),
        ({**TEAM, "criteria": {"a: b": None, "a": "b"}, "label": "a"}, "read the same"),
        ({**SURE, "label": 1}, "true or false"),
        ({**SURE, "criteria": {"yes": "sure"}}, "only true and false"),
        ({**LEVEL, "label": 2}, "none of the 2 levels"),
        ({**LEVEL, "label": True}, "none of the 2 levels"),
        ({**LEVEL, "criteria": ["same", "same"]}, "read the same"),
        ({**TEAM, "target": {"red": 0.6, "blue": 0.3}}, "sums to 0.9"),
        ({**TEAM, "target": {"red": 0.4, "blue": 0.6}}, "less than 0.5"),
        ({**TEAM, "target": {"red": 1.2, "blue": -0.2}}, "not negative"),
        ({**TEAM, "target": {"rde": 1.0}}, "'rde'"),
    ],
)
def test_a_question_that_cannot_be_meant_is_refused_by_record_and_question(
    question: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=r"record r1, question q: .*" + words):
        record(question)


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        ({"variant": "permuted"}, "parent_id"),
        ({"pair_id": "p"}, "go together"),
        ({"source": "unknowable"}, "control_id"),
        ({"text_sha256": "0" * 64}, "not that of its state"),
    ],
)
def test_a_record_with_half_its_provenance_is_refused(meta: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        record(SURE, **meta)


def test_only_an_unknowable_record_may_leave_its_label_with_less_than_half() -> None:
    flat = {**LEVEL, "criteria": ["a", "b", "c"], "target": {"0": 1 / 3, "1": 1 / 3, "2": 1 / 3}}
    assert record(flat, source="unknowable", control_id="c")
    with pytest.raises(ValueError, match="less than"):
        record(flat)


def test_a_partition_names_a_repeated_id_a_lone_sibling_and_a_missing_parent() -> None:
    one = record(SURE)
    for records, words in (
        ([one, one], "used twice"),
        ([record(SURE, pair_id="p", sibling="a")], "where siblings a and b belong"),
        ([record(SURE, variant="permuted", parent_id="elsewhere")], "elsewhere is not in this partition"),
    ):
        with pytest.raises(ValueError, match=words):
            check_partition(records)


def test_unknown_keys_of_a_record_survive_reading_and_writing() -> None:
    value = {"state": {"b": [1, None]}, "questions": {"q": {**TEAM, "hint": 3}}, "_meta": {"id": "1", "source": "s",
             "variant": "clean", "group_id": "g", "bucket": "4k"}, "more": True}  # fmt: skip
    assert DataRecord.model_validate(value).to_json() == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"what": "ink", "not_for": "oil"}, "what: ink\nnot_for: oil"),
        (["x", "y"], "- x\n- y"),
        ({"note": {"by": "post", "text": "hi"}}, "note:\n  by: post\n  text: hi"),
        ({"seen": ["a", "b"]}, "seen:\n  - a\n  - b"),
        ([{"a": 1, "b": 2}], "- a: 1\n  b: 2"),
        (True, "True"),
        (None, ""),
    ],
)
def test_structured_content_is_read_line_by_line(value: Any, text: str) -> None:
    assert render(value) == text


def test_hostile_nesting_ends_in_words() -> None:
    deep: Any = "x"
    for _ in range(MAX_DEPTH + 2):
        deep = [deep]
    with pytest.raises(ValueError, match="nested deeper"):
        render(deep)


@given(st.text())
def test_the_fingerprint_of_a_state_ignores_white_space_around_words_and_survives_any_text(text: str) -> None:
    assert text_sha256(text) == text_sha256(f" \n{text}\t ")


@given(st.integers(0, 10**6), st.text(max_size=9), st.lists(st.integers(), max_size=30), st.integers(1, 40))
def test_choices_stay_in_bounds_and_depend_on_seed_and_name_alone(
    seed: int, name: str, items: list[int], bound: int
) -> None:
    first, second = Draw(seed, name), Draw(seed, name)
    order = first.shuffled(items)
    assert sorted(order) == sorted(items)
    assert order == second.shuffled(items)
    assert 0 <= first.below(bound) < bound
    assert 3 <= first.between(3, 3 + bound) <= 3 + bound
