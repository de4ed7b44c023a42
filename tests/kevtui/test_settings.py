"""The user's file of settings: what it changes, and what is said of one that cannot be meant."""

import os
import re
import tomllib
from pathlib import Path

import pytest
import sample_snapshots as samples
from shown_app import shown

import kevtui.observe
from kevtui.alerting.choices import KINDS
from kevtui.keymap import BINDINGS
from kevtui.observe.alerts import SHARES
from kevtui.observe.observer import LEASES_VARIABLE
from kevtui.observe.snapshot import Severity
from kevtui.permission import VARIABLE
from kevtui.settings import (
    FIELDS,
    BadSettings,
    Settings,
    alerts_markdown,
    columns_markdown,
    markdown,
    read_settings,
)

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
        ("alerts = true\n", ["alerts: should be a table"]),
        (
            '[alerts]\nbell = true\nnotify = "loud"\nnotify_by = "osc99"\n',
            ["alerts.bell: should be one of off", "alerts.notify: should", "alerts.notify_by: should be one of osc9"],
        ),
        (
            '[alerts]\nhook = "rm -rf"\nhook_from = "off"\nhook_timeout_s = 0\nring = 1\n',
            [
                "alerts.hook: should be a list",
                "alerts.hook_from: should",
                "alerts.hook_timeout_s: should",
                "alerts.ring: no such setting",
            ],
        ),
        (
            '[alerts]\nagain_s = -1\nmute = ["loud"]\n[alerts.again]\nslowed = true\n',
            ["alerts.again.slowed: should", "alerts.again_s: should", "alerts.mute: no alert is of the kind 'loud'"],
        ),
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
    with pytest.raises(BadSettings, match="not UTF-8"):
        settings(config)
    config.write_bytes('theme = "light"\n'.encode("utf-16"))
    with pytest.raises(BadSettings, match="UTF-16 text, or none; save it as UTF-8"):
        settings(config)


def test_what_an_editor_puts_before_the_text_and_at_line_ends_changes_nothing(config: Path) -> None:
    config.write_bytes(b'\xef\xbb\xbftheme = "light"\r\nascii = true\r\n')
    assert (settings(config).theme, settings(config).ascii) == ("light", True)


def test_what_is_no_file_is_told_and_not_waited_for(config: Path) -> None:
    os.mkfifo(config)
    with pytest.raises(BadSettings, match="not a regular file"):
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
alerts.bell = "off"
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
    for name, table in (
        ("settings", markdown()),
        ("alerts", alerts_markdown()),
        ("columns", columns_markdown()),
    ):
        found = re.search(rf"<!-- {name}:[^\n]*-->\n(.*?)<!-- /{name} -->", page, re.DOTALL)
        assert found is not None
        assert found[1] == table, "paste what `python -m kevtui.settings` prints"
    assert f"`{VARIABLE}`" in page and f"`{LEASES_VARIABLE}`" in page


def test_the_example_of_the_page_can_be_used(config: Path) -> None:
    page = (REPOSITORY / "docs" / "settings.md").read_text()
    config.write_text(page.partition("```toml\n")[2].partition("```")[0])
    assert settings(config).columns[:2] == ("trial", "state")


def test_without_a_table_of_alerts_only_what_is_critical_rings_and_nothing_else_is_told(config: Path) -> None:
    read = settings(config).alerts
    assert (read.bell, read.notify, read.hook) == (Severity.CRITICAL, None, ())


def test_a_table_of_alerts_says_what_is_told_and_how(config: Path) -> None:
    config.write_text("""
[alerts]
bell = "off"
notify = "warning"
notify_by = "both"
hook = ["tell", "--quick now"]
hook_from = "critical"
hook_timeout_s = 2.5
again_s = 60
mute = ["silent"]

[alerts.again]
slowed = 3600
""")
    read = settings(config).alerts
    assert (read.bell, read.notify, read.notify_by) == (None, Severity.WARNING, "both")
    assert (read.hook, read.hook_from, read.hook_timeout_s) == (("tell", "--quick now"), Severity.CRITICAL, 2.5)
    assert (read.again("silent"), read.again("slowed"), read.mute) == (60, 3600, {"silent"})


def test_the_kinds_of_alerts_are_those_that_are_raised_and_those_that_the_page_lists() -> None:
    observe = Path(kevtui.observe.__file__).parent
    text = "".join((observe / name).read_text() for name in ("alerts.py", "trial_alerts.py"))
    raised = set(re.findall(r'Alert\("([a-z-]+)"', text) + re.findall(r'Alert\(\s*"([a-z-]+)"', text))
    shares = {f"{code}-{percent}" for code in re.findall(r'_of_share\(\s*"([a-z]+)"', text) for percent, _ in SHARES}
    assert raised | shares == set(KINDS) and len(shares) == 6
    page = (Path(__file__).parents[2] / "docs" / "alerts.md").read_text()
    listed = set(re.findall(r"`([a-z0-9-]+)`", "".join(re.findall(r"^\| (`.*?) \|", page, re.M))))
    assert listed == set(KINDS)
