"""A notice is text: whatever a file put into it, nothing of it is markup and nothing acts on the terminal."""

import ast
from pathlib import Path

import pytest
import sample_snapshots as samples
from shown_app import shown

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
                assert {alias.name for alias in node.names} == {"SeverityLevel"}, path
            if isinstance(node, ast.ClassDef) and path.name != "app.py":
                assert "notify" not in {each.name for each in node.body if isinstance(each, ast.FunctionDef)}, path
