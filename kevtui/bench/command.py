"""`kevtui session` and `kevtui status` for a bench: lines, tables, JSON, one line, or the dashboard."""

import argparse
import gc
from typing import TYPE_CHECKING, Any, Final

from kev.errors import UsageError
from kevtui import exit_codes
from kevtui.bench.snapshot import BenchSnapshot, RunState
from kevtui.bench.target import BenchTarget
from kevtui.headless.output import Output

if TYPE_CHECKING:
    from kevtui.bench.observer import BenchObserver

JSON_VERSION: Final = 1
"""Of the shape: raised when a key is renamed, removed or changes its meaning; new keys do not raise it."""


def dashboard(target: BenchTarget, arguments: argparse.Namespace) -> int:
    """Open the dashboard over `target` until it is quit; its exit status. It writes nothing, whatever is asked."""
    if arguments.strict:
        raise UsageError("--strict belongs to --once, --plain or --json; the dashboard shows findings itself")
    # Switched on again once the first picture is shown; until then nothing that is made is garbage.
    gc.disable()
    from kevtui.app import run_app
    from kevtui.bench.app import BenchApp
    from kevtui.dashboard import options_of
    from kevtui.settings import read_settings

    def open_source() -> "BenchObserver":
        from kev.clock import SystemClock
        from kevtui.bench.observer import BenchObserver

        return BenchObserver(target, clock=SystemClock(), poll=arguments.poll)

    options = options_of(arguments, read_settings())
    return run_app(BenchApp(open_source, title=target.title, several=target.is_results, options=options))


def headless(target: BenchTarget, arguments: argparse.Namespace, output: Output) -> int:
    """Print what the options ask for; the exit status. Raises OutputLost and OutputEnded."""
    from kev.clock import SystemClock
    from kevtui.bench.observer import BenchObserver

    observer = BenchObserver(target, clock=SystemClock(), poll=arguments.poll)
    try:
        if arguments.json:
            snapshot = observer.observe()
            output.write(as_json(snapshot))
        elif arguments.once:
            from kevtui.bench import tables

            snapshot = observer.observe()
            output.write(tables.render(snapshot, output))
        else:
            from kevtui.bench import words
            from kevtui.headless.plain import follow_facts

            snapshot = follow_facts(observer, words.facts, words.summary, output, SystemClock())
    finally:
        observer.close()
    return exit_status(snapshot, strict=arguments.strict)


def status(target: BenchTarget, arguments: argparse.Namespace, output: Output) -> int:
    """Print the line; the exit status. Raises OutputLost and OutputEnded."""
    from kev.clock import SystemClock
    from kevtui.bench import in_one_line
    from kevtui.bench.observer import BenchObserver

    observer = BenchObserver(target, clock=SystemClock(), poll=arguments.poll)
    try:
        snapshot = observer.observe()
    finally:
        observer.close()
    width = arguments.width if arguments.width is not None else output.width
    line = in_one_line.render(snapshot, width=width, tmux=arguments.tmux, ascii_only=output.ascii_only)
    output.write(f"{line}\n")
    return exit_status(snapshot, strict=arguments.strict)


def as_json(snapshot: BenchSnapshot) -> str:
    """The picture field by field, with what it derives: `run.best`, `run.time.left_s`."""
    from kevtui.headless import as_json as shapes

    value: dict[str, Any] = {"bench_version": JSON_VERSION, **shapes.values_of(snapshot)}
    if snapshot.run is not None:
        best = snapshot.run.best
        value["run"]["best"] = None if best is None else shapes.values_of(best)
        value["run"]["time"]["left_s"] = snapshot.run.time.left_s
    return shapes.dump(value)


def exit_status(snapshot: BenchSnapshot, *, strict: bool) -> int:
    """What the process says about `snapshot` once it is shown."""
    if strict and snapshot.findings:
        return exit_codes.FINDINGS
    run, several = snapshot.run, snapshot.comparison
    something = bool(several and several.rows)
    if run is not None:
        known = run.time.state is not RunState.UNKNOWN
        something = known or bool(run.submissions or run.journal.entries or run.log.lines)
    return exit_codes.FINE if something else exit_codes.NOTHING
