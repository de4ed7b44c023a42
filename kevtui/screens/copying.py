"""What can be copied of the row under the cursor: each of its cells in full, and the commands that are about it."""

import shlex
from typing import TYPE_CHECKING

from kev.text import visible
from kevtui import format as figures
from kevtui.keymap import Binding
from kevtui.observe.snapshot import Snapshot, Trial
from kevtui.screens.acting import round_of, target_of
from kevtui.screens.details import describe
from kevtui.screens.facts_of import of_row
from kevtui.screens.palette import Command, PaletteScreen
from kevtui.widgets.leases import LeasesPanel
from kevtui.widgets.state import lease_of
from kevtui.widgets.studies import StudiesPanel

if TYPE_CHECKING:
    from kevtui.screens.watch import WatchScreen

_ACT = "screen.act('"
_OF_TRIALS = ("resume", "cancel", "pull", "mirror")


def choose(screen: "WatchScreen") -> None:
    """Offer the cells of the row under the cursor and its commands; the chosen one goes to the clipboard."""
    panel, snapshot = screen.panel, screen.snapshot
    if snapshot is None:
        return
    if panel is None or isinstance(panel, StudiesPanel | LeasesPanel):
        offered = cells_of_trial(snapshot, screen.trial)
    else:
        offered = [(name, value) for _, facts in of_row(snapshot, panel.id or "", panel.key) for name, value in facts]
    if panel is not None and (row := panel.text()):
        offered.append(("row", row))
    offered += commands(snapshot, screen.trial, screen.bindings)

    def copy(text: str | None) -> None:
        if text:
            screen.app.copy_to_clipboard(text)
            screen.notify("Copied", timeout=2)

    # Both the line that is read and the text that is copied are without anything that acts on a terminal.
    known = [Command(name, visible(value), "", visible(value)) for name, value in offered if value != figures.MISSING]
    asked = "a cell or a command; enter copies it, escape closes"
    screen.app.push_screen(PaletteScreen(known, ascii_only=screen.ink.ascii_only, asked=asked), copy)


def cells_of_trial(snapshot: Snapshot, trial: Trial | None) -> list[tuple[str, str]]:
    """(name, value) of everything known of `trial`, in full where the table cuts it."""
    if trial is None:
        return []
    study = next((study for study in snapshot.studies if study.name == trial.study), None)
    sections = describe(trial, lease_of(snapshot).get(trial.id), study)
    cells = [("trial", trial.id)]
    for heading, facts in sections:
        of = "" if heading in (trial.id, "Progress") else f"{heading.lower()} "
        cells += [(f"{of}{name}", value) for name, value in facts]
    return cells


def commands(snapshot: Snapshot, trial: Trial | None, bindings: tuple[Binding, ...]) -> list[tuple[str, str]]:
    """(name, command line) of what can be asked for without a screen about what is under the cursor."""
    root = shlex.quote(snapshot.root)
    round_name = round_of(snapshot)
    name = round_name or snapshot.session
    found = []
    if name:
        found.append(("command look", f"kevtui session {shlex.quote(name)} --root {root} --once"))
    if trial is not None and trial.log:
        found.append(("command log", f"tail -F {shlex.quote(f'{snapshot.root}/{trial.log}')}"))
    for binding in bindings:
        if not binding.action.startswith(_ACT):
            continue
        verb = binding.action.removeprefix(_ACT).removesuffix("')")
        target = target_of(verb, snapshot, trial.id if trial else None)
        if target is None:
            continue
        of_round = f" --round {shlex.quote(round_name)}" if verb in _OF_TRIALS and round_name else ""
        verb = "reads" if verb == "stage_reads" else verb
        line = f"kevtui act {verb} {shlex.quote(target)}{of_round} --root {root} --dry-run"
        found.append((f"command {binding.verb}", line))
    return found
