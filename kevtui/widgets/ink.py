"""How roles look: the one place where a role becomes a colour."""

from functools import cached_property

from rich.style import Style
from textual.color import Color

from kevtui.themes import REVERSE, Palette
from kevtui.widgets.line import Pen, Role

_BOLD = {Role.STRONG, Role.BAD}


class Ink:
    """Shared by every panel of a screen; `use` changes the theme of all of them."""

    def __init__(self, palette: Palette, *, ascii_only: bool = False) -> None:
        self.ascii_only = ascii_only
        self.use(palette)

    def use(self, palette: Palette) -> None:
        self.palette = palette
        background = Color.parse(palette.colours["background"]).rich_color
        self.styles = {
            # Weight as well as colour, so that what is wrong stands out where there are no colours.
            role: Style(
                color=Color.parse(palette.colours[role]).rich_color, bgcolor=background, bold=role in _BOLD or None
            )
            for role in Role
        }
        self.__dict__.pop("cursor", None)

    @cached_property
    def cursor(self) -> Style:
        value = self.palette.colours["cursor"]
        return Style(reverse=True) if value == REVERSE else Style(bgcolor=Color.parse(value).rich_color)

    def pen(self, width: int) -> Pen:
        return Pen(width, ascii_only=self.ascii_only)
