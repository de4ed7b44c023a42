"""A screen that is laid out once, and painted once, as it opens.

Textual 8.2 lays out and paints a screen that opens; paints it again, as it does with one that comes back; tells it then
of the size that it has, at which it lays itself out and paints once more, and lays out every screen that lies under it.
"""

from typing import TypeVar

from textual import events
from textual.geometry import Size
from textual.screen import Screen

Answer = TypeVar("Answer")


class LaidOutOnce(Screen[Answer]):
    """The base of every screen here."""

    def _screen_resized(self, size: Size) -> None:
        if size != self._compositor.size:
            super()._screen_resized(size)

    def _on_screen_resume(self, event: events.ScreenResume) -> None:
        event.prevent_default()  # Textual calls what is overridden here by itself, after this
        before = self._size
        event.refresh_styles = event.refresh_styles and bool(before)  # what was mounted just now has its styles
        super()._on_screen_resume(event)
        if self._size != before and not self.app._batch_count:  # in a batch nothing was painted yet
            self._repaint_required = False
