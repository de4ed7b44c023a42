"""What opens over the panels: the details of a row, a log, the keys, the palette."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kevtui import themes
from kevtui.observe.snapshot import Lease, Snapshot, Study, Trial
from kevtui.screens import acting
from kevtui.screens.details import DetailsScreen, describe
from kevtui.screens.facts_of import of_row
from kevtui.screens.help import HelpScreen
from kevtui.screens.palette import Command, PaletteScreen, commands
from kevtui.widgets.actions import ActionsPanel
from kevtui.widgets.leases import LeasesPanel
from kevtui.widgets.line import text_of
from kevtui.widgets.state import lease_of
from kevtui.widgets.studies import StudiesPanel

if TYPE_CHECKING:
    from kevtui.screens.panels import PanelsScreen
    from kevtui.screens.watch import WatchScreen

KEYS = "keys"
"""The name of the dialog that shows them."""


def details(screen: "WatchScreen") -> None:
    """Everything known of the row under the cursor."""
    panel, snapshot = screen.panel, screen.snapshot
    if isinstance(panel, ActionsPanel):
        acting.show_output(screen, panel.key)
        return
    if panel is not None and not isinstance(panel, StudiesPanel | LeasesPanel):
        known = of_row(snapshot, panel.id or "", panel.key) if snapshot else []
        if known:
            screen.app.push_screen(DetailsScreen(known, ascii=screen.ink.ascii_only))
        else:
            screen.action_zoom()
        return
    trial = screen.trial
    if trial is None or snapshot is None:
        screen.notify("No trial here: nothing more is known of it", timeout=3)
        return
    screen.app.push_screen(DetailsScreen(describe(*_known(snapshot, trial)), ascii=screen.ink.ascii_only))


async def log(screen: "WatchScreen") -> None:
    """The log of the trial that is meant, in the place of the panels below the studies."""
    trial = screen.trial
    if trial is None or trial.log is None or screen.snapshot is None:
        screen.notify("No log here" if trial is None else f"{trial.id}: no log yet", markup=False, timeout=3)
        return
    title = text_of(screen.ink.pen(80).add(trial.id).line())
    await screen.open_log(Path(screen.snapshot.root) / trial.log, title)


def columns(screen: "WatchScreen") -> None:
    """Which columns the studies have, and in which order."""
    from kevtui.screens.columns import ColumnsScreen

    def choose(wanted: tuple[str, ...] | None) -> None:
        if wanted is not None:
            screen.studies.choose_columns(wanted)

    screen.app.push_screen(ColumnsScreen(screen.studies.columns, screen.first_columns, screen.ink), choose)


def keys(screen: "PanelsScreen[Any]") -> None:
    """All keys that are there now. The dialog is kept: it is opened most often, and by someone who waits."""
    app = screen.app
    if not app.is_screen_installed(KEYS):
        app.install_screen(HelpScreen(ascii=screen.ink.ascii_only), KEYS)
    kept = app.get_screen(KEYS, HelpScreen)
    if kept not in app.screen_stack:
        kept.begin(screen.bindings)
        app.push_screen(kept)


def palette(screen: "PanelsScreen[Any]") -> None:
    """Every command and theme, to be found by name."""

    async def run_it(action: str | None) -> None:
        if action:
            await screen.run_action(action)

    offered = commands(screen.bindings, themes.names())
    offered += [
        Command(f"session {mark.title}", f"Look at {mark.title}", "", f"app.tab({number})")
        for number, mark in enumerate(screen.tabs)
    ]
    screen.app.push_screen(PaletteScreen(offered, ascii_only=screen.ink.ascii_only), run_it)


def _known(snapshot: Snapshot, trial: Trial) -> tuple[Trial, Lease | None, Study | None]:
    lease = lease_of(snapshot).get(trial.id)
    study = next((study for study in snapshot.studies if study.name == trial.study), None)
    return trial, lease, study
