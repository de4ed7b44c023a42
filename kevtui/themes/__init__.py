"""Colour themes: small TOML files, those of the package and those of the user.

    label = "Dark"
    dark = true
    ansi = false            # true: the terminal's own 16 colours, named ansi_red and so on
    [colours]
    background = "#14171c"  # and text, dim, strong, accent, good, warn, bad, spent, committed, reserve, free,
                            # border, cursor (a background, or "reverse")

A file of the user's directory stands before one of the same name in the package.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from textual.color import Color, ColorParseError
from textual.theme import Theme

from kev.errors import KevError
from kev.toml_values import read_toml

DEFAULT = "default"
WITHOUT_COLOUR = "ansi16"
"""The theme under NO_COLOR: made of weights and of reversed cells, so that nothing is lost with the colours."""

MAX_THEME_BYTES = 64 * 1024

COLOURS = (
    "background", "text", "dim", "strong", "accent", "good", "warn", "bad",
    "spent", "committed", "reserve", "free", "border", "cursor",
)  # fmt: skip
REVERSE = "reverse"


_ANSI_VARIABLES = {
    "ansi-background": "ansi_default",
    "ansi-foreground": "ansi_default",
    "block-cursor-foreground": "ansi_black",
    "block-cursor-background": "ansi_cyan",
    "input-cursor-background": "ansi_cyan",
    "input-cursor-foreground": "ansi_black",
    "input-selection-background": "ansi_bright_blue",
    "input-selection-foreground": "ansi_black",
    "screen-selection-background": "ansi_bright_blue",
    "screen-selection-foreground": "ansi_black",
}
"""Textual's own widgets ask for these where a theme is of the terminal's colours; it derives them for the others."""


class BadTheme(ValueError):
    """A theme file that cannot be used; `str()` of it is one line with the file and the reason."""


@dataclass(frozen=True, slots=True)
class Palette:
    """The colours of one theme, each as Textual writes it."""

    name: str
    label: str
    dark: bool
    ansi: bool
    colours: Mapping[str, str]

    def as_textual(self) -> Theme:
        colours = self.colours
        cursor = colours["cursor"] if colours["cursor"] != REVERSE else colours["border"]
        return Theme(
            name=f"kev-{self.name}",
            primary=colours["accent"],
            secondary=colours["accent"],
            accent=colours["accent"],
            foreground=colours["text"],
            background=colours["background"],
            surface=colours["background"],
            panel=colours["background"],
            success=colours["good"],
            warning=colours["warn"],
            error=colours["bad"],
            dark=self.dark,
            ansi=self.ansi,
            variables={
                **(_ANSI_VARIABLES if self.ansi else {}),
                "kev-border": colours["border"],
                "kev-dim": colours["dim"],
                "kev-accent": colours["accent"],
                "kev-bad": colours["bad"],
                "kev-text": colours["text"],
                "kev-background": colours["background"],
                "kev-cursor": cursor,
            },
        )


def directories() -> list[Path]:
    """Where themes are looked for, the user's own first."""
    configuration = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return [Path(configuration).expanduser() / "kevtui" / "themes", Path(__file__).parent]


def names(places: list[Path] | None = None) -> list[str]:
    """Every theme there is, the default first."""
    found = {path.stem for place in places or directories() for path in place.glob("*.toml")}
    return sorted(found, key=lambda name: (name != DEFAULT, name))


def find(name: str, places: list[Path] | None = None) -> Path | None:
    """The file of the theme called `name`."""
    # A name is a name, never a path: "../x" would read outside the directories.
    paths = [place / f"{name}.toml" for place in places or directories() if name == Path(name).name]
    return next((path for path in paths if path.is_file()), None)


def load(name: str, places: list[Path] | None = None) -> Palette:
    """The theme called `name`. Raises BadTheme, naming the file or the themes there are."""
    places = places or directories()
    path = find(name, places)
    if path is None:
        raise BadTheme(f"theme {name!r}: no such theme; there are {', '.join(names(places))}")
    try:
        values = read_toml(path, limit=MAX_THEME_BYTES)
    except KevError as error:
        raise BadTheme(str(error)) from None
    return parse(name, values, path)


def parse(name: str, values: Mapping[str, object], path: Path) -> Palette:
    """`values`, which `path` held, as a theme. Raises BadTheme naming the key."""
    colours = values.get("colours")
    if not isinstance(colours, dict):
        raise BadTheme(f"{path}: has no [colours]")
    for key in COLOURS:
        value = colours.get(key)
        if not isinstance(value, str):
            raise BadTheme(f"{path}: colours.{key}: {'missing' if value is None else 'not a text'}")
        if key == "cursor" and value == REVERSE:
            continue
        try:
            Color.parse(value)
        except ColorParseError:
            raise BadTheme(f"{path}: colours.{key}: {value!r} is no colour") from None
    for key in colours:
        if key not in COLOURS:
            raise BadTheme(f"{path}: colours.{key}: no such colour; there are {', '.join(COLOURS)}")
    return Palette(
        name=name,
        label=str(values.get("label", name)),
        dark=values.get("dark", True) is not False,
        ansi=values.get("ansi", False) is True,
        colours={key: colours[key] for key in COLOURS},
    )
