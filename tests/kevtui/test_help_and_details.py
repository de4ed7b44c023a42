"""The help and the details of a trial, as a person uses them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest
import sample_snapshots as samples
from shown_app import shown
from textual.app import App
from textual.widgets import Input, Static

from kevtui.keymap import BINDINGS
from kevtui.observe.snapshot import Lease, LeaseState, Projection, Rate, Study, Trial, TrialState
from kevtui.screens import opening
from kevtui.screens.details import DetailsScreen, describe
from kevtui.screens.help import HelpRow, HelpScreen, help_lines, matching
from kevtui.widgets.line import text_of as line_text
from kevtui.widgets.text_lines import TextLines


@dataclass
class Key:
    label: str
    verb: str
    text: str
    group: str
    danger: bool = False


KEYS = [
    Key("enter", "details", "Everything known of the row", "In a panel"),
    Key("L", "launch", "Launch a study", "Money", danger=True),
    Key("l", "log", "The log of the trial, from its end", "In a panel"),
    *[Key(f"{n}", "panel", f"Go to [panel] {n}", "Panels") for n in range(1, 40)],
]
TRIAL = Trial(
    "r9-4b",
    "trial-0",
    0,
    TrialState.RUNNING,
    call="fc-123",
    attempts_used=1,
    attempts_allowed=3,
    error="[/bold]\x1b[2J failed",
    step=420,
    steps=1140,
    loss=0.51234,
    rate=Rate(6.1, 1800.0, "metrics"),
    projection=Projection(7000, 6900, 7200, datetime(2026, 1, 2, 7, 52, tzinfo=UTC), None, True),
    log_age_s=22.0,
)
STUDY = Study("r9-4b", TrialState.RUNNING, gpu="H100", bound=Decimal("50.12"), trials=(TRIAL,))


def text_of(app: App[None]) -> str:
    if isinstance(app.screen, HelpScreen):
        return app.screen.query_one(TextLines).text()
    return str(app.screen.query_one(Static).render())


def help_text(rows: Iterable[HelpRow]) -> str:
    return "\n".join(map(line_text, help_lines(rows)))


def test_the_help_lists_every_row_once_under_its_group() -> None:
    text = help_text(KEYS)
    assert all(text.count(key.text) >= 1 for key in KEYS)
    assert [text.count(f"{group}\n") for group in ("In a panel", "Money", "Panels")] == [1, 1, 1]
    assert "Launch a study  (asks first)" in text


def test_a_command_without_a_key_says_where_it_is_found() -> None:
    rows = [row for row in BINDINGS if not row.keys]
    text = help_text(BINDINGS)
    assert rows and all(f"{row.text}  (palette: {row.verb})" in text for row in rows)


def test_all_words_must_match_in_any_case() -> None:
    assert [row.verb for row in matching(KEYS, "LOG end")] == ["log"]
    assert matching(KEYS, "no such key") == []


async def test_help_narrows_as_one_types_scrolls_and_closes() -> None:
    app: App[None] = App()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.push_screen(HelpScreen(KEYS))
        await pilot.press("pagedown", "down")
        assert app.screen.query_one(TextLines).scroll_y == 11
        await pilot.press(*"launch")
        await pilot.pause()
        assert "Launch a study" in text_of(app) and "[panel]" not in text_of(app)
        await pilot.press("escape")
        await pilot.pause()
        assert not isinstance(app.screen, HelpScreen)


async def test_the_help_opened_again_begins_anew_and_knows_the_keys_of_now() -> None:
    async with shown(samples.night()) as it:
        await it.pilot.press("question_mark", "pagedown", *"zoom")
        await it.pilot.pause()
        assert "Go to the next panel" not in it.text()
        await it.pilot.press("escape")
        await it.pilot.resize_terminal(100, 30)
        one = it.screen.bindings[0]
        it.screen.bindings = (one,)
        await it.pilot.press("question_mark")
        await it.pilot.pause()
        help_screen = it.app.screen
        assert isinstance(help_screen, HelpScreen)
        lines = help_screen.query_one(TextLines)
        assert (help_screen.query_one(Input).value, lines.scroll_y) == ("", 0)
        assert one.text in lines.text() and len(lines.lines) == 2
        assert help_screen.size == it.app.size == (100, 30)
        await it.pilot.press(*"xyz")
        await it.pilot.pause()
        assert "no key matches" in it.text()


async def test_the_key_pressed_twice_at_once_opens_one_help() -> None:
    async with shown(samples.night()) as it:
        it.screen.action_help()
        it.screen.action_help()
        await it.pilot.pause()
        assert len(it.app.screen_stack) == 2
        await it.pilot.press("escape")
        assert it.app.screen_stack == [it.screen]


async def test_the_help_opened_again_has_the_colours_of_the_theme_of_now() -> None:
    async with shown(samples.night()) as it:
        await it.pilot.press("question_mark", "escape")
        await it.screen.run_action("app.use_theme('light')")
        await it.pilot.pause()
        painted = []
        for dialog in (it.app.get_screen(opening.KEYS), HelpScreen(it.screen.bindings)):
            await it.app.push_screen(dialog)
            await it.pilot.pause()
            painted.append(
                [
                    (strip.text, [segment.style for segment in strip])
                    for strip in it.app.screen._compositor.render_strips()
                ]
            )
            await it.pilot.press("escape")
        assert it.app.theme == "kev-light" and painted[0] == painted[1]


def test_details_show_what_is_missing_as_missing() -> None:
    bare = Trial("s", "t", None, TrialState.UNKNOWN, rate_note="this log has no clock")
    facts = {name: value for _, section in describe(bare, None, None) for name, value in section}
    assert facts["call"] == "–" and facts["step"] == "– of –" and facts["loss"] == "–"
    assert facts["step rate"] == "this log has no clock"
    assert "finishes" not in facts


async def test_details_are_read_scrolled_and_copied_whole_and_hostile_text_stays_text() -> None:
    app: App[None] = App()
    lease = Lease("r9-4b/trial-0", LeaseState.FRESH, unchanged_s=18.0, skew_s=-3.2, nonce_matches=False)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = DetailsScreen(describe(TRIAL, lease, STUDY))
        await app.push_screen(screen)
        text = text_of(app)
        for part in ("6.1 steps/min", "420 of 1,140", "18 s ago", "-3.2 s", "does not match", "$50.12", "07:52Z"):
            assert part in text
        assert "[/bold]\\x1b[2J failed" in text
        await pilot.press("y")
        assert app.clipboard == text
        screen.show(describe(TRIAL, None, STUDY))
        assert "18 s ago" not in text_of(app)
        await pilot.press("escape")
        await pilot.pause()
        assert app.screen is not screen


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (500, 200)])
async def test_both_survive_any_size(size: tuple[int, int]) -> None:
    app: App[None] = App()
    async with app.run_test(size=size) as pilot:
        await app.push_screen(DetailsScreen(describe(TRIAL, None, None), ascii=True))
        await app.push_screen(HelpScreen(KEYS, ascii=True))
        await pilot.pause()
        assert text_of(app).isascii()


def test_a_study_says_its_state_once() -> None:
    sections = dict(describe(TRIAL, None, replace(STUDY, status_text="running")))
    assert dict(sections["Study"])["state"] == "running"
    sections = dict(describe(TRIAL, None, replace(STUDY, status_text="pulled, read")))
    assert dict(sections["Study"])["state"] == "running: pulled, read"
