"""The help and the details of a trial, as a person uses them."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from textual.app import App
from textual.containers import VerticalScroll
from textual.widgets import Static

from kevtui.keymap import BINDINGS
from kevtui.observe.snapshot import Lease, LeaseState, Projection, Rate, Study, Trial, TrialState
from kevtui.screens.details import DetailsScreen, describe
from kevtui.screens.help import HelpScreen, help_text, matching


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
    return str(app.screen.query_one(Static).render())


def test_the_help_lists_every_row_once_under_its_group() -> None:
    text = help_text(KEYS).plain
    assert all(text.count(key.text) >= 1 for key in KEYS)
    assert [text.count(f"{group}\n") for group in ("In a panel", "Money", "Panels")] == [1, 1, 1]
    assert "Launch a study  (asks first)" in text


def test_a_command_without_a_key_says_where_it_is_found() -> None:
    rows = [row for row in BINDINGS if not row.keys]
    text = help_text(BINDINGS).plain
    assert rows and all(f"{row.text}  (palette: {row.verb})" in text for row in rows)


def test_all_words_must_match_in_any_case() -> None:
    assert [row.verb for row in matching(KEYS, "LOG end")] == ["log"]
    assert matching(KEYS, "no such key") == []


async def test_help_narrows_as_one_types_scrolls_and_closes() -> None:
    app: App[None] = App()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.push_screen(HelpScreen(KEYS))
        await pilot.press("pagedown", "down")
        assert app.screen.query_one(VerticalScroll).scroll_y == 11
        await pilot.press(*"launch")
        await pilot.pause()
        assert "Launch a study" in text_of(app) and "[panel]" not in text_of(app)
        await pilot.press("escape")
        await pilot.pause()
        assert not isinstance(app.screen, HelpScreen)


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
