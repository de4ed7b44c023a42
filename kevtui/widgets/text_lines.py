"""Many lines that scroll, of which only those in view are made.

Textual's Static wraps, styles and cuts all of its text anew whenever it is laid out.
"""

from collections.abc import Mapping, Sequence

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from kevtui.widgets.line import Line, Role, text_of
from kevtui.widgets.selectable import Selectable, marked

WEIGHTS: Mapping[Role, Style] = {Role.TEXT: Style(), Role.STRONG: Style(bold=True), Role.DIM: Style(dim=True)}
"""How the roles that occur differ from the text of the dialog."""


class TextLines(ScrollView, Selectable, can_focus=False):  # of its bases only the first gives it its style sheet
    """`lines`, whose roles are those of `WEIGHTS`. What is wider than this widget is cut.

    `scrolls`: whether they are expected to be more than fit, so that the scroll bar is there when it is first laid out.
    """

    DEFAULT_CSS = "TextLines { height: 1fr; overflow-x: hidden; }"

    def __init__(self, lines: Sequence[Line], *, scrolls: bool) -> None:
        super().__init__()
        self.set_reactive(TextLines.show_vertical_scrollbar, scrolls)
        self.show(lines)

    @property
    def lines(self) -> Sequence[Line]:
        return self._lines

    def show(self, lines: Sequence[Line]) -> None:
        """Paint `lines` from now on. The screen is laid out again only where they are more or fewer."""
        self._lines = lines
        self.virtual_size = Size(0, len(lines))
        self.refresh()

    def text(self) -> str:
        return "\n".join(map(text_of, self._lines))

    def line(self, y: int) -> tuple[Strip, tuple[int, int]]:
        width, style, number = self.size.width, self.visual_style.rich_style, y + self.scroll_offset.y
        if number >= len(self._lines):
            return Strip.blank(width, style), (0, number)
        strip = Strip([Segment(text, style + WEIGHTS[role]) for text, role in self._lines[number]])
        strip = strip.adjust_cell_length(width, style)
        if (selection := self.text_selection) is not None and (span := selection.get_span(number)) is not None:
            strip = marked(strip, span, self.screen.get_component_rich_style("screen--selection"))
        return strip, (0, number)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selection.extract(self.text()), "\n"

    def selection_updated(self, selection: Selection | None) -> None:  # noqa: ARG002
        self.refresh()
