"""The screen of a bench: one run as it goes, or several compared."""

from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.geometry import Region, Size

from kevtui.bench import places
from kevtui.bench.panels.agent_log import AgentLogPanel
from kevtui.bench.panels.failures import FailuresPanel
from kevtui.bench.panels.findings import FindingsPanel
from kevtui.bench.panels.header import BenchHeader
from kevtui.bench.panels.journal import JournalPanel
from kevtui.bench.panels.matrix import MatrixPanel
from kevtui.bench.panels.panel import BenchPanel
from kevtui.bench.panels.run import RunPanel
from kevtui.bench.panels.runs import RunsPanel
from kevtui.bench.panels.submissions import SubmissionsPanel
from kevtui.bench.panels.trajectory import TrajectoryPanel
from kevtui.bench.snapshot import BenchSnapshot
from kevtui.keymap import Binding
from kevtui.screens.arrange import FOOTER, HEADER
from kevtui.screens.panels import PanelsScreen
from kevtui.widgets.footer import Footer
from kevtui.widgets.ink import Ink
from kevtui.widgets.panel import Panel


class BenchScreen(PanelsScreen[BenchSnapshot]):
    """Takes BenchSnapshots and shows them. Nothing can be changed from here."""

    NAMES: ClassVar[Set[str]] = places.NAMES
    ALWAYS: ClassVar[Set[str]] = frozenset((HEADER, FOOTER))

    def __init__(self, ink: Ink, bindings: tuple[Binding, ...], *, title: str) -> None:
        super().__init__(ink, bindings)
        self._title_text = title

    def _own_panels(self) -> Iterable[BenchPanel]:
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        yield BenchHeader(self.ink, id=HEADER, title=self._title_text)
        yield FindingsPanel(self.ink, id=places.FINDINGS)
        yield from self._own_panels()
        yield Footer(self.ink, self.bindings, id=FOOTER)

    def regions(self, size: Size) -> Mapping[str, Region]:
        return places.arrange(size, self._contents, zoomed=self.zoomed, log=self.log_open)

    def show(self, snapshot: BenchSnapshot) -> None:
        self.snapshot = snapshot
        with self.app.batch_update():
            for panel in self.panels:
                panel.show(snapshot)
            self._follow()
            self.rearrange()

    def tell_silence(self, text: str) -> None:
        for header in self.query_children(BenchHeader):
            header.tell_silence(text)

    def _follow(self) -> None:
        """What a panel shows because of where the cursor is in another one."""

    def on_panel_selected(self, message: Panel.Selected) -> None:  # noqa: ARG002
        self._follow()

    def action_back(self) -> None:
        """Leave one layer: the log, then the zoom."""
        if self.log_open:
            self.leave_log()
        elif self.zoomed is not None:
            self.zoom(None)

    def action_details(self) -> None:
        """Everything known of the row under the cursor."""
        from kevtui.bench import details
        from kevtui.screens.details import DetailsScreen

        if self.snapshot is None or self.panel is None:
            return
        known = details.of_row(self.snapshot, self.panel.key)
        if known:
            self.app.push_screen(DetailsScreen(known, ascii=self.ink.ascii_only))
        else:
            self.action_zoom()


class RunScreen(BenchScreen):
    """One run: its time, its scores, its journal and what its agent prints."""

    AUTO_FOCUS = f"#{places.SUBMISSIONS}"
    HOME: ClassVar[str] = places.SUBMISSIONS
    FROM_THE_START: ClassVar[tuple[str, ...]] = (places.RUN, places.SUBMISSIONS, places.JOURNAL, places.AGENT_LOG)

    def _own_panels(self) -> Iterable[BenchPanel]:
        yield RunPanel(self.ink, id=places.RUN)
        yield SubmissionsPanel(self.ink, id=places.SUBMISSIONS)
        yield TrajectoryPanel(self.ink, id=places.TRAJECTORY)
        yield JournalPanel(self.ink, id=places.JOURNAL)
        yield FailuresPanel(self.ink, id=places.FAILURES)
        yield AgentLogPanel(self.ink, id=places.AGENT_LOG)

    async def action_log(self) -> None:
        """Open all of the agent's log in the place of the panels below, or close it."""
        if self.log_open:
            self.leave_log()
            return
        run = self.snapshot.run if self.snapshot is not None else None
        if run is None or not run.log.path:
            self.notify("The agent has printed nothing yet", timeout=3)
            return
        await self.open_log(Path(run.log.path), "agent.log")


class ComparisonScreen(BenchScreen):
    """Several runs: agent by task, a line for each, and the scores of the one under the cursor."""

    AUTO_FOCUS = f"#{places.RUNS}"
    HOME: ClassVar[str] = places.RUNS
    FROM_THE_START: ClassVar[tuple[str, ...]] = (places.MATRIX, places.RUNS)

    def _own_panels(self) -> Iterable[BenchPanel]:
        yield MatrixPanel(self.ink, id=places.MATRIX)
        yield RunsPanel(self.ink, id=places.RUNS)
        yield TrajectoryPanel(self.ink, id=places.TRAJECTORY)

    def _follow(self) -> None:
        self.query_one(TrajectoryPanel).choose(self.query_one(RunsPanel).row)

    def action_sort(self) -> None:
        self.query_one(RunsPanel).next_order()
