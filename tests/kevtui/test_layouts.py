"""How a dashboard is left is how it opens the next time; and where nothing may be changed, nothing is kept."""

import argparse
from pathlib import Path

import pytest
import sample_snapshots as samples
from hypothesis import given
from hypothesis import strategies as st
from shown_app import PATIENCE, Shown, shown

from kev import files
from kevtui import layouts
from kevtui.cli import build_parser
from kevtui.dashboard import watched_of
from kevtui.layouts import UNTOUCHED, LayoutFile, SavedLayout, layout_path, read_layout
from kevtui.observe.target import Target
from kevtui.screens import arrange as places
from kevtui.settings import Settings


async def until_kept(it: Shown, kept: list[SavedLayout], wanted: SavedLayout) -> None:
    for _ in range(PATIENCE):
        if kept and kept[-1] == wanted:
            return
        await it.pilot.pause(0.01)
    raise AssertionError(f"{kept} does not end in {wanted}")


async def test_what_is_arranged_by_keys_is_kept_and_opens_again() -> None:
    kept: list[SavedLayout] = []
    async with shown(samples.night(), keep_layout=kept.append) as it:
        await it.pilot.press("s", "s", "v", "down", "space", "enter", "3", "z")
        columns = it.screen.studies.columns
        await until_kept(it, kept, SavedLayout(places.READS, places.READS, "name", columns))
    async with shown(samples.night(), layout=kept[-1]) as it:
        assert it.screen.zoomed == places.READS and it.screen.focused is it.screen.query_one("#reads")
        assert it.screen.studies.sorted_by == "name" and "state" not in it.screen.studies.columns
        assert it.screen.left() == kept[-1]


async def test_looking_about_without_changing_anything_writes_nothing() -> None:
    kept: list[SavedLayout] = []
    async with shown(samples.night(), keep_layout=kept.append) as it:
        await it.pilot.press("down", "down", "question_mark", "escape")
        it.app._keep_layout()
        await it.pilot.pause(0.05)
    assert kept == []


async def test_what_was_arranged_last_is_kept_when_the_dashboard_ends() -> None:
    kept: list[SavedLayout] = []
    async with shown(samples.night(), keep_layout=kept.append) as it:
        await it.pilot.press("s")
        it.app.exit()
        assert kept == [SavedLayout(sort="state")]


async def test_a_full_disk_interrupts_nobody() -> None:
    def full(_: SavedLayout) -> None:
        raise OSError(28, "No space left on device")

    async with shown(samples.night(), keep_layout=full) as it:
        await it.pilot.press("s")
        it.app._keep_layout()
        await it.pilot.pause(0.05)
        assert it.app.is_running and not it.app._notifications


async def test_names_that_no_panel_has_any_more_are_passed_over() -> None:
    old = SavedLayout("gone", "header", "by moon")
    async with shown(samples.night(), (80, 24), layout=old) as it:
        assert it.screen.zoomed is None and it.screen.left() == UNTOUCHED


@given(st.recursive(st.none() | st.booleans() | st.text() | st.integers(), lambda x: st.lists(x) | st.dictionaries(
    st.sampled_from(["alone", "focus", "sort", "columns"]), x)))  # fmt: skip
def test_whatever_a_file_holds_a_layout_comes_of_it(tmp_path_factory: pytest.TempPathFactory, value: object) -> None:
    path = tmp_path_factory.getbasetemp() / "layout.json"
    files.write_atomic(path, files.dump_json(value))
    layout = read_layout(path)
    assert layout.columns is None or "trial" in layout.columns
    LayoutFile(path).keep(layout)
    assert read_layout(path) == layout


def test_a_layout_is_kept_for_its_session_in_the_state_directory_of_the_user(tmp_path: Path) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path / "state")}
    titles = ("r1", "r1 · night", "../x")
    paths = {layout_path(environment, tmp_path / root, title) for root in "ab" for title in titles}
    assert len(paths) == 6
    assert {path.parent for path in paths} == {tmp_path / "state" / "kevtui" / "layouts"}
    LayoutFile(path := paths.pop()).keep(UNTOUCHED)
    assert not path.exists(), "what is as it comes needs no file"
    LayoutFile(path).keep(SavedLayout("reads", None, "rate", ("trial", "rate")))
    assert read_layout(path) == SavedLayout("reads", None, "rate", ("trial", "rate"))


def arguments(*words: str) -> argparse.Namespace:
    return build_parser().parse_args(words)


def test_where_nothing_may_be_changed_what_keeps_a_layout_is_never_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runs").mkdir()
    target = Target(tmp_path, "night-1", None, None, "night-1", None)
    made: list[Path] = []

    class Counted(LayoutFile):
        def __init__(self, path: Path) -> None:
            made.append(path)
            super().__init__(path)

    monkeypatch.setattr(layouts, "LayoutFile", Counted)
    [looking] = watched_of([target], arguments("session", "night-1", "--read-only"), Settings())
    [demo] = watched_of([target], arguments("demo"), Settings())
    assert made == [] and looking.keep_layout is None and demo.keep_layout is None
    [acting] = watched_of([target], arguments("session", "night-1"), Settings())
    assert len(made) == 1 and acting.keep_layout is not None
    acting.keep_layout(SavedLayout(sort="rate"))
    [looking] = watched_of([target], arguments("session", "night-1", "--read-only"), Settings())
    assert looking.layout == SavedLayout(sort="rate")
