"""A notice is text: whatever a file put into it, nothing of it is markup and nothing acts on the terminal."""

import ast
import time
from pathlib import Path

import pytest
import sample_snapshots as samples
from shown_app import PATIENCE, shown
from textual.widgets._toast import Toast

from kevtui.notice import Notice

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize("ascii_only", [False, True])
async def test_the_text_of_a_file_is_shown_whole_in_a_notice(ascii_only: bool) -> None:
    async with shown(samples.calm(), (200, 40), ascii=ascii_only) as it:
        it.screen.notify("[red]a\x1b]0;t\x07\u202e[/b]\nb", timeout=60)
        it.app.notify("é [@click=app.quit]x[/]", title="\x9b2J", timeout=60)
        await it.pilot.pause()
        text = it.text()
        assert "[red]a\\x1b]0;t\\x07\\u202e[/b]" in text
        assert ("\\xe9" if ascii_only else "é") + " [@click=app.quit]x[/]" in text
        assert not any(sign in text for sign in (*samples.SIGNS_THAT_ACT, "\x9b"))


async def test_a_trial_without_a_log_says_so_under_its_own_name() -> None:
    async with shown(samples.hostile(), (200, 50)) as it:
        await it.pilot.press("l")
        await it.pilot.pause()
        assert "no log yet" in it.text()
        assert not any(sign in it.text() for sign in samples.SIGNS_THAT_ACT)


def test_every_notice_goes_through_the_app_that_makes_it_safe() -> None:
    """Toasts made in another way would not."""
    for path in (REPOSITORY / "kevtui").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "textual.notifications":
                if path.name in ("app.py", "notice.py"):
                    continue
                assert {alias.name for alias in node.names} == {"SeverityLevel"}, path
            if isinstance(node, ast.ClassDef) and path.name != "app.py":
                assert "notify" not in {each.name for each in node.body if isinstance(each, ast.FunctionDef)}, path


async def test_a_notice_that_is_over_before_it_is_shown_is_taken_away_and_keys_go_on() -> None:
    """As where its time ends while a dialog opens: Textual then looks at it twice, before its end and after it."""
    over = Notice("over", timeout=-1)
    assert over.has_expired and over.time_left > 0
    async with shown(samples.calm(), (120, 40)) as it:
        await it.screen.mount(Toast(over))
        for _ in range(PATIENCE):
            if not it.screen.query(Toast):
                break
            await it.pilot.pause(0.01)
        assert not it.screen.query(Toast)
        await it.pilot.press("question_mark")
        assert len(it.app.screen_stack) == 2


async def test_every_notice_is_one_that_ends_whoever_gives_it() -> None:
    async with shown(samples.calm(), (120, 40)) as it:
        for giver in (it.app, it.screen, it.screen.studies):
            giver.notify("said")
        await it.pilot.pause()
        assert [type(each) for each in it.app._notifications] == [Notice] * 3


def test_a_notice_lasts_as_long_as_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "time", lambda: 0.0)  # the clock on the wall is set back
    notice = Notice("said", timeout=3)
    now[0] += 2.5
    assert notice.time_left == 0.5 and not notice.has_expired
    now[0] += 0.5
    assert notice.has_expired
