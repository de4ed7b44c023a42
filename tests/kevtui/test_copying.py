"""What is copied reaches the clipboard of the person, whole, and does nothing on its way."""

import base64
import re
import shlex
from dataclasses import replace

import pytest
import sample_snapshots as samples
from hypothesis import given
from hypothesis import strategies as st
from shown_app import shown

from kevtui import clipboard
from kevtui.cli import build_parser
from kevtui.keymap import BINDINGS, looking
from kevtui.screens.copying import cells_of_trial, commands

INSIDE = {"TMUX": "/tmp/tmux-1000/default,1,0"}


def payloads(sequence: str) -> list[str]:
    return [base64.b64decode(found).decode() for found in re.findall(r"\]52;c;([^\x07]*)\x07", sequence)]


@given(st.text())
def test_no_text_that_is_copied_acts_on_a_terminal_or_ends_a_line_of_a_shell(text: str) -> None:
    copied = clipboard.safe(text)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", copied)
    assert not copied.endswith("\n")
    assert payloads(clipboard.sequence(clipboard.cut(copied), {})) == [clipboard.cut(copied)]


def test_text_beyond_what_terminals_take_is_cut_between_two_characters() -> None:
    copied = clipboard.cut("é" * clipboard.LIMIT)
    assert set(copied) == {"é"} and len(copied.encode()) == clipboard.LIMIT
    assert len(clipboard.sequence(copied, {})) <= 100_000


def test_inside_tmux_the_text_is_sent_as_tmux_takes_it_and_as_tmux_hands_it_on() -> None:
    sequence = clipboard.sequence("night", INSIDE)
    assert payloads(sequence) == ["night", "night"]
    plain, _, wrapped = sequence.partition("\x1bPtmux;")
    assert wrapped.endswith("\x1b\\")
    assert wrapped.removesuffix("\x1b\\").replace("\x1b\x1b", "\x1b") == plain


async def test_a_cell_is_chosen_by_its_name_and_copied_in_full() -> None:
    async with shown(samples.night()) as it:
        trial = it.screen.trial
        assert trial is not None
        await it.pilot.press("i", *"log", "enter")
        await it.pilot.pause()
        assert it.app.clipboard == trial.log
        assert it.app.screen is it.screen


async def test_a_hostile_cell_is_shown_and_copied_without_what_acts() -> None:
    night = samples.night()
    study = replace(night.studies[0], trials=(replace(night.trials[0], error=samples.HOSTILE),))
    async with shown(replace(night, studies=(study,))) as it:
        await it.pilot.press("i", *"error", "enter")
        await it.pilot.pause()
        assert "[/bold]" in it.app.clipboard
        assert not set(samples.SIGNS_THAT_ACT) & set(it.app.clipboard)


async def test_in_a_panel_without_trials_the_row_itself_can_be_copied() -> None:
    async with shown(samples.night()) as it:
        await it.pilot.press("6", "i", *"row", "enter")
        await it.pilot.pause()
        assert it.app.clipboard == it.screen.panel.text() != ""  # type: ignore[union-attr]


def test_every_command_that_is_offered_can_be_parsed_and_changes_nothing_as_it_stands() -> None:
    night = replace(samples.night(), root="/home/somebody/the decisions", spec="experiments/r41.json", round=41)
    offered = commands(night, night.trials[0], BINDINGS)
    assert {"command look", "command log", "command resume", "command cancel", "command launch"} <= dict(offered).keys()
    for _, line in offered:
        words = shlex.split(line)
        if words[0] == "kevtui":
            parsed = build_parser().parse_args(words[1:])
            assert parsed.command == "session" or parsed.dry_run
            assert str(parsed.root) == night.root


def test_where_nothing_may_be_changed_no_command_that_acts_is_offered() -> None:
    night = samples.night()
    assert not [line for _, line in commands(night, night.trials[0], looking(BINDINGS)) if " act " in line]


@pytest.mark.parametrize("name", ["trial", "call", "lease state", "study bound"])
def test_the_cells_hold_what_the_table_has_no_room_for(name: str) -> None:
    night = samples.night()
    assert dict(cells_of_trial(night, night.trials[0]))[name]
