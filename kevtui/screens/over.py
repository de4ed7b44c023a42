"""What opens over the panels: a modal screen under which the panels show through, tinted.

Textual tints them segment by segment, anew each time, and cuts the result into lines again: half of what opening a
dialog takes, and as much each time a panel under it moves. Here each style is tinted once, and lines stay lines.
"""

from functools import lru_cache
from typing import ClassVar, TypeVar

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual._styles_cache import StylesCache
from textual.app import RenderResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.color import Color
from textual.css.styles import RulesMap
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import ModalScreen, Screen
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions, Visual

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

    def dismiss(self, result: Answer | None = None) -> AwaitComplete:
        """Close, once: a key that is still on its way to a closed dialog would close what lies under it."""
        return super().dismiss(result) if self.app.screen is self else AwaitComplete.nothing()  # type: ignore[no-untyped-call]

    def on_unmount(self) -> None:
        # Textual 8.2 remembers the colours of a thousand widgets by their painted lines, which so stay in memory:
        # five thousand objects for each dialog that was closed.
        StylesCache.get_inner_outer.cache_clear()

    def render(self) -> RenderResult:  # type: ignore[override]  # a widget's may be any Visual, and so may a screen's
        # Textual tells a screen what lies under it only while it paints, and keeps what is rendered before that.
        stack = self.app.screen_stack
        under, color = stack[: stack.index(self)] if self in stack else [], self.styles.background
        return Tinted(under[-1], color) if under and color.a < 1 else super().render()


class Tinted(Visual):
    """The lines of a screen in other colours, and without what could be clicked."""

    def __init__(self, screen: Screen[object], color: Color) -> None:
        self._screen, self._color = screen, color

    def render_strips(
        self, width: int, height: int | None, style: Style, options: RenderOptions  # noqa: ARG002
    ) -> list[Strip]:  # fmt: skip
        strips = self._screen._compositor.render_strips()[:height]
        return [self._tint(strip).adjust_cell_length(width) for strip in strips]

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:  # noqa: ARG002
        return container_width

    def get_height(self, rules: RulesMap, width: int) -> int:  # noqa: ARG002
        return self._screen.size.height

    def _tint(self, strip: Strip) -> Strip:
        color = self._color
        segments = [
            segment if segment.control else Segment(segment.text, tinted(segment.style or NO_STYLE, color))
            for segment in strip
        ]
        return Strip(segments, strip.cell_length)


@lru_cache(maxsize=2048)
def tinted(style: RichStyle, color: Color) -> RichStyle:
    """`style` with `color` laid over its colours, and without links and actions."""
    (segment,) = BackgroundScreen.process_segments([Segment(" ", style)], color)
    return segment.style or NO_STYLE
