"""Colours come from small files; a bad one is one line and never the end."""

from pathlib import Path

import pytest
import sample_snapshots as samples
from shown_app import shown

from kevtui import themes
from kevtui.widgets.line import Role

PACKAGE = [Path(themes.__file__).parent]

NAMES = ["default", "ansi16", "deuteranopia", "high-contrast", "light", "tritanopia"]


@pytest.fixture(autouse=True)
def users_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    place = tmp_path / "kevtui" / "themes"
    place.mkdir(parents=True)
    return place


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_package_has_the_themes_it_promises() -> None:
    assert themes.names(PACKAGE) == NAMES


@pytest.mark.parametrize("name", [name for name in NAMES if name != "ansi16"])
def test_every_text_can_be_read_on_its_background(name: str) -> None:
    colours = themes.load(name, PACKAGE).colours
    least = 7.0 if name == "high-contrast" else 4.0
    for role in (Role.TEXT, Role.DIM, Role.STRONG, Role.ACCENT, Role.GOOD, Role.WARN, Role.BAD):
        assert contrast(colours[role], colours["background"]) >= least, role
    assert contrast(colours[Role.TEXT], colours["cursor"]) >= 4.0


async def test_the_key_goes_round_all_themes() -> None:
    async with shown(samples.night(), (80, 24)) as it:
        seen = []
        for _ in NAMES:
            seen.append(it.app.theme)
            await it.pilot.press("t")
            await it.pilot.pause()
        assert seen == [f"kev-{name}" for name in NAMES]
        assert it.app.theme == seen[0]


async def test_a_change_of_theme_repaints_every_panel_in_the_new_colours() -> None:
    async with shown(samples.night(), (80, 24)) as it:
        it.app.action_use_theme("light")
        await it.pilot.pause()
        colours = {
            segment.style.bgcolor.name
            for strip in it.screen._compositor.render_strips()
            for segment in strip
            if segment.style and segment.style.bgcolor
        }
        assert "#14171c" not in colours
        assert "#fbfbf9" in colours


async def test_a_theme_of_the_users_own_is_found_and_stands_first(users_directory: Path) -> None:
    text = (PACKAGE[0] / "light.toml").read_text().replace("#0b5cad", "#123456")
    (users_directory / "mine.toml").write_text(text)
    (users_directory / "light.toml").write_text(text)
    assert "mine" in themes.names()
    assert themes.load("light").colours["accent"] == "#123456"
    async with shown(samples.night(), (80, 24), theme="mine") as it:
        assert it.app.theme == "kev-mine"


BAD = {
    "torn": ('label = "x', "torn.toml"),
    "empty": ("", "[colours]"),
    "word": ('[colours]\nbackground = "#zzz"', "colours.background"),
    "type": ("[colours]\nbackground = 3", "colours.background"),
    "latin": (b"label = '\xe9'", "latin.toml"),
}


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_theme_is_one_line_and_the_default_stands_in(name: str, users_directory: Path) -> None:
    content, word = BAD[name]
    path = users_directory / f"{name}.toml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(themes.BadTheme) as caught:
        themes.load(name)
    assert word in str(caught.value)
    assert "\n" not in str(caught.value)
    async with shown(samples.night(), (120, 40), theme=name) as it:
        await it.pilot.pause()
        assert it.app.theme == "kev-default"
        assert f"{name}.toml" in it.text()


def test_a_colour_that_is_no_colour_of_a_theme_is_named(users_directory: Path) -> None:
    text = (PACKAGE[0] / "light.toml").read_text()
    (users_directory / "odd.toml").write_text(text + '\nsparkle = "#ffffff"\n')
    with pytest.raises(themes.BadTheme, match=r"colours\.sparkle"):
        themes.load("odd")


def test_a_name_is_never_a_path(users_directory: Path) -> None:
    (users_directory.parent / "outside.toml").write_text((PACKAGE[0] / "light.toml").read_text())
    with pytest.raises(themes.BadTheme, match="no such theme"):
        themes.load("../outside")


async def test_no_color_leaves_no_colour_but_keeps_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with shown(samples.night(), (120, 40)) as it:
        strips = it.screen._compositor.render_strips()
        background = it.screen.styles.background
        styles = {seg.style for strip in strips for seg in it.app._filters[-1].apply(list(strip), background)}
        colours = {colour for style in styles if style for colour in (style.color, style.bgcolor) if colour}
        assert all(colour.is_default for colour in colours)
        assert any(style and style.bold for style in styles)
        assert any(style and style.reverse for style in styles)
