"""The user's file of settings: what it changes, and what is said of one that cannot be meant."""

from pathlib import Path

import pytest
import sample_snapshots as samples
from shown_app import shown

from kevtui.keymap import BINDINGS
from kevtui.settings import BadSettings, Settings, read_settings


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "kevtui" / "config.toml"
    path.parent.mkdir()
    return path


def settings(config: Path) -> Settings:
    return read_settings({"XDG_CONFIG_HOME": str(config.parent.parent)})


def test_without_a_file_everything_is_as_it_comes(config: Path) -> None:
    assert settings(config) == Settings(None, False, BINDINGS)


def test_a_file_gives_theme_signs_and_keys(config: Path) -> None:
    config.write_text('theme = "light"\nascii = true\n[keys]\nquit = "ctrl+q"\nsort = ["s", "f2"]\n')
    read = settings(config)
    keys = {binding.id: binding.keys for binding in read.bindings}
    assert (read.theme, read.ascii, keys["quit"], keys["sort"]) == ("light", True, ("ctrl+q",), ("s", "f2"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("theme = 3\nascii = 1\ncolour = 2\n", ["ascii: should", "colour: no such", "theme: should"]),
        ('[keys]\nfly = "f"\n', ["keys.fly: no such binding"]),
        ('[keys]\nquit = "l"\n', ["l is already the key of"]),
        ("[keys]\nquit = 7\nlog = []\n", ["keys.log: should", "keys.quit: should"]),
        ("keys = 1\n", ["keys: should be a table"]),
        ("[keys\n", ["is no TOML"]),
    ],
)
def test_every_mistake_is_a_line_that_names_file_and_key(config: Path, text: str, words: list[str]) -> None:
    config.write_text(text)
    with pytest.raises(BadSettings) as caught:
        settings(config)
    assert len(caught.value.lines) == len(words)
    for line, word in zip(caught.value.lines, words, strict=True):
        assert line.startswith(f"{config}: ") and word in line and "\n" not in line


def test_a_file_that_is_no_text_is_told_in_a_line(config: Path) -> None:
    config.write_bytes(b"theme = '\xe9'")
    with pytest.raises(BadSettings, match="no TOML"):
        settings(config)


async def test_a_key_that_was_moved_does_what_it_is_for(config: Path) -> None:
    config.write_text('[keys]\nhelp = "f1"\n')
    async with shown(samples.night(), (120, 40), bindings=settings(config).bindings) as it:
        await it.pilot.press("question_mark")
        assert len(it.app.screen_stack) == 1
        await it.pilot.press("f1")
        assert len(it.app.screen_stack) == 2
