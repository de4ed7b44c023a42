"""The base of every panel: rows of lines, of which only the cells that differ are painted again.

A panel turns a Snapshot into a `Painting`; this module does the rest: the window on it, the cursor that follows a
row by its key, and the comparison with what the terminal already shows. Textual's own table repaints itself whole
for one changed cell, which over a slow line is seen, and paid for.
"""

from typing import Any, ClassVar, Generic

from rich.segment import Segment
from textual import events
from textual.content import Content
from textual.geometry import Region
from textual.message import Message
from textual.selection import Selection
from textual.strip import Strip
from typing_extensions import TypeVar

from kevtui.observe.snapshot import Section, Snapshot
from kevtui.widgets.ink import Ink
from kevtui.widgets.line import Line, Role, differing, text_of
from kevtui.widgets.painting import Painting, Row, View
from kevtui.widgets.selectable import Selectable, marked, over

READING = "reading …"


_Shown = tuple[Line, bool]
_BLANK: _Shown = ((), False)

Picture = TypeVar("Picture", default=Snapshot)
"""What is painted: a Snapshot, or where a panel says so another immutable picture of one moment."""


class Panel(Selectable, Generic[Picture], can_focus=True):
    """A focusable panel. Subclasses implement `paint` and may say when they are empty."""

    NAME: ClassVar[str] = ""
    SECTIONS: ClassVar[tuple[Section, ...]] = ()
    """The sections of a Snapshot that are painted; () for all of it."""
    CURSOR_ALWAYS: ClassVar[bool] = False
    """Show the cursor's row without focus too: another panel follows it."""
    NEWEST_FIRST: ClassVar[bool] = False
    """New rows come above: the window stays on them until somebody moves the cursor."""

    class Selected(Message):
        """The cursor came to another row."""

        def __init__(self, panel: "Panel[Any]", key: str) -> None:
            self.panel = panel
            self.key = key
            super().__init__()

    def __init__(self, ink: Ink, *, id: str) -> None:  # noqa: A002
        super().__init__(id=id)
        self.ink = ink
        self.snapshot: Picture | None = None
        self.filter = ""
        self.narrow = False
        self.key = ""
        self._top = 0
        self._painting = Painting()
        self._painted_narrow = False
        self._positions: dict[str, int] = {}
        """Where the row of each key is."""
        self._position = 0
        """Where the cursor's row was last."""
        self._moved = False
        """Whether somebody put the cursor where it is."""
        self._shown: list[_Shown] = []
        self._shown_size = (-1, -1)
        self._title = ""
        # A title that came after the first frame would paint the panel again.
        self._retitle()

    # ------------------------------------------------------------------------------ for subclasses

    def paint(self, snapshot: Picture, view: View) -> Painting:
        """The panel's content. Pure: what it depends on is in its arguments and the panel's own settings."""
        raise NotImplementedError

    def head(self, view: View) -> tuple[Line, ...]:  # noqa: ARG002
        """The lines that stand above the rows before anything was read."""
        return ()

    def has_nothing(self, snapshot: Picture) -> bool:  # noqa: ARG002
        """True where there is nothing to show, so that the panel can give its place away."""
        return False

    # ------------------------------------------------------------------------------ content

    def content_lines(self) -> int:
        """Lines of content that would show everything."""
        is_current = self.display and self.content_size and self._painted_narrow == self.narrow
        painting = self._painting if is_current else self._make_painting()
        return len(painting.head) + len(painting.rows)

    @property
    def row_keys(self) -> list[str]:
        """The keys of the rows that have one, in order."""
        return list(self._positions)

    def show(self, snapshot: Picture) -> None:
        before, self.snapshot = self.snapshot, snapshot
        if before is None or not self.SECTIONS or _differ(before, snapshot, self.SECTIONS):
            self.repaint()

    def repaint(self) -> None:
        """Paint again, and ask the terminal for no more than the cells that differ."""
        self._set_painting()
        self._follow_key()
        self._retitle()
        self._refresh_differing()

    def text(self) -> str:
        """The row under the cursor, as text to copy; everything where there is no cursor."""
        rows = [row for row in self._painting.rows if row.key == self.key] if self.key else self._painting.rows
        return "\n".join(text_of(row.paint()).strip() for row in rows)

    def _set_painting(self) -> None:
        self._painting, self._painted_narrow = self._make_painting(), self.narrow
        self._positions = {row.key: index for index, row in enumerate(self._painting.rows) if row.key}

    def _make_painting(self) -> Painting:
        size = self.content_size
        view = View(size.width, size.height, self.ink, self.filter, self.narrow)
        if self.snapshot is None:
            reading = view.pen().add(READING, Role.DIM).line()
            return Painting([Row.of(reading)], self.head(view))
        return self.paint(self.snapshot, view)

    def _retitle(self) -> None:
        title = f"{self.NAME}{self._painting.note}"
        if self.NAME and title != self._title:
            self._title = title
            line = self.ink.pen(200).add(title).line()
            self.border_title = Content(text_of(line))

    # ------------------------------------------------------------------------------ window and cursor

    def move(self, rows: int) -> None:
        """Move the cursor by `rows` rows that have a key, or scroll where none has."""
        keys = self.row_keys
        if not keys:
            self._top += rows
            self._clamp_top()
            self._refresh_differing()
            return
        here = keys.index(self.key) if self.key in self._positions else -1
        target = max(0, min(len(keys) - 1, here + rows if here >= 0 else 0))
        self.select(keys[target])

    def page(self, pages: int) -> None:
        self.move(pages * max(1, self._window - 1))

    def select(self, key: str) -> None:
        """Put the cursor on the row called `key`, if there is one."""
        if key not in self._positions:
            return
        changed = key != self.key
        self.key, self._moved = key, True
        self._bring_into_view()
        self._refresh_differing()
        if changed:
            self.post_message(self.Selected(self, key))

    @property
    def _window(self) -> int:
        return max(1, self.content_size.height - len(self._painting.head))

    def _follow_key(self) -> None:
        """Keep the cursor on its row wherever that went; where the row is gone, on what took its place."""
        if self.NEWEST_FIRST and not self._moved:
            self.key = next(iter(self._positions), "")
        elif self.key not in self._positions:
            previous = self.key
            here = [key for key, position in self._positions.items() if position >= self._position]
            self.key = here[0] if here else next(reversed(self._positions), "")
            if self.key != previous:
                self.post_message(self.Selected(self, self.key))
        self._bring_into_view()

    def _bring_into_view(self) -> None:
        index = self._positions.get(self.key)
        if index is not None:
            # The line before the first row with a key is its heading: keep it in sight.
            first = 0 if index <= 1 else index
            self._top = min(self._top, first)
            self._top = max(self._top, index - self._window + 1)
            self._position = index
        self._clamp_top()

    def _clamp_top(self) -> None:
        self._top = max(0, min(self._top, len(self._painting.rows) - self._window))

    # ------------------------------------------------------------------------------ painting

    def _visible(self) -> list[_Shown]:
        head, rows = self._painting.head, self._painting.rows
        cursor = self.key if self.has_focus or self.CURSOR_ALWAYS else None
        window = rows[self._top : self._top + self._window]
        above: list[_Shown] = [(line, False) for line in head]
        return above + [(row.paint(), bool(row.key) and row.key == cursor) for row in window]

    def _refresh_differing(self) -> None:
        width, height = self.content_size
        if (width, height) != self._shown_size:
            self._shown, self._shown_size = self._visible(), (width, height)
            self.refresh()
            return
        before, after = self._shown, self._visible()
        self._shown = after
        regions = []
        for y in range(min(height, max(len(before), len(after)))):
            old = before[y] if y < len(before) else _BLANK
            new = after[y] if y < len(after) else _BLANK
            if old == new:
                continue
            if old[1] != new[1]:
                regions.append(Region(0, y, width, 1))
            else:
                regions += [Region(start, y, end - start, 1) for start, end in differing(old[0], new[0], width)]
        if regions:
            self.refresh(*regions)

    def line(self, y: int) -> tuple[Strip, tuple[int, int]]:
        width = self.content_size.width
        if self.content_size != self._shown_size:
            self._set_painting()
            self._clamp_top()
            self._shown, self._shown_size = self._visible(), (width, self.content_size.height)
        line, cursor = self._shown[y] if y < len(self._shown) else _BLANK
        styles = self.ink.styles
        strip = Strip([Segment(text, styles[role]) for text, role in line]).adjust_cell_length(width, styles[Role.TEXT])
        if cursor:
            strip = over(strip, self.ink.cursor)
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(y)) is not None:
            strip = marked(strip, span, self.screen.get_component_rich_style("screen--selection"))
        return strip, (0, y)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selection.extract("\n".join(text_of(line) for line, _ in self._shown)), "\n"

    def selection_updated(self, selection: Selection | None) -> None:  # noqa: ARG002
        self.refresh()

    def forget_shown(self) -> None:
        """Paint all of it again next time, as after a change of theme."""
        self._shown_size = (-1, -1)
        self.repaint()

    # ------------------------------------------------------------------------------ events

    def on_resize(self) -> None:
        self.repaint()

    def on_show(self) -> None:
        self.repaint()

    def on_focus(self) -> None:
        self._refresh_differing()

    def on_blur(self) -> None:
        self._refresh_differing()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.move(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.move(-3)

    def on_click(self, event: events.Click) -> None:
        y = event.y - self.gutter.top - len(self._painting.head) + self._top
        if 0 <= y < len(self._painting.rows):
            self.select(self._painting.rows[y].key)


def _differ(before: object, after: object, sections: tuple[Section, ...]) -> bool:
    # A section in which nothing changed is the very object that it was.
    return any(getattr(before, section) is not getattr(after, section) for section in sections)
