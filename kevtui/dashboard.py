"""Opens the dashboard over one session, or over several, as the command line, the settings and the place allow."""

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kevtui.headless.output import Output

if TYPE_CHECKING:
    from kevtui.actions.sight import Eyes
    from kevtui.observe.snapshot import Snapshot
    from kevtui.observe.target import Target
    from kevtui.options import Options
    from kevtui.replay.player import Player
    from kevtui.settings import Settings
    from kevtui.tabs import Watched


def open_dashboard(targets: Sequence["Target"], arguments: argparse.Namespace) -> int:
    """Show `targets`, each on a tab where there are several, until it is quit; the exit status. Raises BadSettings."""
    # Switched on again once the first Snapshot is shown; until then nothing that is made is garbage.
    gc.disable()
    from kevtui.app import run
    from kevtui.settings import read_settings

    settings = read_settings()
    first, *others = watched_of(targets, arguments, settings)
    options = replace(
        options_of(arguments, settings),
        alerts=settings.alerts, open_eyes=first.open_eyes, may_act=first.may_act, look=look, open_past=first.open_past,
        beside=getattr(arguments, "beside", None), more=tuple(others), layout=first.layout,
        keep_layout=first.keep_layout,
    )  # fmt: skip
    return run(first.open_source, title=first.title, options=options)


def options_of(arguments: argparse.Namespace, settings: "Settings") -> "Options":
    """How a screen is to look; the command line goes before the settings."""
    from kevtui.options import Options

    # A terminal that is not told to be UTF-8 shows other characters for ours.
    ascii_only = Output(sys.stdout, os.environ, ascii_only=arguments.ascii or settings.ascii).ascii_only
    return Options(
        theme=arguments.theme or settings.theme, ascii=ascii_only, mouse=arguments.mouse, bindings=settings.bindings,
        columns=settings.columns,
    )  # fmt: skip


def watched_of(targets: Sequence["Target"], arguments: argparse.Namespace, settings: "Settings") -> list["Watched"]:
    """What the dashboard is told of each target; equal titles say in which folder they are."""
    from kevtui.layouts import UNTOUCHED, LayoutFile, layout_path, read_layout
    from kevtui.permission import why_read_only
    from kevtui.session_command import open_observer
    from kevtui.tabs import Watched

    titles = [target.title for target in targets]
    found = []
    for target in targets:
        title = target.title if titles.count(target.title) == 1 else f"{target.title} · {target.root.name}"
        why = why_read_only(target.root, asked=arguments.read_only, setting=settings.read_only)
        # A demo is over when it is left.
        place = layout_path(os.environ, target.root, target.title) if arguments.command == "session" else None
        found.append(
            Watched(
                title,
                # Opened after the first frame: records are not loaded before it.
                open_source=partial(open_observer, target, arguments),
                open_eyes=partial(_open_eyes, target, settings, may_act=not why),
                open_past=partial(_open_past, target, arguments),
                may_act=not why,
                layout=read_layout(place) if place is not None else UNTOUCHED,
                # Like hands, what writes is made here or nowhere.
                keep_layout=LayoutFile(place).keep if place is not None and not why else None,
            )
        )
    return found


def _open_eyes(target: "Target", settings: "Settings", *, may_act: bool) -> "Eyes":
    from kev.clock import SystemClock

    # What can write, lock or spend is made here or nowhere.
    if not may_act:
        from kevtui.actions.sight import Eyes

        return Eyes(target.root, SystemClock())
    from kevtui.actions.hands import Hands

    return Hands(target.root, SystemClock(), undo_window_s=settings.undo_window_s, session=target.session)


def _open_past(target: "Target", arguments: argparse.Namespace) -> "Player":
    from kevtui.replay.look_back import open_past

    return open_past(target, arguments.leases)


def look(name: str, root: Path) -> "Snapshot":
    """One Snapshot of what is called `name` under `root`. Raises NotFound."""
    from kev.clock import SystemClock
    from kevtui.observe.observer import Observer
    from kevtui.observe.target import resolve

    observer = Observer(resolve(name, root=root, cwd=Path.cwd()), clock=SystemClock(), poll=True)
    try:
        return observer.observe()
    finally:
        observer.close()
