"""Where there is little room: text stays in its column, and no figure is cut, since that reads as another one."""

from dataclasses import replace

import pytest
import sample_snapshots as samples
from hypothesis import given
from hypothesis import strategies as st
from shown_app import shown

from kevtui import format as figures
from kevtui import themes
from kevtui.observe.snapshot import Arm
from kevtui.screens.hanging import hanging
from kevtui.widgets.ink import Ink
from kevtui.widgets.line import text_of
from kevtui.widgets.money import wide
from kevtui.widgets.painting import View
from kevtui.widgets.readout import heading, short

words = st.lists(st.text("abc-/", min_size=1, max_size=30), min_size=1, max_size=12).map(" ".join)


@given(words, st.integers(0, 40), st.integers(50, 120))
def test_no_line_is_too_long_or_begins_left_of_the_column_and_nothing_is_lost(
    text: str, column: int, width: int
) -> None:
    first, *rest = hanging(text, column, width).split("\n")
    assert len(first) <= width - column
    assert all(len(line) <= width and line.startswith(" " * column) for line in rest)
    assert "".join([first, *rest]).replace(" ", "") == text.replace(" ", "")


def test_without_room_the_text_stays_as_it_is() -> None:
    assert hanging("a b c d e f g h", 30, 36) == "a b c d e f g h"


@pytest.mark.parametrize("key", ["question_mark", "ctrl+p"])
async def test_what_a_dialog_says_of_a_key_stays_in_its_column_on_a_phone(key: str) -> None:
    async with shown(samples.night(), (80, 24)) as it:
        await it.pilot.press(key)
        await it.pilot.pause()
        lines = it.lines()
        number = next(number for number, line in enumerate(lines) if "Everything known" in line)
        assert "and copy" in lines[number + 1]
        assert lines[number + 1].index(lines[number + 1].split("│")[1].strip()) == lines[number].index("Everything")


@pytest.mark.parametrize("width", range(30, 100))
def test_a_figure_that_has_no_room_is_left_out_and_never_cut(width: int) -> None:
    readout = samples.night().readout
    assert readout is not None
    arm = next(arm for arm in readout.arms if "fail" in {criterion.verdict for criterion in arm.criteria})
    text = text_of(short(arm, View(width, 1, Ink(themes.load(themes.DEFAULT)))))
    failed = next(criterion for criterion in arm.criteria if criterion.verdict == "fail")
    said = text.partition(failed.name)[2].strip()
    assert said in ("", "0.0412", "0.0412, needs ≤ 0.0381")


@pytest.mark.parametrize("height", [3, 4, 9])
@pytest.mark.parametrize("width", range(60, 160, 3))
def test_amounts_of_the_meter_that_have_no_room_have_a_line_of_their_own_or_none(width: int, height: int) -> None:
    money = replace(samples.money(), simulated=True)
    lines = [text_of(line) for _, line in wide(money, View(width, height, Ink(themes.load(themes.DEFAULT))))]
    whole = (
        f"metered {figures.money(money.metered)} − baseline {figures.money(money.baseline)}",
        f"AI gateway {figures.money(money.gateway_spent)} of {figures.money(money.gateway_authorization)}",
    )
    for amounts in whole:
        there = [line for line in lines if amounts.split("$")[0] in line]
        assert all(amounts in line for line in there)
        assert there or height < 9
    assert any("simulated" in line for line in lines) and len(lines) <= max(3, height)


@pytest.mark.parametrize("width", range(24, 100))
def test_the_word_temperature_is_there_unless_it_costs_a_figure(width: int) -> None:
    arm = Arm("9b-a", "9b", temperature=1.38, temperature_low=1.31, temperature_high=1.46, temperature_source="pool")
    text = text_of(heading(arm, View(width, 1, Ink(themes.load(themes.DEFAULT))))).rstrip()
    room, spared = width - len(text), len("temperature") - len("T")
    if "  temperature 1.38" in text:
        assert all(figure in text or room + spared < len(figure) for figure in (" [1.31, 1.46]", " from pool"))
    else:
        assert room < spared
