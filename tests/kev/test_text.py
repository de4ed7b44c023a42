"""Text from anywhere is readable in full or visibly escaped, whatever it holds."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kev.text import lines_of, visible

INVISIBLE = "\xad\u034f\u115f\u180e\u200b\u2060\u2063\u206f\u3164\uffa0\ufffe\U000e0041\U000e007f\U000e0101"


@pytest.mark.parametrize("character", INVISIBLE)
def test_a_character_without_ink_is_written_as_an_escape(character: str) -> None:
    shown = visible(f"r41{character}-4b")
    assert character not in shown and shown.startswith("r41\\") and shown.endswith("-4b")


def test_a_joiner_stays_where_other_scripts_need_it_and_shows_where_nothing_does() -> None:
    for whole in ("\U0001f469\u200d\U0001f52c", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u2764\ufe0f"):
        assert visible(whole) == whole
    assert visible("r41\u200d-4b\u200c") == r"r41\u200d-4b\u200c"


@given(st.text())
def test_nothing_that_acts_on_a_terminal_is_left_and_what_was_made_safe_stays(text: str) -> None:
    shown = visible(text)
    assert not any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in shown)
    assert visible(shown) == shown


def test_lines_end_at_newlines_and_carriage_returns_alone() -> None:
    assert lines_of("\ufeffa\r\nb\rc\nd\u2028e\x85f\x0bg\x0ch\x1ci\n") == [
        "a",
        "b",
        "c",
        "d\u2028e\x85f\x0bg\x0ch\x1ci",
        "",
    ]
