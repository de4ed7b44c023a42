"""Sections and lines of a journal are read however they were written, and what is code or damage stays apart."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kev.autorl.journal.lines import KEYS, read_lines
from kev.autorl.journal.section import LABELS, SCORE, SNIPPET, STATUS, ScoreFacts, compose_section, read_journal

LOST = (
    "## Iteration 4 (2027-01-02 03:04, 耗时 99s) - **状态**: ❌ 失败 (exit_code7) - **Score**: 31.5 | Improvement: -2.5"
    " | Best: 33.0 (iter 6) - **训练类型**: SFT - **关键配置**: lr3e-5, batch8 - **做了什么**: a - **为什么**: b"
    " - **问题/进步**: c - **关键代码**: d - **代码片段上下文**: e"
)
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters="*#`"), min_size=1)


def test_a_section_without_its_line_breaks_and_equals_signs_reads_back() -> None:
    (section,) = read_journal(LOST).sections
    assert (section.iteration, section.time, section.duration) == (4, "2027-01-02 03:04", 99.0)
    assert (section.status, section.exit_code, section.train_type) == ("failure", 7, "SFT")
    assert section.score_facts == ScoreFacts(31.5, -2.5, 33.0, 6)
    assert (section.setting("lr"), section.setting("batch"), section.setting("epochs")) == ("3e-5", "8", None)
    assert tuple(section.fields) == LABELS and not section.fields[SCORE].begins_line


def test_full_width_punctuation_reads_as_half_width() -> None:
    text = (
        "## Iteration 1（2027-01-02 03:04，耗时 5 秒）\n- **状态**：✅ 成功（exit_code＝0）\n"
        "- **Score**：1 ｜ Improvement：＋1 ｜ Best：1（iter 1）\n"
    )
    (section,) = read_journal(text).sections
    assert section.duration == 5.0 and section.exit_code == 0 and section.status == "success"
    assert section.score_facts == ScoreFacts(1.0, 1.0, 1.0, 1)


def test_a_heading_or_a_field_inside_a_block_of_code_is_code() -> None:
    fields = dict.fromkeys(LABELS, "x") | {SNIPPET: f"f\n```\n{LOST}\n- **状态**: y\n```"}
    (section,) = read_journal(compose_section(1, "2027-01-02 03:04", 5, fields)).sections
    assert section.text(STATUS) == "x" and not section.repeated and LOST in section.text(SNIPPET)


def test_a_heading_that_is_no_round_and_a_field_said_twice_are_kept_in_view() -> None:
    journal = read_journal("# 运行总结\n## Iteration two\n" + LOST + "\n- **状态**: ✅\n")
    assert journal.has_title and journal.loose == [(2, "## Iteration two")]
    assert journal.sections[0].repeated == (STATUS,) and journal.sections[0].status == "failure"


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.lists(WORDS, min_size=len(LABELS), max_size=len(LABELS)))
def test_what_is_composed_reads_back(iteration: int, duration: int, words: list[str]) -> None:
    fields = dict(zip(LABELS, words, strict=True))
    (section,) = read_journal(compose_section(iteration, "2027-01-02 03:04", duration, fields)).sections
    assert (section.iteration, section.duration) == (iteration, float(duration))
    assert {label: section.text(label) for label in LABELS} == fields
    assert [section.line_of(label) for label in LABELS] == list(range(2, 2 + len(LABELS)))


@pytest.mark.parametrize("tail", ["", "\r\n", "\n\n"])
def test_lines_of_writers_that_met_are_named_as_damaged_and_the_others_are_read(tail: str) -> None:
    good = {
        "iteration": 1, "timestamp": "2027-01-02 03:04", "duration_s": 5, "status": "success", "exit_code": 0,
        "score": 31.5, "improvement": None, "train_type": "SFT", "failure_type": "unknown",
    }  # fmt: skip
    line = json.dumps(good)
    prose = json.dumps({**good, "why": "…"})
    short = json.dumps({key: value for key, value in good.items() if key != "score"})
    found = read_lines("\n".join([line, line + line, line[9:], "[]", prose, short]).encode() + tail.encode())
    assert [each.number for each in found if each.damage] == [2, 3, 4, 6]
    assert [each.keys for each in found] == ["", "", "", "", "+why", "-score"]
    assert found[0].round is not None and set(found[0].round.to_json()) == set(KEYS)
