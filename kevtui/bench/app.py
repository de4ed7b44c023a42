"""The dashboard of a bench: the same program over another picture."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kevtui.app import KevApp, Options
from kevtui.bench.bindings import bindings_for
from kevtui.bench.screen import BenchScreen, ComparisonScreen, RunScreen
from kevtui.bench.snapshot import BenchSnapshot
from kevtui.feed import SnapshotSource
from kevtui.screens.panels import PanelsScreen
from kevtui.tabs import Watched


class BenchApp(KevApp):
    """Shows what `open_source` yields of one run, or of several, until it is told to quit."""

    def __init__(
        self,
        open_source: Callable[[], SnapshotSource[BenchSnapshot]],
        *,
        title: str,
        several: bool,
        options: Options,
    ) -> None:
        self._several = several
        bindings = bindings_for(options.bindings, several=several)
        super().__init__(open_source, title=title, options=replace(options, bindings=bindings, may_act=False))

    def make_screen(self, session: Watched) -> PanelsScreen[Any]:
        kind: type[BenchScreen] = ComparisonScreen if self._several else RunScreen
        return kind(self.ink, self.bindings_table, title=session.title)

    def open_desk(self) -> None:
        """A run has no alerts."""
