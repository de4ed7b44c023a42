"""The user's file of settings: what it changes, and what is said of one that cannot be meant."""

import re
import tomllib
from pathlib import Path

import pytest
import sample_snapshots as samples
from shown_app import shown

from kevtui.keymap import BINDINGS
from kevtui.observe.observer import LEASES_VARIABLE
from kevtui.permission import VARIABLE
from kevtui.settings import FIELDS, BadSettings, Settings, columns_markdown, markdown, read_settings

REPOSITORY = Path(__file__).parents[2]


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
        ('columns = ["trial", "speed"]\n', ["columns: 'speed' is no column; there are trial, "]),
        ("undo_window_s = -1\n", ["undo_window_s: should be a number"]),
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


EVERY_FIELD = """
theme = "light"
ascii = true
read_only = true
undo_window_s = 1
name_above_usd = 2
columns = ["trial", "rate"]
keys.quit = "f10"
"""


def test_every_field_can_be_set_and_every_setting_has_its_field(config: Path) -> None:
    config.write_text(EVERY_FIELD)
    read, plain = settings(config), Settings()
    assert [name for name in plain.__dataclass_fields__ if getattr(read, name) == getattr(plain, name)] == []
    assert set(tomllib.loads(EVERY_FIELD)) == {field.name for field in FIELDS}
    assert {field.name.replace("keys", "bindings") for field in FIELDS} == set(plain.__dataclass_fields__)


def test_the_page_of_settings_has_every_field_column_and_variable() -> None:
    page = (REPOSITORY / "docs" / "settings.md").read_text()
    for name, table in (("settings", markdown()), ("columns", columns_markdown())):
        found = re.search(rf"<!-- {name}:[^\n]*-->\n(.*?)<!-- /{name} -->", page, re.DOTALL)
        assert found is not None
        assert found[1] == table, "paste what `python -m kevtui.settings` prints"
    assert f"`{VARIABLE}`" in page and f"`{LEASES_VARIABLE}`" in page


def test_the_example_of_the_page_can_be_used(config: Path) -> None:
    page = (REPOSITORY / "docs" / "settings.md").read_text()
    config.write_text(page.partition("```toml\n")[2].partition("```")[0])
    assert settings(config).columns[:2] == ("trial", "state")
