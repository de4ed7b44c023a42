"""Several sessions on one dashboard: one is looked at, the others cost next to nothing and still tell what is wrong."""

import argparse
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
import sample_snapshots as samples
from hypothesis import given
from hypothesis import strategies as st
from sample_snapshots import HeldSource
from shown_app import PATIENCE, until_shown
from textual.pilot import Pilot

from kev.errors import NotFound
from kevtui import exit_codes, feed, themes
from kevtui.actions.holder import Holder
from kevtui.actions.sight import Sight
from kevtui.app import KevApp, Options
from kevtui.cli import build_parser, main
from kevtui.dashboard import watched_of
from kevtui.layouts import SavedLayout
from kevtui.observe.snapshot import Alert, Severity, Snapshot
from kevtui.observe.target import Target
from kevtui.screens import arrange as places
from kevtui.settings import Settings
from kevtui.tabs import Watched
from kevtui.widgets.actions import ActionsPanel
from kevtui.widgets.ink import Ink
from kevtui.widgets.line import text_of
from kevtui.widgets.painting import View
from kevtui.widgets.tab_line import Mark, tabs
from kevtui.widgets.tab_line import places as places_of

FINE = replace(samples.night(), title="r42 · day-1", session="day-1", alerts=())
WRONG = (
    Alert("lease-stale", Severity.CRITICAL, "r42/0", "stale"),
    Alert("slow", Severity.WARNING, "r42/1", "slow"),
    Alert("reading", Severity.WARNING, "money", "old", acknowledged=True),
)


@dataclass
class Several:
    app: KevApp
    pilot: Pilot[int]
    sources: list[HeldSource]

    def text(self) -> str:
        return "\n".join(strip.text for strip in self.app.screen._compositor.render_strips())

    def line(self) -> str:
        return self.text().splitlines()[0]

    async def until(self, right: Callable[[], bool]) -> None:
        for _ in range(PATIENCE):
            if right():
                break
            await self.pilot.pause(0.01)
        assert right(), self.text()
        await self.pilot.pause()


