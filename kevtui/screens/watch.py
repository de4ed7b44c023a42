"""The one screen: every panel in its place, and what the keys do to them."""

from collections.abc import Collection, Iterator, Mapping

from textual.app import ComposeResult
from textual.geometry import NULL_OFFSET, NULL_SPACING, Region, Size
from textual.layout import ArrangeResult, Layout, WidgetPlacement
from textual.screen import Screen
from textual.widget import Widget

from kevtui.keymap import Binding
from kevtui.observe.snapshot import Snapshot
from kevtui.screens import arrange as places
from kevtui.widgets.attention import AttentionPanel
from kevtui.widgets.events import EventsPanel
from kevtui.widgets.footer import Footer
from kevtui.widgets.header import Header
from kevtui.widgets.ink import Ink
from kevtui.widgets.leases import LeasesPanel
from kevtui.widgets.money import MoneyPanel
from kevtui.widgets.panel import Panel
from kevtui.widgets.readout import ReadoutPanel
from kevtui.widgets.reads import ReadsPanel
from kevtui.widgets.studies import StudiesPanel
from kevtui.widgets.verdicts import VerdictsPanel

_ALWAYS = {places.HEADER, places.MONEY, places.STUDIES, places.FOOTER}
"""Panels that keep their place while there is nothing in them."""

_FROM_THE_START = (places.MONEY, places.STUDIES, places.READS, places.EVENTS, places.READOUT)
"""What the first frame lays out, before it is known what there is."""


class WatchLayout(Layout):
    """Places the children by name, where `arrange` says."""

    name = "watch"

    def __init__(self, screen: "WatchScreen") -> None:
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


class WatchScreen(Screen[None]):
    """Takes Snapshots and shows them. It reads nothing but Snapshots and changes nothing but itself."""

    def __init__(self, ink: Ink, bindings: tuple[Binding, ...], *, title: str, panel: str | None = None) -> None:
        super().__init__()
        self.ink = ink
        self.bindings = bindings
        self._title_text = title
        self.snapshot: Snapshot | None = None
        self.zoomed: str | None = panel
        self.log_open = False
        self.filtering = False
        self._contents: dict[str, int] = {}
        self._placed: dict[str, Region] = {}
        self._watch_layout = WatchLayout(self)

    @property
    def layout(self) -> Layout:
        # A style can only name one of Textual's own layouts.
        return self._watch_layout

    def compose(self) -> ComposeResult:
        yield Header(self.ink, id=places.HEADER, title=self._title_text)
        yield AttentionPanel(self.ink, id=places.ATTENTION)
        yield MoneyPanel(self.ink, id=places.MONEY)
        yield StudiesPanel(self.ink, id=places.STUDIES)
        yield ReadsPanel(self.ink, id=places.READS)
        yield LeasesPanel(self.ink, id=places.LEASES)
        yield EventsPanel(self.ink, id=places.EVENTS)
        yield ReadoutPanel(self.ink, id=places.READOUT)
        yield VerdictsPanel(self.ink, id=places.VERDICTS)
        yield Footer(self.ink, self.bindings, id=places.FOOTER)

    def on_mount(self) -> None:
        self.set_class(self.ink.ascii_only, "-ascii")
        self.studies.focus()

    # ------------------------------------------------------------------------------ panels

    @property
    def panels(self) -> Iterator[Panel]:
        return iter(self.query_children(Panel))

    @property
    def studies(self) -> StudiesPanel:
        return self.query_one(StudiesPanel)

    @property
    def panel(self) -> Panel | None:
        """The panel that has the focus."""
        return self.focused if isinstance(self.focused, Panel) else None

    @property
    def _reachable(self) -> Collection[str | None]:
        return self._placed if self.zoomed is None else self._contents

    def show(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        for panel in self.panels:
            panel.snapshot = snapshot
        for panel in self.panels:
            if panel.id in self._placed:
                panel.show(snapshot)
        self._rearrange()

    def forget_shown(self) -> None:
        """Paint everything again, as after a change of theme."""
        for panel in self.panels:
            panel.forget_shown()

    # ------------------------------------------------------------------------------ places

    def regions(self, size: Size) -> Mapping[str, Region]:
        return places.arrange(size, self._contents, zoomed=self.zoomed, log=self.log_open, filtering=self.filtering)

    def on_resize(self) -> None:
        self._rearrange()

    def _rearrange(self) -> None:
        flat = places.is_flat(self.size)
        self.set_class(flat, "-flat")
        for panel in self.panels:
            panel.narrow = flat and panel.id != self.zoomed
        self._contents = self._measure()
        regions = dict(self.regions(self.size))
        if regions == self._placed:
            return
        self._placed = regions
        for panel in self.panels:
            panel.display = panel.id in regions
        self.refresh(layout=True)

    def _measure(self) -> dict[str, int]:
        if self.snapshot is None:
            return dict.fromkeys(_FROM_THE_START, 4)
        return {
            panel.id: panel.content_lines()
            for panel in self.panels
            if panel.id and (panel.id in _ALWAYS or not panel.has_nothing(self.snapshot))
        }

    # ------------------------------------------------------------------------------ actions

    def action_move(self, rows: int) -> None:
        if self.panel is not None:
            self.panel.move(rows)

    def action_page(self, pages: int) -> None:
        if self.panel is not None:
            self.panel.page(pages)

    def action_next_panel(self, step: int) -> None:
        """Round the panels in reading order; while one is zoomed, the next one is zoomed in its place."""
        there = [panel for panel in self.panels if panel.can_focus and panel.id in self._reachable]
        if not there:
            return
        here = there.index(self.panel) if self.panel in there else -1
        target = there[(here + step) % len(there)]
        if self.zoomed is not None:
            self.zoomed = target.id
            self._rearrange()
        target.focus()

    def action_jump(self, name: str) -> None:
        """Focus the panel called `name`; one that has no place on this screen gets all of it."""
        panel = self.query_one(f"#{name}", Panel)
        if self.snapshot is not None and name not in _ALWAYS and panel.has_nothing(self.snapshot):
            self.notify(f"{panel.NAME}: nothing there yet", markup=False, timeout=3)
            return
        if self.zoomed is not None or name not in self._placed:
            self.zoomed = name
            self._rearrange()
        panel.focus()

    def action_only(self, name: str) -> None:
        """The panel called `name` alone, or everything again."""
        if self.zoomed == name:
            self.action_zoom()
            return
        self.zoomed = name
        self.action_jump(name)

    def action_zoom(self) -> None:
        if self.zoomed is None and self.panel is None:
            return
        self.zoomed = self.panel.id if self.zoomed is None and self.panel is not None else None
        self._rearrange()

    def action_sort(self) -> None:
        self.studies.next_sort()

    def action_copy(self) -> None:
        if self.panel is not None and (text := self.panel.text()):
            self.app.copy_to_clipboard(text)
            self.notify("Copied the row under the cursor", timeout=2)

    def action_back(self) -> None:
        """Leave one layer: the filter, the zoom."""
        if self.studies.filter:
            self.studies.set_filter("")
        elif self.zoomed is not None:
            self.action_zoom()
