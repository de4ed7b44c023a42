"""A widget whose text the mouse can select, and which does not paint more slowly for that.

Textual finds the text under the mouse by an offset in the style of each segment. So every segment has a style of its
own, which must be made, tinted and turned into colour codes by itself: a fifth of what a dialog takes to open. The
mouse asks for single lines; painting asks for many at once, and gets them without.
"""

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget


class Selectable(Widget):
    """Subclasses implement `line`."""

    ALLOW_SELECT = True
    _for_painting = False

    def line(self, y: int) -> tuple[Strip, tuple[int, int]]:
        """What stands in row `y` of the view, and which column and line of the text it begins with."""
        raise NotImplementedError

    def render_lines(self, crop: Region) -> list[Strip]:
        self._for_painting = True
        try:
            return super().render_lines(crop)
        finally:
            self._for_painting = False

    def render_line(self, y: int) -> Strip:
        strip, begin = self.line(y)
        return strip if self._for_painting else strip.apply_offsets(*begin)


def over(strip: Strip, style: Style) -> Strip:
    """`strip` with `style` laid over its own styles; `Strip.apply_style` lays it under them."""
    return Strip([Segment(text, own + style if own else style) for text, own, _ in strip], strip.cell_length)


def marked(strip: Strip, span: tuple[int, int], style: Style) -> Strip:
    """`strip` with `style` over the columns of `span`, whose end is -1 where it goes on in the next line."""
    start, end = span
    end = strip.cell_length if end == -1 else end
    return Strip.join([strip.crop(0, start), over(strip.crop(start, end), style), strip.crop(end, strip.cell_length)])
