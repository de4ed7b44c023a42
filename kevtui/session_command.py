"""`kevtui session`: one session on the dashboard, as lines, as tables or as JSON."""

import argparse
import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kev.errors import UsageError
from kevtui import exit_codes
from kevtui.headless.output import Output, complain

if TYPE_CHECKING:
    from kevtui.actions.sight import Eyes
    from kevtui.bench.target import BenchTarget
    from kevtui.observe.observer import Observer
    from kevtui.observe.snapshot import Snapshot
    from kevtui.observe.target import Target
    from kevtui.replay.player import Player


def session(arguments: argparse.Namespace) -> int:
    """Show the session that `arguments` name; the exit status. Raises KevError, OutputLost and OutputEnded."""
    if arguments.once or arguments.json:
        # A process this short has no garbage worth a search; the searches took a twelfth of its time.
        gc.disable()
    output = Output(sys.stdout, os.environ, ascii_only=arguments.ascii)
    from kevtui.bench.target import bench_at

    bench = bench_at(arguments.session, root=arguments.root, cwd=Path.cwd())
    if bench is not None:
        return _bench(bench, arguments, output)
    from kevtui.record.opening import bundle_at

    recorded = bundle_at(arguments.session, root=arguments.root, cwd=Path.cwd())
    if recorded is not None:
        from kevtui.replay import command as replay

        return replay.recorded(recorded, arguments, output)
    from kevtui.observe.target import resolve

    target = resolve(arguments.session, root=arguments.root, cwd=Path.cwd())
    if arguments.once or arguments.plain or arguments.json:
        return _headless(target, arguments, output)
    why = no_screen(output)
    if why:
        complain(f"{why}: printing changes as with --plain; --once and --json print one picture and end")
        return _headless(target, arguments, output)
    if arguments.strict:
        raise UsageError("--strict belongs to --once, --plain or --json; the dashboard shows findings itself")
    return dashboard(target, arguments)


def _bench(target: "BenchTarget", arguments: argparse.Namespace, output: Output) -> int:
    from kevtui.bench import command

    if not (arguments.once or arguments.plain or arguments.json):
        if not (why := no_screen(output)):
            return command.dashboard(target, arguments)
        complain(f"{why}: printing changes as with --plain; --once and --json print one picture and end")
    return command.headless(target, arguments, output)


def no_screen(output: Output) -> str:
    """Why there can be no dashboard here, or ""."""
    if os.environ.get("TEXTUAL_DRIVER"):
        return ""  # the screen goes to a browser, through pipes
    if not output.is_terminal:
        return "the output is not a terminal"
    if sys.stdin is None or not sys.stdin.isatty():
        return "the input is not a terminal"
    if os.environ.get("TERM", "") in ("", "dumb", "unknown"):
        return "TERM names a terminal that cannot place text"
    return ""


def dashboard(target: "Target", arguments: argparse.Namespace) -> int:
    """Open the dashboard over `target` until it is quit; its exit status."""
    # Switched on again once the first Snapshot is shown; until then nothing that is made is garbage.
    gc.disable()
    from kevtui.app import Options, run
    from kevtui.settings import BadSettings, read_settings

    def open_source() -> "Observer":
        # Only now: records are not loaded before the first frame.
        return open_observer(target, arguments)

    try:
        settings = read_settings()
    except BadSettings as error:
        for line in error.lines:
            complain(line)
        return exit_codes.USAGE
    # A terminal that is not told to be UTF-8 shows other characters for ours.
    ascii_only = Output(sys.stdout, os.environ, ascii_only=arguments.ascii or settings.ascii).ascii_only
    from kevtui.permission import why_read_only

    why = why_read_only(target.root, asked=arguments.read_only, setting=settings.read_only)

    def open_eyes() -> "Eyes":
        from kev.clock import SystemClock

        # What can write, lock or spend is made here or nowhere.
        if why:
            from kevtui.actions.sight import Eyes

            return Eyes(target.root, SystemClock())
        from kevtui.actions.hands import Hands

        return Hands(target.root, SystemClock(), undo_window_s=settings.undo_window_s, session=target.session)

    def open_past() -> "Player":
        from kevtui.replay.look_back import open_past

        return open_past(target, arguments.leases)

    options = Options(
        theme=arguments.theme or settings.theme, ascii=ascii_only, mouse=arguments.mouse, bindings=settings.bindings,
        columns=settings.columns, open_eyes=open_eyes, may_act=not why, look=look, open_past=open_past,
        beside=getattr(arguments, "beside", None),
    )  # fmt: skip
    return run(open_source, title=target.title, options=options)


def open_observer(target: "Target", arguments: argparse.Namespace) -> "Observer":
    """The observer that the options in `arguments` ask for."""
    from kev.clock import SystemClock
    from kevtui.observe.observer import Observer

    return Observer(target, clock=SystemClock(), leases=arguments.leases, poll=arguments.poll)


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


def _headless(target: "Target", arguments: argparse.Namespace, output: Output) -> int:
    observer = open_observer(target, arguments)
    try:
        if arguments.json:
            from kevtui.headless import as_json

            snapshot = observer.observe()
            output.write(as_json.render(snapshot))
        elif arguments.once:
            from kevtui.headless import once

            snapshot = observer.observe()
            output.write(once.render(snapshot, output))
        else:
            from kev.clock import SystemClock
            from kevtui.headless.plain import follow

            snapshot = follow(observer, output, SystemClock())
    finally:
        observer.close()
    return exit_status(snapshot, strict=arguments.strict)


def exit_status(snapshot: "Snapshot", *, strict: bool) -> int:
    """What the process says about `snapshot` once it is shown."""
    if strict and snapshot.findings:
        return exit_codes.FINDINGS
    money = (snapshot.money.authorization, snapshot.money.metered)
    if snapshot.studies or snapshot.readout or snapshot.verdicts or snapshot.events or any(money):
        return exit_codes.FINE
    return exit_codes.NOTHING
