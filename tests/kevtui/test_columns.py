"""The columns of the studies: chosen, moved, and dropped in one known order where there is no room."""

from dataclasses import replace

import sample_snapshots as samples
from hypothesis import given
from hypothesis import strategies as st
from shown_app import Shown, shown

from kevtui import themes
from kevtui.columns import EVERY, LONGEST_FIRST, chosen, wrong_with
from kevtui.observe.snapshot import LeaseState
from kevtui.widgets.ink import Ink
from kevtui.widgets.line import text_of
from kevtui.widgets.painting import View
from kevtui.widgets.study_columns import fit, heading
from kevtui.widgets.trial_rows import entries

INK = Ink(themes.load(themes.DEFAULT))
WANTED = st.lists(st.sampled_from(EVERY), unique=True).map(chosen)


def test_every_column_has_its_place_in_the_order_of_going() -> None:
    assert sorted(EVERY) == sorted(LONGEST_FIRST)


@given(WANTED, st.integers(1, 250), st.booleans())
def test_the_columns_that_go_are_the_last_of_the_stated_order(
    wanted: tuple[str, ...], width: int, narrow: bool
) -> None:
    view = View(width, 20, INK, narrow=narrow)
    rows = entries(samples.night())
    kept = [column for column, _ in fit(rows, view, wanted)]
    by_staying = [column for name in sorted(wanted, key=LONGEST_FIRST.index) for column, _ in fit(rows, BROAD, [name])]
    titles = [column.title for column in by_staying]
    assert {column.title for column in kept} == set(titles[: len(kept)])
    asked_for = [column.title for name in wanted for column, _ in fit(rows, BROAD, [name])]
    assert [column.title for column in kept] == [title for title in asked_for if title in titles[: len(kept)]]


BROAD = View(400, 20, INK)


def test_a_choice_without_the_trials_still_names_them() -> None:
    assert chosen(["rate", "step"]) == ("trial", "rate", "step")
    assert wrong_with(["rate", "rate"]) == "'rate' is there twice"
    assert wrong_with(["speed"]).startswith("'speed' is no column; there are trial, ")
    assert wrong_with("rate").startswith("should be a list")


def titles(it: Shown) -> list[str]:
    line = next(line for line in it.lines() if "trial  " in line)
    return [word for word in line.replace("│", " ").split() if word.isalpha()]


async def test_what_the_settings_ask_for_is_what_is_shown_in_that_order() -> None:
    async with shown(samples.night(), columns=("trial", "loss", "state")) as it:
        assert titles(it)[:3] == ["trial", "loss", "state"]
        assert "lease" not in titles(it)[:4]


async def test_the_key_hides_moves_and_puts_back_columns() -> None:
    async with shown(samples.night()) as it:
        before = it.screen.studies.columns
        await it.pilot.press("v", "down", "space", "down", "right", "enter")
        assert it.screen.studies.columns == ("trial", "progress", "step", *before[4:])
        view = View(150, 20, INK)
        assert "state" not in "".join(text for text, _ in heading(fit([], view, it.screen.studies.columns), view))
        await it.pilot.press("v", "r", "enter")
        assert it.screen.studies.columns == before


async def test_leaving_the_dialog_changes_nothing_and_trials_cannot_be_hidden() -> None:
    async with shown(samples.night(), (80, 24)) as it:
        before = it.screen.studies.columns
        await it.pilot.press("v", "down", "space", "escape")
        assert it.screen.studies.columns == before
        await it.pilot.press("v", "space", "enter")
        assert it.screen.studies.columns == before


def test_a_lease_without_an_age_says_its_state_in_full_where_there_is_room() -> None:
    night = samples.night()
    row = next(row for row in entries(night) if row.lease is not None)
    for state in LeaseState:
        rows = [replace(row, lease=replace(row.lease, state=state, unchanged_s=None))]
        ((column, width),) = fit(rows, BROAD, ["lease"])
        pen = BROAD.pen()
        column.draw(pen, rows[0], width)
        assert text_of(pen.line()).rstrip().endswith(state.value)
