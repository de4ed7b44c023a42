"""Text reaches its output whole, or the reader of the exit status knows better."""

import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kevtui.glyphs import to_ascii
from kevtui.headless.output import Output, OutputEnded, OutputLost

FULL = Path("/dev/full")


def test_a_pipe_whose_reader_left_is_an_end_and_stays_quiet_afterwards() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as stream:
        with pytest.raises(OutputEnded):
            Output(stream, {}).write("words\n")
        stream.flush()


def test_a_reader_that_left_is_noticed_without_a_word_being_written() -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "w", encoding="utf-8") as stream:
        output = Output(stream, {})
        output.look_for_reader()
        os.close(reader)
        with pytest.raises(OutputEnded):
            output.look_for_reader()


def test_an_output_without_a_descriptor_has_no_reader_to_lose() -> None:
    Output(io.StringIO(), {}).look_for_reader()
    Output(None, {}).look_for_reader()


@pytest.mark.skipif(not FULL.exists(), reason="this system has no full device")
def test_a_full_device_is_named_in_one_line() -> None:
    with FULL.open("w", encoding="utf-8") as stream:
        with pytest.raises(OutputLost, match="no space left"):
            Output(stream, {}).write("words\n")
        stream.flush()


def test_a_closed_output_is_named_in_one_line() -> None:
    with pytest.raises(OutputLost, match="closed"):
        Output(None, {}).write("words\n")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437", "iso-2022-jp"])
@given(text=st.text())
def test_no_text_is_too_much_for_an_old_encoding(encoding: str, text: str) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, errors="strict", newline="")
    Output(stream, {}).write(text)
    assert raw.getvalue() == to_ascii(text).encode("ascii")


@given(st.text())
def test_stand_ins_leave_ascii_as_it_is_and_drop_nothing(text: str) -> None:
    shown = to_ascii(text)
    assert shown.isascii()
    assert len(shown) >= len(text)
    if text.isascii():
        assert shown == text


def test_a_dumb_terminal_and_no_colour_ask_for_plain_text() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert Output(Terminal(), {"TERM": "xterm"}).styled
    assert not Output(Terminal(), {"TERM": "dumb"}).styled
    assert not Output(Terminal(), {}).styled
    assert not Output(Terminal(), {"TERM": "xterm", "NO_COLOR": "1"}).styled
    assert not Output(io.StringIO(), {"TERM": "xterm"}).styled