@asynccontextmanager
async def several(
    *others: Watched, size: tuple[int, int] = (160, 50), monkeypatch: pytest.MonkeyPatch | None = None
) -> AsyncIterator[Several]:
    first, second = HeldSource(samples.night()), HeldSource(FINE)
    more = others or (Watched("r42 · day-1", lambda: second),)
    app = KevApp(lambda: first, title="r41 · night-7", options=Options(more=more))
    async with app.run_test(size=size, notifications=True) as pilot:
        it = Several(app, pilot, [first, second])
        await it.until(lambda: app._tabs[0].screen.snapshot is not None)
        yield it


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tab that rests is asked often, so that no test waits for it."""
    monkeypatch.setattr(feed, "RESTING_LOOK_S", 0.01)
    monkeypatch.setattr(feed, "RESTING_IDLE_S", 0.1)


async def test_the_keys_go_round_the_sessions_and_the_first_line_says_where_one_is() -> None:
    async with several() as it:
        assert it.line().strip().startswith("[1 r41 · night-7]")
        await it.pilot.press("right_curly_bracket")
        await it.until(lambda: "[2 r42 · day-1]" in it.line())
        assert "r42 · day-1" in it.text().splitlines()[1]
        await it.pilot.press("right_curly_bracket")
        await it.until(lambda: "[1 r41 · night-7]" in it.line())
        await it.pilot.press("left_curly_bracket")
        await it.until(lambda: "[2 r42 · day-1]" in it.line())


async def test_the_palette_goes_to_a_session_by_its_name() -> None:
    async with several(size=(80, 24)) as it:
        await it.pilot.press("ctrl+p", *"day-1", "enter")
        await it.until(lambda: "[2 r42 · day-1]" in it.line())


async def test_a_tab_can_be_clicked() -> None:
    async with several() as it:
        await it.pilot.click("#tabs", offset=(it.line().index("day-1"), 0))
        await it.until(lambda: "[2 r42 · day-1]" in it.line())
        await it.pilot.click("#tabs", offset=(it.line().index("night-7"), 0))
        await it.until(lambda: "[1 r41 · night-7]" in it.line())
        await it.pilot.click("#tabs", offset=(150, 0))
        await it.pilot.pause()
        assert "[1 r41 · night-7]" in it.line()


async def test_one_session_has_neither_a_line_of_tabs_nor_their_keys() -> None:
    source = HeldSource(samples.night())
    app = KevApp(lambda: source, title="r41 · night-7")
    async with app.run_test(size=(160, 50)) as pilot:
        await until_shown(pilot, source.observe())
        assert places.TABS not in {child.id for child in app.screen.children}
        assert not {binding.id for binding in app.bindings_table} & {"next_tab", "previous_tab"}


async def test_alerts_of_a_session_that_nobody_looks_at_stand_on_its_tab(quick: None) -> None:
    async with several() as it:
        await it.until(lambda: it.app._tabs[1].snapshot is not None)
        assert "✗" not in it.line()
        it.sources[1].put(replace(FINE, alerts=WRONG))
        await it.until(lambda: "2 r42 · day-1 ✗1 ▲1" in it.line())
        await it.pilot.press("right_curly_bracket")
        await it.until(lambda: "[2 r42 · day-1]" in it.line())


async def test_a_session_that_nobody_looks_at_makes_no_widgets_and_paints_nothing(quick: None) -> None:
    async with several() as it:
        other = it.app._tabs[1]
        for _ in range(3):
            newest = replace(FINE, alerts=WRONG)
            it.sources[1].put(newest)
            await it.until(lambda newest=newest: other.snapshot is newest)
        assert not other.screen.is_mounted and other.screen.snapshot is None
        await it.pilot.press("right_curly_bracket")
        await it.until(lambda: other.screen.snapshot is newest)
        await it.pilot.press("right_curly_bracket")
        shown = other.screen.snapshot
        it.sources[1].put(FINE)
        await it.until(lambda: other.snapshot is FINE)
        assert other.screen.snapshot is shown
        await it.pilot.press("right_curly_bracket")
        await it.until(lambda: other.screen.snapshot is FINE)


class CountedSource(HeldSource):
    """Counts how often it is asked, and is never still."""

    def __init__(self) -> None:
        super().__init__(FINE)
        self.asked = 0

    def observe(self) -> Snapshot:
        self.asked += 1
        return super().observe()

    def wait(self, timeout_s: float) -> bool:
        return True


async def test_a_session_that_nobody_looks_at_is_asked_once_and_then_rests() -> None:
    counted = CountedSource()
    async with several(Watched("r42", lambda: counted)) as it:
        await it.until(lambda: counted.asked == 1)
        for _ in range(20):
            await it.pilot.pause(0.01)
        assert counted.asked == 1
        await it.pilot.press("right_curly_bracket")
        await it.until(lambda: counted.asked > 1)


async def test_a_terminal_that_changes_its_size_meanwhile_has_the_other_panels_in_their_places() -> None:
    async with several() as it:
        await it.pilot.press("right_curly_bracket")
        await it.until(lambda: "[2 r42 · day-1]" in it.line())
        await it.pilot.press("right_curly_bracket")
        await it.pilot.resize_terminal(80, 24)
        await it.pilot.press("right_curly_bracket")
        await it.until(lambda: "[2 r42 · day-1]" in it.line())
        screen = it.app.screen
        for child in screen.children:
            if child.display and child.id in places.NAMES:
                assert screen.size.region.contains_region(child.region), child.id
        assert screen.has_class("-flat")


async def test_a_session_that_cannot_be_read_is_told_and_the_others_go_on() -> None:
    def broken() -> HeldSource:
        raise NotFound("r99.json: no such round")

    async with several(Watched("r99", broken)) as it:
        await it.until(lambda: "2 r99 ✗ ended" in it.line())
        assert it.app.is_running and it.app.failure is None
        assert any("r99: r99.json" in each.message for each in it.app._notifications)


async def test_each_session_has_control_of_its_own_and_only_once_it_is_looked_at() -> None:
    opened: list[str] = []

    class Eyes:
        may_act: ClassVar[bool] = True
        undo_window_s = 0.0

        def __init__(self, name: str) -> None:
            opened.append(name)
            self.asked: Holder | None = None

        def look(self, session: str | None) -> Sight:
            return Sight(mine=True, asked=self.asked)

        def keep_alerts(self, session: str | None, state_file: str | None, alerts: object) -> None:
            """Nothing is written down here."""

    eyes: list[Eyes] = []

    def open_eyes(name: str) -> Eyes:
        eyes.append(Eyes(name))
        return eyes[-1]

    second, first = HeldSource(FINE), HeldSource(samples.night())
    other = Watched("r42", lambda: second, lambda: open_eyes("second"), may_act=True)  # type: ignore[arg-type, return-value]
    options = Options(more=(other,), open_eyes=lambda: open_eyes("first"), may_act=True)  # type: ignore[arg-type, return-value]
    app = KevApp(lambda: first, title="r41", options=options)
    async with app.run_test(size=(160, 50), notifications=True) as pilot:
        it = Several(app, pilot, [first, second])
        await it.until(lambda: opened == ["first"] and app._tabs[1].snapshot is not None)
        await it.pilot.press("right_curly_bracket")
        await it.until(lambda: opened == ["first", "second"])
        hands = [tab.screen.query_one(ActionsPanel).hands for tab in app._tabs]
        await it.until(lambda: all(tab.screen.query_one(ActionsPanel).hands is not None for tab in app._tabs))
        assert hands[0] is not hands[1]
        eyes[0].asked = Holder("ann@host", 1, 0.0)
        app._tabs[0].screen.query_one(ActionsPanel).look()
        await it.until(lambda: "1 r41 " in it.line() and "asks" in it.line())


async def test_what_was_arranged_in_a_session_is_kept_also_when_one_goes_to_another_at_once() -> None:
    kept: list[SavedLayout] = []
    second = HeldSource(FINE)
    async with several(Watched("r42 · day-1", lambda: second, keep_layout=kept.append)) as it:
        await it.pilot.press("right_curly_bracket")
        await it.until(lambda: it.app._tabs[1].screen.snapshot is not None)
        await it.pilot.press("s", "left_curly_bracket")
        await it.until(lambda: kept == [SavedLayout(sort="state")])
        assert it.app._here is it.app._tabs[0]


async def test_a_change_of_theme_is_seen_in_every_session() -> None:
    async with several() as it:
        await it.pilot.press("right_curly_bracket")
        await it.until(lambda: "[2 r42 · day-1]" in it.line())
        await it.pilot.press("t", "right_curly_bracket")
        await it.until(lambda: "[1 r41 · night-7]" in it.line())
        grounds = {
            style.bgcolor.name
            for strip in it.app.screen._compositor.render_strips()
            for _, style, _ in strip
            if style is not None and style.bgcolor
        }
        assert themes.load(themes.DEFAULT).colours["background"] not in grounds


titles = st.text(st.characters(codec="utf-8"), max_size=60)


@given(st.lists(st.tuples(titles, st.sampled_from(["", "✗1 ▲12"])), min_size=1, max_size=9), st.integers(1, 200))
def test_the_line_of_tabs_fits_and_cuts_titles_before_what_is_wrong(given: list[tuple[str, str]], width: int) -> None:
    marks = [Mark(title, number == 0, text) for number, (title, text) in enumerate(given)]
    view = View(width, 1, Ink(themes.load(themes.DEFAULT)))
    line = text_of(tabs(marks, view))
    assert view.ink.pen(10_000).measure(line) <= width
    if width >= 24 * len(marks):
        assert line.count("▲12") == sum(bool(mark.text) for mark in marks)
        assert all(f"{number} " in line for number in range(1, len(marks) + 1))


def arguments(*words: str) -> argparse.Namespace:
    return build_parser().parse_args(["session", *words])


def targets(tmp_path: Path) -> list[Target]:
    roots = [tmp_path / name for name in ("here", "there")]
    for root in roots:
        (root / "runs").mkdir(parents=True)
    return [Target(root, "night-1", None, None, "night-1", None) for root in roots]


def test_sessions_of_one_name_say_in_which_folder_they_are(tmp_path: Path) -> None:
    found = watched_of(targets(tmp_path), arguments("a", "b"), Settings())
    assert [each.title for each in found] == ["night-1 · here", "night-1 · there"]


def test_each_session_acts_only_where_its_own_folder_lets_it(tmp_path: Path) -> None:
    for words, able in ((("a", "b"), True), (("a", "b", "--read-only"), False)):
        for watched in watched_of(targets(tmp_path / words[-1]), arguments(*words), Settings()):
            assert watched.may_act is able and watched.open_eyes is not None
            assert watched.open_eyes().may_act is able


def test_sessions_may_be_named_before_and_after_options() -> None:
    read = arguments("r1", "--root", "there", "r2", "--read-only", "r3")
    assert (read.session, read.others, read.read_only) == ("r1", ["r2", "r3"], True)
    with pytest.raises(SystemExit):
        arguments("r1", "--no-such-option")


@pytest.mark.parametrize(("word", "words"), [("--once", "name one"), ("--json", "name one"), ("--plain", "name one")])
def test_without_a_dashboard_one_session_is_asked_for_in_a_line(
    word: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["session", "r1", "r2", word]) == exit_codes.USAGE
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1


@given(st.lists(st.text("night-9", max_size=30), min_size=1, max_size=9), st.integers(1, 200))
def test_a_click_goes_to_the_tab_that_is_written_there(names: list[str], width: int) -> None:
    marks = [Mark(name) for name in names]
    view = View(width, 1, Ink(themes.load(themes.DEFAULT)))
    line = text_of(tabs(marks, view))
    for number, end in enumerate(places_of(marks, view)[:-1], 2):
        if end < width - 3:
            assert line[end + 1 :].startswith(str(number))
