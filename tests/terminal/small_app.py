"""The smallest dashboard: what of the panels and of the lifecycle can be tested without a session.

Run as `python small_app.py LOG [--ascii]`. `x` changes one cell, `b` blocks the loop for good, `q` quits.
"""

import sys
import time
from pathlib import Path
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from kevtui.lifecycle import run
from kevtui.observe.snapshot import Point, Trial, TrialState
from kevtui.widgets.log_view import LogView
from kevtui.widgets.plot import PlotPanel

POINTS = tuple(Point(step, 3.0 - step / 50, at_s=step * 9.0, steps_per_minute=6.0 + step % 3) for step in range(100))


class SmallApp(App[None]):
    CSS = "Static.cell { height: 1; width: 12; } PlotPanel { height: 12; } LogView { height: 1fr; }"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "change"),
        Binding("b", "block", priority=True),
        Binding("q", "quit"),
    ]
    count = 0

    def compose(self) -> ComposeResult:
        yield Static("count 0", classes="cell", markup=False)
        yield PlotPanel(ascii="--ascii" in sys.argv)
        yield LogView(ascii="--ascii" in sys.argv)

    def on_mount(self) -> None:
        self.query_one(PlotPanel).show(Trial("study", "trial-0", 0, TrialState.RUNNING, points=POINTS))
        log = self.query_one(LogView)
        log.open(Path(sys.argv[1]))
        log.focus()

    def action_change(self) -> None:
        self.count += 1
        self.query_one(".cell", Static).update(f"count {self.count}")

    def action_block(self) -> None:
        self.query_one(".cell", Static).update("blocked")
        self.set_timer(0.2, lambda: time.sleep(3600))


if __name__ == "__main__":
    sys.exit(run(SmallApp(), mouse=False))
