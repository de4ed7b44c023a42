"""The one screen: every panel in its place, and what the keys do to them."""

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.content import Content
from textual.geometry import NULL_OFFSET, NULL_SPACING, Region, Size
from textual.layout import ArrangeResult, Layout, WidgetPlacement
from textual.screen import Screen
from textual.widget import Widget

from kevtui.deliberate import Typing
from kevtui.keymap import Binding, looking
from kevtui.observe.snapshot import Lease, Snapshot, Study, Trial
from kevtui.screens import arrange as places
from kevtui.widgets.actions import ActionsPanel
from kevtui.widgets.attention import AttentionPanel
from kevtui.widgets.events import EventsPanel
from kevtui.widgets.footer import Footer
from kevtui.widgets.header import Header
from kevtui.widgets.ink import Ink
from kevtui.widgets.leases import LeasesPanel
from kevtui.widgets.line import text_of
from kevtui.widgets.money import MoneyPanel
from kevtui.widgets.panel import Panel
from kevtui.widgets.plot import PlotPanel
from kevtui.widgets.readout import ReadoutPanel
from kevtui.widgets.reads import ReadsPanel
from kevtui.widgets.state import lease_of
from kevtui.widgets.studies import StudiesPanel
from kevtui.widgets.verdicts import VerdictsPanel

if TYPE_CHECKING:
    from textual.widgets import Input

    from kevtui.actions.sight import Eyes

PLOT_TITLE_WIDTH = places.PLOT_WIDTH - 6

_ALWAYS = {places.HEADER, places.MONEY, places.STUDIES, places.FOOTER}
"""Panels that keep their place while there is nothing in them."""

