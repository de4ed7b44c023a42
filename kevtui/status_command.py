"""`kevtui status`: one session in one line."""

import argparse
import gc
import os
import sys
from pathlib import Path

from kevtui.headless.output import Output


def status(arguments: argparse.Namespace) -> int:
    """Print the line; the exit status. Raises KevError, OutputLost and OutputEnded."""
    # As for `--once`: a process this short has no garbage worth a search.
    gc.disable()
    output = Output(sys.stdout, os.environ, ascii_only=arguments.ascii)
    from kevtui.bench.target import bench_at

    bench = bench_at(arguments.session, root=arguments.root, cwd=Path.cwd())
    if bench is not None:
        from kevtui.bench import command

        return command.status(bench, arguments, output)
    from kevtui.headless import status_line
    from kevtui.observe.target import resolve
    from kevtui.session_command import exit_status, open_observer

    observer = open_observer(resolve(arguments.session, root=arguments.root, cwd=Path.cwd()), arguments)
    try:
        snapshot = observer.observe()
    finally:
        observer.close()
    width = arguments.width if arguments.width is not None else output.width
    line = status_line.render(snapshot, width=width, tmux=arguments.tmux, ascii_only=output.ascii_only)
    output.write(f"{line}\n")
    return exit_status(snapshot, strict=arguments.strict)
