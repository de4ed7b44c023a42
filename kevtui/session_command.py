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
    from collections.abc import Sequence

    from kevtui.bench.target import BenchTarget
    from kevtui.observe.observer import Observer
    from kevtui.observe.snapshot import Snapshot
    from kevtui.observe.target import Target


def session(arguments: argparse.Namespace) -> int:
    """Show the session that `arguments` name; the exit status. Raises KevError, OutputLost and OutputEnded."""
    if arguments.once or arguments.json:
        # A process this short has no garbage worth a search; the searches took a twelfth of its time.
        gc.disable()
    output = Output(sys.stdout, os.environ, ascii_only=arguments.ascii)
    if arguments.others:
        return _several([arguments.session, *arguments.others], arguments, output)
    from kevtui.bench.target import bench_at

    bench = bench_at(arguments.session, root=arguments.root, cwd=Path.cwd())
    if bench is not None:
        return _bench(bench, arguments, output)
    from kevtui.record.target import bundle_at

    recorded = bundle_at(arguments.session, root=arguments.root, cwd=Path.cwd())
    if recorded is not None:
        from kevtui.replay import command as replay

        return replay.recorded(recorded, arguments, output)
    from kevtui.observe.target import resolve

    target = resolve(arguments.session, root=arguments.root, cwd=Path.cwd())
    if arguments.hook and (arguments.once or arguments.json):
        raise UsageError("--hook belongs to --plain: one picture has no alert that is news")
    if arguments.once or arguments.plain or arguments.json:
        return _headless(target, arguments, output)
    why = no_screen(output)
    if why:
        complain(f"{why}: printing changes as with --plain; --once and --json print one picture and end")
        return _headless(target, arguments, output)
    _refuse_headless_options(arguments)
    return dashboard(target, arguments)


def _several(names: list[str], arguments: argparse.Namespace, output: Output) -> int:
    """A dashboard with a tab for each."""
    if arguments.once or arguments.plain or arguments.json:
        raise UsageError("--once, --plain and --json show one session; name one")
    if why := no_screen(output):
        raise UsageError(f"{why}, and several sessions have tabs on a dashboard only; name one")
    _refuse_headless_options(arguments)
    targets = targets_of(names, root=arguments.root)
    return dashboard(targets[0], arguments, targets[1:])


def targets_of(names: "Sequence[str]", *, root: Path | None) -> list["Target"]:
    """What several names mean, each for a tab; what is named twice is there once. Raises NotFound and UsageError."""
    from kevtui.bench.target import bench_at
    from kevtui.observe.target import resolve

    for name in names:
        if bench_at(name, root=root, cwd=Path.cwd()) is not None:
            raise UsageError(f"{name}: a run of the bench has a dashboard of its own; name it alone")
    return list(dict.fromkeys(resolve(name, root=root, cwd=Path.cwd()) for name in names))


def titles_of(names: "Sequence[str]", *, root: Path | None) -> list[str]:
    """The titles of what a dashboard over `names` shows. Raises NotFound and UsageError where it could show nothing."""
    from kevtui.bench.target import bench_at
    from kevtui.record.target import bundle_at

    if len(names) == 1:
        bench = bench_at(names[0], root=root, cwd=Path.cwd())
        if bench is not None:
            return [bench.title]
        recorded = bundle_at(names[0], root=root, cwd=Path.cwd())
        if recorded is not None:
            return [recorded.name]
    return [target.title for target in targets_of(names, root=root)]


def _refuse_headless_options(arguments: argparse.Namespace) -> None:
    if arguments.hook:
        raise UsageError("--hook belongs to --plain; the dashboard runs the hook of your settings anyway")
    if arguments.strict:
        raise UsageError("--strict belongs to --once, --plain or --json; the dashboard shows findings itself")


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


def dashboard(target: "Target", arguments: argparse.Namespace, others: "Sequence[Target]" = ()) -> int:
    """Open the dashboard over `target`, and over `others` on tabs, until it is quit; its exit status."""
    from kevtui.dashboard import open_dashboard

    return open_dashboard([target, *others], arguments)


def open_observer(target: "Target", arguments: argparse.Namespace) -> "Observer":
    """The observer that the options in `arguments` ask for."""
    from kev.clock import SystemClock
    from kevtui.observe.observer import Observer

    return Observer(target, clock=SystemClock(), leases=arguments.leases, poll=arguments.poll)


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

            if not arguments.hook:
                snapshot = follow(observer, output, SystemClock())
            else:
                from kevtui.alerting.telling import telling

                source = telling(observer)
                try:
                    snapshot = follow(source, output, SystemClock())
                finally:
                    source.close()
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