_FROM_THE_START = (places.MONEY, places.STUDIES, places.PLOT, places.READS, places.EVENTS, places.READOUT)
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

    AUTO_FOCUS = f"#{places.STUDIES}"

    def __init__(
        self, ink: Ink, bindings: tuple[Binding, ...], *, title: str, typing: Typing, panel: str | None = None,
        open_eyes: "Callable[[], Eyes] | None" = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.ink = ink
        self._table = bindings
        self.bindings = looking(bindings)
        """Those that are there now: who has no control has no key that needs it."""
        self._typing = typing
        self._open_eyes = open_eyes
        self.snapshot: Snapshot | None = None
        self.zoomed: str | None = panel
        self.log_open = False
        self.filtering = False
        self._title_text = title
        self._contents = dict.fromkeys(_FROM_THE_START, 4)
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
        yield PlotPanel(ascii=self.ink.ascii_only, id=places.PLOT)
        yield ReadsPanel(self.ink, id=places.READS)
        yield LeasesPanel(self.ink, id=places.LEASES)
        yield EventsPanel(self.ink, id=places.EVENTS)
        yield ReadoutPanel(self.ink, id=places.READOUT)
        yield VerdictsPanel(self.ink, id=places.VERDICTS)
        yield ActionsPanel(self.ink, id=places.ACTIONS, open_eyes=self._open_eyes)
        yield Footer(self.ink, self.bindings, id=places.FOOTER)

    def on_mount(self) -> None:
        # Before the first layout, so that the first frame is in its final form.
        self._rearrange(self.app.size)

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

    def show(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        with self.app.batch_update():
            for panel in self.panels:
                panel.show(snapshot)
            self._show_curves()
            self._rearrange()

    def forget_shown(self) -> None:
        """Paint everything again, as after a change of theme."""
        for panel in self.panels:
            panel.forget_shown()

    def on_panel_selected(self, message: Panel.Selected) -> None:
        if message.panel is self.studies:
            self._show_curves()

    def _show_curves(self) -> None:
        trial = self.studies.trial
        plot = self.query_one(PlotPanel)
        plot.show(trial)
        title = self.ink.pen(PLOT_TITLE_WIDTH).add(f"9 {trial.id}" if trial else "9 Curves").line()
        if plot.border_title != (content := Content(text_of(title))).markup:
            plot.border_title = content

    # ------------------------------------------------------------------------------ places

    def regions(self, size: Size) -> Mapping[str, Region]:
        return places.arrange(size, self._contents, zoomed=self.zoomed, log=self.log_open, filtering=self.filtering)

    def on_resize(self) -> None:
        self._rearrange(self.size)

    def _take_form(self, size: Size) -> bool:
        """Boxes or rules, whichever `size` has room for; true for rules."""
        flat = places.is_flat(size)
        form = ("-flat" if flat else "-boxes") + ("-ascii" if self.ink.ascii_only else "")
        for name in ("-boxes", "-flat", "-boxes-ascii", "-flat-ascii"):
            self.set_class(name == form, name)
        self.set_class(self.zoomed is not None, "-zoomed")
        return flat

    def _rearrange(self, size: Size | None = None) -> None:
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
            if child.id in places.NAMES:
                child.display = child.id in regions
        # Where panels only grow or shrink, Textual would take the arrangement that it remembers.
        self._clear_arrangement_cache()
        # What moved is painted by the layout; with a repaint the whole screen would be, a second time.
        self.refresh(repaint=False, layout=True)

    def _measure(self) -> dict[str, int]:
        if self.snapshot is None:
            return dict.fromkeys(_FROM_THE_START, 4)
        contents = {
            panel.id: panel.content_lines()
            for panel in self.panels
            if panel.id and (panel.id in _ALWAYS or not panel.has_nothing(self.snapshot))
        }
        if any(trial.points for trial in self.snapshot.trials):
            contents[places.PLOT] = 1
        return contents

    @property
    def _reachable(self) -> Collection[str | None]:
        return self._placed if self.zoomed is None else self._contents

    def _zoom(self, name: str | None) -> None:
        self.zoomed = name
        self._rearrange()

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
            self._zoom(target.id)
        target.focus()

    def action_jump(self, name: str) -> None:
        """Focus the panel called `name`; one that has no place on this screen gets all of it."""
        if name not in self._contents:
            self.notify(f"{name}: nothing there yet", markup=False, timeout=3)
            return
        self._leave_log()
        if self.zoomed is not None or name not in self._placed:
            self._zoom(name)
        self.query_one(f"#{name}").focus()

    def action_only(self, name: str) -> None:
        """The panel called `name` alone, or everything again."""
        if self.zoomed == name:
            self._zoom(None)
        elif name in self._contents:
            self._zoom(name)
            self.action_jump(name)
        else:
            self.action_jump(name)

    def action_zoom(self) -> None:
        focused = self.focused.id if self.focused is not None else None
        self._zoom(focused if self.zoomed is None else None)

    def action_back(self) -> None:
        """Leave one layer: what waits, the filter, the log, the zoom, what came to nothing."""
        if self.actions.take_back():
            return
        if self.filtering or self.studies.filter:
            self._leave_filter()
            self.studies.set_filter("")
            self._rearrange()
        elif self.log_open:
            self._leave_log()
        elif self.zoomed is not None:
            self._zoom(None)
        else:
            self.actions.clear()

    # ------------------------------------------------------------------------------ acting

    @property
    def actions(self) -> ActionsPanel:
        return self.query_one(ActionsPanel)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("act", "take_back"):
            return self.actions.hands is not None
        return super().check_action(action, parameters)

    def action_act(self, verb: str) -> None:
        from kevtui.screens import acting

        acting.begin(self, verb, self._typing)

    def action_take_back(self) -> None:
        if not self.actions.take_back():
            self.notify("Nothing waits that could be taken back", timeout=3)

    def action_control(self) -> None:
        from kevtui.screens import acting

        if self._typing.is_fresh():
            acting.ask_or_give(self)

    def on_actions_panel_control_changed(self, message: ActionsPanel.ControlChanged) -> None:
        from kevtui.screens import acting

        text, role, told = acting.mode(message.sight, may_act=any(binding.acts for binding in self._table))
        self.query_one(Header).tell_mode(text, role)
        self.bindings = acting.bindings(self._table, message.sight)
        self.query_one(Footer).use(self.bindings)
        self.refresh_bindings()
        if told:
            self.notify(told, markup=False, timeout=10)

    def on_actions_panel_rows_changed(self) -> None:
        self._rearrange()

    def on_actions_panel_refused(self, message: ActionsPanel.Refused) -> None:
        from kevtui.screens import acting

        acting.show_refusal(self, message.report, self._typing)

    # ------------------------------------------------------------------------------ filter, sort, copy

    async def action_filter(self) -> None:
        from textual.widgets import Input

        if self.zoomed not in (None, places.STUDIES):
            self._zoom(None)
        if not self.filtering:
            field = Input(self.studies.filter, placeholder="study, trial or state; !word leaves out", id=places.FILTER)
            field.cursor_blink = False
            self.filtering = True
            await self.mount(field)
            self._rearrange()
        self.query_one(f"#{places.FILTER}").focus()

    def on_input_changed(self, event: "Input.Changed") -> None:
        if event.input.id == places.FILTER and self.filtering:
            self.studies.set_filter(event.value)

    def on_input_submitted(self, event: "Input.Submitted") -> None:
        if event.input.id == places.FILTER:
            self._leave_filter()

    def _leave_filter(self) -> None:
        if self.filtering:
            self.filtering = False
            self.query(f"#{places.FILTER}").remove()
            self._rearrange()
            self.studies.focus()

    def action_sort(self) -> None:
        self.studies.next_sort()

    def action_copy(self) -> None:
        if self.panel is not None and (text := self.panel.text()):
            self.app.copy_to_clipboard(text)
            self.notify("Copied the row under the cursor", timeout=2)

    # ------------------------------------------------------------------------------ what opens over the panels

    @property
    def trial_id(self) -> str | None:
        """`<study>/<label>` of the trial that is meant."""
        trial = self._trial()
        return trial.id if trial is not None else None

    def _trial(self) -> Trial | None:
        """The trial that is meant: under the cursor where rows are trials, else the one whose curves are shown."""
        key = self.panel.key if isinstance(self.panel, LeasesPanel) else self.studies.key
        trials = self.snapshot.trials if self.snapshot else ()
        return next((trial for trial in trials if trial.id == key), None)

    def action_details(self) -> None:
        from kevtui.screens.details import DetailsScreen, describe
        from kevtui.screens.facts_of import of_row

        if isinstance(self.panel, ActionsPanel):
            from kevtui.screens import acting

            acting.show_output(self, self.panel.key)
            return
        if self.panel is not None and not isinstance(self.panel, StudiesPanel | LeasesPanel):
            known = of_row(self.snapshot, self.panel.id or "", self.panel.key) if self.snapshot else []
            if known:
                self.app.push_screen(DetailsScreen(known, ascii=self.ink.ascii_only))
            else:
                self.action_zoom()
            return
        trial = self._trial()
        if trial is None or self.snapshot is None:
            self.notify("No trial here: nothing more is known of it", timeout=3)
            return
        self.app.push_screen(DetailsScreen(describe(*_known(self.snapshot, trial)), ascii=self.ink.ascii_only))

    async def action_log(self) -> None:
        """Open the log of the trial, or close the log that is open."""
        from kevtui.widgets.log_view import LogView

        if self.log_open:
            self._leave_log()
            return
        trial = self._trial()
        if trial is None or trial.log is None or self.snapshot is None:
            self.notify("No log here" if trial is None else f"{trial.id}: no log yet", markup=False, timeout=3)
            return
        view = LogView(ascii=self.ink.ascii_only, id=places.LOG)
        self.log_open, self.zoomed = True, None
        await self.mount(view)
        view.border_title = Content(text_of(self.ink.pen(80).add(trial.id).line()))
        view.open(Path(self.snapshot.root) / trial.log)
        self._rearrange()
        view.focus()

    def _leave_log(self) -> None:
        if self.log_open:
            self.log_open = False
            self.query(f"#{places.LOG}").remove()
            self._rearrange()
            self.studies.focus()

    def action_help(self) -> None:
        from kevtui.screens.help import HelpScreen

        self.app.push_screen(HelpScreen(self.bindings, ascii=self.ink.ascii_only))

    def action_palette(self) -> None:
        from kevtui import themes
        from kevtui.screens.palette import PaletteScreen, commands

        async def run_it(action: str | None) -> None:
            if action:
                await self.run_action(action)

        offered = commands(self.bindings, themes.names())
        self.app.push_screen(PaletteScreen(offered, ascii_only=self.ink.ascii_only), run_it)


def _known(snapshot: Snapshot, trial: Trial) -> tuple[Trial, Lease | None, Study | None]:
    lease = lease_of(snapshot).get(trial.id)
    study = next((study for study in snapshot.studies if study.name == trial.study), None)
    return trial, lease, study
