"""A line never exceeds its width, and text from files never acts."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kevtui import glyphs
from kevtui.observe.snapshot import LeaseState, ReadState, Severity, TrialState, Verdict, WatcherState
from kevtui.widgets.line import Pen, Role, text_of


@given(st.text(max_size=40), st.integers(0, 30), st.integers(0, 40), st.booleans(), st.booleans())
def test_a_cell_has_exactly_its_width_and_nothing_that_acts(
    text: str, width: int, room: int, right: bool, ascii_only: bool
) -> None:
    pen = Pen(room, ascii_only=ascii_only)
    pen.add(text, width=width, right=right)
    written = text_of(pen.line())
    assert cell_len(written) == pen.column == min(width, room)
    assert not any(ord(c) < 32 or 0x7F <= ord(c) <= 0x9F or 0xD800 <= ord(c) <= 0xDFFF for c in written)
    assert written.isascii() or not ascii_only


def test_a_cut_ends_in_a_mark_and_figures_stand_right() -> None:
    assert text_of(Pen(20).add("continuation waits", width=8).line()) == "continu…"
    assert text_of(Pen(20, ascii_only=True).add("continuation waits", width=8).line()) == "continu~"
    assert text_of(Pen(20).add("42", Role.STRONG, width=6, right=True).line()) == "    42"


def test_a_wide_character_that_would_be_halved_is_left_out() -> None:
    line = Pen(20).add("日本語です", width=6).line()
    assert cell_len(text_of(line)) == 6


def test_every_state_has_a_glyph_of_one_cell_and_a_stand_in_of_one_cell() -> None:
    tables = {
        TrialState: glyphs.TRIAL,
        LeaseState: glyphs.LEASE,
        ReadState: glyphs.READ,
        WatcherState: glyphs.WATCHER,
        Verdict: glyphs.VERDICT,
        Severity: glyphs.SEVERITY,
    }
    for states, table in tables.items():
        assert set(table) == set(states)
        for glyph in table.values():
            assert cell_len(glyph) == 1
            assert len(glyphs.to_ascii(glyph)) == 1


def test_a_sparkline_shows_a_slowing_down_at_its_true_size() -> None:
    assert glyphs.sparkline([8.0, 8.0, 4.0], 8) == "██▅"
    assert glyphs.sparkline([], 8) == ""
    assert glyphs.sparkline([0.0, 0.0], 8) == ""
