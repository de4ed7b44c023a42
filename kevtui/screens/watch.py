"""The one screen: every panel in its place, and what the keys do to them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message

from kevtui.columns import EVERY
from kevtui.deliberate import Typing
from kevtui.keymap import Binding, looking
from kevtui.layouts import UNTOUCHED, SavedLayout
from kevtui.observe.snapshot import Snapshot, Trial
from kevtui.screens import arrange as places
from kevtui.screens.past import PastScreen
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
from kevtui.widgets.studies import StudiesPanel
from kevtui.widgets.tab_line import Mark, TabLine
from kevtui.widgets.verdicts import VerdictsPanel

if TYPE_CHECKING:
    from textual.widgets import Input

    from kevtui.actions.hands import Hands
    from kevtui.actions.sight import Eyes

PLOT_TITLE_WIDTH = places.PLOT_WIDTH - 6


class WatchScreen(PastScreen):
    """Takes Snapshots and shows them. It reads nothing but Snapshots and changes nothing but itself."""

    AUTO_FOCUS = f"#{places.STUDIES}"

    def __init__(
        self, ink: Ink, bindings: tuple[Binding, ...], *, title: str, typing: Typing,
        open_eyes: "Callable[[], Eyes] | None" = None, of_past: tuple[Binding, ...] = (),
        columns: tuple[str, ...] = EVERY, tabs: Sequence[Mark] = (), layout: SavedLayout = UNTOUCHED,
    ) -> None:  # fmt: skip
        super().__init__(ink, looking(bindings), of_past=of_past)
        self._table = bindings
        self._typing = typing
        self._open_eyes = open_eyes
        self._title_text = title
        self._marks = tuple(tabs)
        self._asked = False
        self._layout = layout
        if layout.alone in places.PANELS:
            self.zoomed = layout.alone
        self.first_columns = columns
        """The columns of the studies as they came."""
        self.look: Callable[[str, Path], Snapshot] | None = None
        """Takes one Snapshot of another session or round, by its name and folder; safe to call from a thread."""

    class TabChanged(Message):
        """What the tab of this screen says may be another thing."""

    def compose(self) -> ComposeResult:
        if self._marks:
            tabs = TabLine(self.ink, id=places.TABS)
            tabs.tell(self._marks)
            yield tabs
        yield Header(self.ink, id=places.HEADER, title=self._title_text)
        yield AttentionPanel(self.ink, id=places.ATTENTION)
        yield MoneyPanel(self.ink, id=places.MONEY)
        yield StudiesPanel(
            self.ink, id=places.STUDIES, columns=self._layout.columns or self.first_columns, sort=self._layout.sort
        )
        yield PlotPanel(ascii=self.ink.ascii_only, id=places.PLOT)
        yield ReadsPanel(self.ink, id=places.READS)
        yield LeasesPanel(self.ink, id=places.LEASES)
        yield EventsPanel(self.ink, id=places.EVENTS)
        yield ReadoutPanel(self.ink, id=places.READOUT)
        yield VerdictsPanel(self.ink, id=places.VERDICTS)
        yield ActionsPanel(self.ink, id=places.ACTIONS, open_eyes=self._open_eyes)
        yield Footer(self.ink, self.bindings, id=places.FOOTER)

    def paint(self, snapshot: Snapshot) -> None:
        is_first, self.snapshot = self.snapshot is None, snapshot
        with self.app.batch_update():
            for panel in self.panels:
                panel.show(snapshot)
            self._show_curves()
            self.rearrange()
        if is_first and self._layout.focus in self._placed and self._layout.focus in places.PANELS:
            self.query_one(f"#{self._layout.focus}").focus()

    def left(self) -> SavedLayout | None:
        if self.snapshot is None or not self.query_children(StudiesPanel):
            return None  # not made yet, or being taken down
        focus = self.panel.id if self.panel is not None and self.panel.id in places.PANELS else None
        columns = self.studies.columns if self.studies.columns != self.first_columns else None
        alone = self.zoomed if self.zoomed in places.PANELS else None
        return SavedLayout(alone, focus if focus != self.HOME else None, self.studies.sorted_by, columns)

    @property
    def studies(self) -> StudiesPanel:
        return self.query_one(StudiesPanel)

    @property
    def asked(self) -> bool:
        return self._asked

    @property
    def tabs(self) -> tuple[Mark, ...]:
        return self._marks

    def tell_tabs(self, marks: Sequence[Mark]) -> None:
        self._marks = tuple(marks)
        for line in self.query_children(TabLine):
            line.tell(marks)

    def tell_silence(self, text: str) -> None:
        for header in self.query_children(Header):
            header.tell_silence(text)

    def _measure(self) -> dict[str, int]:
        contents = super()._measure()
        if self._marks:
            contents[places.TABS] = 1
        if self.snapshot is not None and any(trial.points for trial in self.snapshot.trials):
            contents[places.PLOT] = 1
        return contents

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

    def action_back(self) -> None:
        """Leave one layer: what waits, the filter, the log, the zoom, the past, what came to nothing."""
        if self.actions.take_back():
            return
        if self.filtering or self.studies.filter:
            self.leave_filter()
            self.studies.set_filter("")
            self.rearrange()
        elif self.log_open:
            self.leave_log()
        elif self.zoomed is not None:
            self.zoom(None)
        elif self.in_past:
            self.come_back()
        else:
            self.actions.clear()

    # ------------------------------------------------------------------------------ acting

    @property
    def actions(self) -> ActionsPanel:
        return self.query_one(ActionsPanel)

    @property
    def writer(self) -> "Hands | None":
        """What may write down alerts: this dashboard's hands, while they have control and the screen is there."""
        panels = self.query(ActionsPanel)
        return panels.first().hands if panels else None

    @property
    def held_by(self) -> str:
        return "What was confirmed still waits: u takes it back" if self.actions.waits else ""

    def hear(self, present: Snapshot) -> None:
        self.actions.show(present)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("act", "take_back") and self.actions.hands is None:
            return False
        return super().check_action(action, parameters)

    def action_act(self, verb: str) -> None:
        from kevtui.screens import acting

        # Asked here too: the palette, which may have been opened before, does not go by the keys.
        if not self.in_past:
            acting.begin(self, verb, self._typing)

    def action_take_back(self) -> None:
        if not self.actions.take_back():
            self.notify("Nothing waits that could be taken back", timeout=3)

    def action_control(self) -> None:
        from kevtui.screens import acting

        if self._typing.is_fresh() and not self.in_past:
            acting.ask_or_give(self)

    def on_actions_panel_control_changed(self, message: ActionsPanel.ControlChanged) -> None:
        from kevtui.screens import acting

        text, role, told = acting.mode(message.sight, may_act=any(binding.acts for binding in self._table))
        self.use(acting.bindings(self._table, message.sight), (text, role))
        self._asked = message.sight.asked is not None
        self.post_message(self.TabChanged())
        if told and self.is_current:
            self.notify(told, markup=False, timeout=10)
        if self.desk is not None:
            self.desk.writer_changed(self.actions.hands)

    def on_actions_panel_rows_changed(self) -> None:
        self.rearrange()

    def on_actions_panel_refused(self, message: ActionsPanel.Refused) -> None:
        from kevtui.screens import acting

        if self.in_past:
            self.notify(f"now: {acting.refusal(message.report)}", severity="warning", markup=False, timeout=10)
        else:
            acting.show_refusal(self, message.report, self._typing)

    # ------------------------------------------------------------------------------ alerts

    def action_acknowledge(self) -> None:
        from kevtui.screens import alerts

        # A held key would acknowledge one after the other, unread.
        if self._typing.is_fresh() and not self.in_past:
            alerts.acknowledge(self)

    def action_acknowledge_all(self) -> None:
        from kevtui.screens import alerts

        if not self.in_past:
            alerts.acknowledge_all(self)

    def action_unacknowledge(self) -> None:
        from kevtui.screens import alerts

        if not self.in_past:
            alerts.withdraw(self)

    # ------------------------------------------------------------------------------ filter, sort, copy

    async def action_filter(self) -> None:
        from textual.widgets import Input

        if self.zoomed not in (None, places.STUDIES):
            self.zoom(None)
        if not self.filtering:
            field = Input(self.studies.filter, placeholder="study, trial or state; !word leaves out", id=places.FILTER)
            field.cursor_blink = False
            self.filtering = True
            await self.mount(field)
            self.rearrange()
        self.query_one(f"#{places.FILTER}").focus()

    def on_input_changed(self, event: "Input.Changed") -> None:
        if event.input.id == places.FILTER and self.filtering:
            self.studies.set_filter(event.value)

    def on_input_submitted(self, event: "Input.Submitted") -> None:
        if event.input.id == places.FILTER:
            self.leave_filter()

    def action_sort(self) -> None:
        self.studies.next_sort()

    def action_columns(self) -> None:
        from kevtui.screens import opening

        opening.columns(self)

    def action_copy_cell(self) -> None:
        from kevtui.screens import copying

        copying.choose(self)

    # ------------------------------------------------------------------------------ what opens over the panels

    @property
    def trial_id(self) -> str | None:
        """`<study>/<label>` of the trial that is meant."""
        return self.trial.id if self.trial is not None else None

    @property
    def trial(self) -> Trial | None:
        """The trial that is meant: under the cursor where rows are trials, else the one whose curves are shown."""
        key = self.panel.key if isinstance(self.panel, LeasesPanel) else self.studies.key
        trials = self.snapshot.trials if self.snapshot else ()
        return next((trial for trial in trials if trial.id == key), None)

    def action_details(self) -> None:
        from kevtui.screens import opening

        opening.details(self)

    async def action_log(self) -> None:
        """Open the log of the trial, or close the log that is open."""
        from kevtui.screens import opening

        if self.log_open:
            self.leave_log()
        else:
            await opening.log(self)

    def action_beside(self) -> None:
        from kevtui.screens import beside

        beside.choose(self)
