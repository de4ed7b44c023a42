"""A screen of panels: where each of them is, which one is alone, and how the keys go round them."""

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from textual.content import Content
from textual.geometry import NULL_OFFSET, NULL_SPACING, Region, Size
from textual.layout import ArrangeResult, Layout, WidgetPlacement
from textual.widget import Widget

from kevtui.keymap import Binding
from kevtui.layouts import SavedLayout
from kevtui.screens import arrange as places
from kevtui.screens.laid_out import LaidOutOnce
from kevtui.widgets.ink import Ink
from kevtui.widgets.panel import Panel, Picture
from kevtui.widgets.tab_line import Mark

if TYPE_CHECKING:
    from kevtui.actions.hands import Hands
    from kevtui.alerting.desk import AlertDesk


class WatchLayout(Layout):
    """Places the children by name, where `arrange` says."""

    name = "watch"

    def __init__(self, screen: "PanelsScreen[Any]") -> None:
        self._screen = screen

    def arrange(
        self,
        parent: Widget,  # noqa: ARG002
        children: list[Widget],
        size: Size,
        greedy: bool = True,  # noqa: ARG002
    ) -> ArrangeResult:
        regions = self._screen.regions(size)
        return [
            WidgetPlacement(regions[child.id], NULL_OFFSET, NULL_SPACING, child)
            for child in children
            if child.id is not None and child.id in regions
        ]


