"""Colours come from small files; a bad one is one line and never the end."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import sample_snapshots as samples
from shown_app import PATIENCE, Shown, shown

from kevtui import themes
from kevtui.theme_watch import ThemeWatch
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
    "utf16": ("label = 'x'".encode("utf-16"), "UTF-16"),
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


def test_a_theme_saved_with_a_byte_order_mark_is_the_theme(users_directory: Path) -> None:
    text = (PACKAGE[0] / "light.toml").read_bytes()
    (users_directory / "saved.toml").write_bytes(b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n"))
    assert themes.load("saved").colours == themes.load("light").colours


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


def written(place: Path, **changed: str) -> str:
    """A theme of the user called mine, put in place at once as editors do; its text."""
    text = (PACKAGE[0] / "default.toml").read_text()
    for name, colour in changed.items():
        text = re.sub(rf'^{name} = "[^"]*"', f'{name} = "{colour}"', text, flags=re.MULTILINE)
    sibling = place / "mine.toml.new"
    sibling.write_text(text)
    sibling.replace(place / "mine.toml")
    return text


def watched(found: list[object]) -> ThemeWatch:
    return ThemeWatch(themes.load("mine"), found.append, found.append)


def test_a_theme_is_read_again_when_its_file_is_another_one(users_directory: Path) -> None:
    written(users_directory)
    found: list[object] = []
    watch = watched(found)
    watch.look()
    assert found == []
    written(users_directory, good="#00ff00")
    watch.look()
    assert [palette.colours["good"] for palette in found if isinstance(palette, themes.Palette)] == ["#00ff00"]
    written(users_directory, good="#00ff00")  # saved without a change
    watch.look()
    assert len(found) == 1


def test_a_broken_theme_is_told_once_and_a_mended_one_is_taken(users_directory: Path) -> None:
    written(users_directory)
    found: list[object] = []
    watch = watched(found)
    (users_directory / "mine.toml").write_text("label = 'half")
    watch.look()
    watch.look()
    assert len(found) == 1 and "mine.toml" in str(found[0]) and "\n" not in str(found[0])
    written(users_directory, bad="#ff0000")
    watch.look()
    assert isinstance(found[1], themes.Palette) and found[1].colours["bad"] == "#ff0000"


def test_a_theme_that_is_taken_away_is_told_and_stays(users_directory: Path) -> None:
    written(users_directory)
    found: list[object] = []
    watch = watched(found)
    (users_directory / "mine.toml").unlink()
    watch.look()
    watch.look()
    assert len(found) == 1 and "no such theme" in str(found[0])


def test_of_a_theme_that_is_no_longer_used_nothing_is_told(users_directory: Path) -> None:
    written(users_directory)
    found: list[object] = []
    watch = watched(found)
    watch.follow(themes.load("light"))
    written(users_directory, good="#00ff00")
    watch.look()
    assert found == []


async def until(it: Shown, right: Callable[[], bool]) -> None:
    for _ in range(PATIENCE):
        if right():
            break
        await it.pilot.pause(0.01)
    assert right()
    await it.pilot.pause()


def colours_on(it: Shown) -> set[str]:
    strips = it.app.screen._compositor.render_strips()
    return {
        style.color.get_truecolor().hex
        for strip in strips
        for _, style, _ in strip
        if style is not None and style.color
    }


async def test_the_screen_takes_the_colours_that_are_written_and_keeps_them_when_they_break(
    users_directory: Path,
) -> None:
    written(users_directory, text="#010203", border="#0a0b0c")
    async with shown(samples.night(), (100, 40), theme="mine") as it:
        assert {"#010203", "#0a0b0c"} <= colours_on(it)
        written(users_directory, text="#040506", border="#0d0e0f")
        await until(it, lambda: "#040506" in colours_on(it))
        assert {"#0d0e0f"} <= colours_on(it) and not {"#010203", "#0a0b0c"} & colours_on(it)
        (users_directory / "mine.toml").write_text("colours = 1")
        await until(it, lambda: bool(it.app._notifications))
        assert "mine.toml: has no [colours]" in next(iter(it.app._notifications)).message
        assert "#040506" in colours_on(it)
