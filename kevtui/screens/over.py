"""What opens over the panels: a modal screen under which the panels show through, tinted.

Textual tints them segment by segment, anew each time, and cuts the result into lines again: half of what opening a
dialog takes, and as much each time a panel under it moves. Here each style is tinted once, and lines stay lines.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar, TypeVar

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual._styles_cache import StylesCache
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.color import Color
from textual.geometry import Region
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import ModalScreen, Screen
from textual.strip import Strip

from kevtui.screens.laid_out import LaidOutOnce

Answer = TypeVar("Answer")

NO_STYLE = RichStyle()


class OverScreen(ModalScreen[Answer], LaidOutOnce[Answer]):  # of its bases only the first gives it its style sheet
    """A modal screen; the base of all that open here."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+l", "app.redraw", "redraw", show=False),
        Binding("ctrl+z", "app.suspend_process", "suspend", show=False),
    ]
    """Keys of the app do not reach a modal screen."""

    _shining_through: Sequence[Strip] = ()

    def dismiss(self, result: Answer | None = None) -> AwaitComplete:
        """Close, once: a key that is still on its way to a closed dialog would close what lies under it."""
        return super().dismiss(result) if self.app.screen is self else AwaitComplete.nothing()  # type: ignore[no-untyped-call]

    def on_unmount(self) -> None:
        # Textual 8.2 remembers the colours of a thousand widgets by their painted lines, which so stay in memory:
        # five thousand objects for each dialog that was closed.
        StylesCache.get_inner_outer.cache_clear()

    def render_lines(self, crop: Region) -> list[Strip]:
        # Textual tells a screen what lies under it only while it paints, and keeps what is rendered before that.
        stack = self.app.screen_stack
        under = stack[: stack.index(self)][-1:] if self in stack else []
        if not under or self.styles.background.a == 1:
            return super().render_lines(crop)
        if self._dirty_regions:
            self._dirty_regions.clear()
            self._shining_through = tinted_lines(under[0], self.styles.background)
        lines = list(self._shining_through[crop.y : crop.bottom])
        return lines if crop.width == self.size.width else [line.crop(crop.x, crop.right) for line in lines]


def tinted_lines(screen: Screen[object], color: Color) -> list[Strip]:
    """The lines of `screen` in other colours, and without what could be clicked."""
    return [
        Strip([Segment(text, tinted(style or NO_STYLE, color)) for text, style, _ in strip], strip.cell_length)
        for strip in screen._compositor.render_strips()
    ]


@lru_cache(maxsize=2048)
def tinted(style: RichStyle, color: Color) -> RichStyle:
    """`style` with `color` laid over its colours, and without links and actions."""
    (segment,) = BackgroundScreen.process_segments([Segment(" ", style)], color)
    return segment.style or NO_STYLE