class PanelsScreen(LaidOutOnce[None], Generic[Picture]):
    """Places panels by what they hold, and moves among them. What they show is given to them by the subclass."""

    NAMES: ClassVar[Set[str]] = places.NAMES
    """The ids of everything that has a place."""
    HOME: ClassVar[str] = places.STUDIES
    """Where the focus goes when what had it closes."""
    ALWAYS: ClassVar[Set[str]] = frozenset((places.HEADER, places.MONEY, places.STUDIES, places.FOOTER))
    """Panels that keep their place while there is nothing in them."""
    FROM_THE_START: ClassVar[tuple[str, ...]] = (
        places.MONEY, places.STUDIES, places.PLOT, places.READS, places.EVENTS, places.READOUT,
    )  # fmt: skip
    """What the first frame lays out, before it is known what there is."""

    def __init__(self, ink: Ink, bindings: tuple[Binding, ...]) -> None:
        super().__init__()
        self.ink = ink
        self.bindings = bindings
        """Those that are there now."""
        self.snapshot: Picture | None = None
        """What was shown last."""
        self.desk: AlertDesk | None = None
        """Takes care of alerts, where there are any; there once the first picture is."""
        self.zoomed: str | None = None
        self.log_open = False
        self.filtering = False
        self._contents = dict.fromkeys(self.FROM_THE_START, 4)
        self._placed: dict[str, Region] = {}
        self._watch_layout = WatchLayout(self)

    @property
    def layout(self) -> Layout:
        # A style can only name one of Textual's own layouts.
        return self._watch_layout

    def on_mount(self) -> None:
        # Before the first layout, so that the first frame is in its final form.
        self.rearrange(self.app.size)

    @property
    def panels(self) -> Iterator[Panel[Any]]:
        return iter(self.query_children(Panel))

    @property
    def panel(self) -> Panel[Any] | None:
        """The panel that has the focus."""
        return self.focused if isinstance(self.focused, Panel) else None

    def show(self, snapshot: Picture) -> None:
        """Show `snapshot` in the place of the one before."""
        raise NotImplementedError

    def hold(self, snapshot: Picture) -> None:
        """Hear of `snapshot` while another screen is looked at: nothing is painted."""

    def left(self) -> SavedLayout | None:
        """How the screen is arranged at this moment; None where that is not kept."""
        return None

    def leave(self) -> None:
        """Another screen is looked at from now on."""

    @property
    def asked(self) -> bool:
        """Whether somebody else asks for control of what is shown."""
        return False

    @property
    def tabs(self) -> tuple[Mark, ...]:
        """The sessions that there are; () where it is one."""
        return ()

    @property
    def writer(self) -> "Hands | None":
        """What may write down alerts; None where nobody may."""
        return None

    def tell_tabs(self, marks: Sequence[Mark]) -> None:
        """Show which sessions there are, where there are several."""

    def tell_silence(self, text: str) -> None:
        """Say that nothing more is heard of what is shown; "" says that something is."""

    def forget_shown(self) -> None:
        """Paint everything again, as after a change of theme."""
        for panel in self.panels:
            panel.forget_shown()

    # ------------------------------------------------------------------------------ places

    def regions(self, size: Size) -> Mapping[str, Region]:
        return places.arrange(size, self._contents, zoomed=self.zoomed, log=self.log_open, filtering=self.filtering)

    def on_resize(self) -> None:
        self.rearrange(self.size)

    def _take_form(self, size: Size) -> bool:
        """Boxes or rules, whichever `size` has room for; true for rules."""
        flat = places.is_flat(size)
        form = ("-flat" if flat else "-boxes") + ("-ascii" if self.ink.ascii_only else "")
        for name in ("-boxes", "-flat", "-boxes-ascii", "-flat-ascii"):
            self.set_class(name == form, name)
        self.set_class(self.zoomed is not None, "-zoomed")
        return flat

    def rearrange(self, size: Size | None = None) -> None:
        size = size or self.size
        flat = self._take_form(size)
        for panel in self.panels:
            panel.narrow = flat and panel.id != self.zoomed
        self._contents = self._measure()
        regions = dict(self.regions(size))
        if regions == self._placed:
            return
        self._placed = regions
        for child in self.children:
            if child.id in self.NAMES:
                child.display = child.id in regions
        # Where panels only grow or shrink, Textual would take the arrangement that it remembers.
        self._clear_arrangement_cache()
        # What moved is painted by the layout; with a repaint the whole screen would be, a second time.
        self.refresh(repaint=False, layout=True)

    def _measure(self) -> dict[str, int]:
        if self.snapshot is None:
            return dict.fromkeys(self.FROM_THE_START, 4)
        return {
            panel.id: panel.content_lines()
            for panel in self.panels
            if panel.id and (panel.id in self.ALWAYS or not panel.has_nothing(self.snapshot))
        }

    @property
    def _reachable(self) -> Collection[str | None]:
        return self._placed if self.zoomed is None else self._contents

    def zoom(self, name: str | None) -> None:
        self.zoomed = name
        self.rearrange()

    # ------------------------------------------------------------------------------ moving about

    def action_move(self, rows: int) -> None:
        if self.panel is not None:
            self.panel.move(rows)

    def action_page(self, pages: int) -> None:
        if self.panel is not None:
            self.panel.page(pages)

    def action_next_panel(self, step: int) -> None:
        """Round the panels in reading order; while one is zoomed, the next one is zoomed in its place."""
        there = [child for child in self.children if child.can_focus and child.id in self._reachable]
        if not there:
            return
        here = there.index(self.focused) if self.focused in there else -1
        target = there[(here + step) % len(there)]
        if self.zoomed is not None:
            self.zoom(target.id)
        target.focus()

    def action_jump(self, name: str) -> None:
        """Focus the panel called `name`; one that has no place on this screen gets all of it."""
        if name not in self._contents:
            self.notify(f"{name}: nothing there yet", markup=False, timeout=3)
            return
        self.leave_log()
        if self.zoomed is not None or name not in self._placed:
            self.zoom(name)
        self.query_one(f"#{name}").focus()

    def action_only(self, name: str) -> None:
        """The panel called `name` alone, or everything again."""
        if self.zoomed == name:
            self.zoom(None)
        elif name in self._contents:
            self.zoom(name)
            self.action_jump(name)
        else:
            self.action_jump(name)

    def action_zoom(self) -> None:
        focused = self.focused.id if self.focused is not None else None
        self.zoom(focused if self.zoomed is None else None)

    # ------------------------------------------------------------------------------ what has a place only while open

    def leave_filter(self) -> None:
        if self.filtering:
            self.filtering = False
            self.query(f"#{places.FILTER}").remove()
            self.rearrange()
            self.query_one(f"#{self.HOME}").focus()

    async def open_log(self, path: Path, title: str) -> None:
        """The file `path` from its end, in the place of the panels below."""
        from kevtui.widgets.log_view import LogView

        view = LogView(ascii=self.ink.ascii_only, id=places.LOG)
        self.log_open, self.zoomed = True, None
        await self.mount(view)
        view.border_title = Content(title)
        view.open(path)
        self.rearrange()
        view.focus()

    def leave_log(self) -> None:
        if self.log_open:
            self.log_open = False
            self.query(f"#{places.LOG}").remove()
            self.rearrange()
            self.query_one(f"#{self.HOME}").focus()

    # ------------------------------------------------------------------------------ what every screen of panels offers

    def action_copy(self) -> None:
        if self.panel is not None and (text := self.panel.text()):
            self.app.copy_to_clipboard(text)
            self.notify("Copied the row under the cursor", timeout=2)

    def action_help(self) -> None:
        from kevtui.screens import opening

        opening.keys(self)

    def action_palette(self) -> None:
        from kevtui.screens import opening

        opening.palette(self)
