"""`kevtui report`: a session or round as Markdown, or as one HTML page."""

import argparse
import os
import sys
from pathlib import Path

from kev import files
from kev.clock import SystemClock
from kev.errors import DamagedFile, NotFound, UsageError
from kevtui.headless.output import Output
from kevtui.observe.target import resolve
from kevtui.report.gather import gather
from kevtui.session_command import exit_status

PAGE = b"<!doctype html>"
MARKDOWN = b"# "


def report(arguments: argparse.Namespace) -> int:
    """Print it, or write it to the file that is named; the exit status. Raises KevError, OutputLost and OutputEnded."""
    if arguments.html is not None and arguments.out is not None:
        raise UsageError("--html FILE says where the page goes; --out is for the Markdown")
    target = resolve(arguments.session, root=arguments.root, cwd=Path.cwd())
    material = gather(target, SystemClock(), leases=arguments.leases)
    if arguments.html is not None:
        from kevtui.report.page import to_html

        text, place, start = to_html(material), arguments.html, PAGE
    else:
        from kevtui.report.markdown import to_markdown

        text, place, start = to_markdown(material), arguments.out, MARKDOWN
    output = Output(sys.stdout, os.environ, ascii_only=False)
    if place is None or str(place) == "-":
        output.write(text)
    else:
        _keep(place, text.encode(errors="backslashreplace"), start)
        output.write(f"{place}\n")
    return exit_status(material.snapshot, strict=False)


def _keep(place: Path, data: bytes, start: bytes) -> None:
    """Write the file, over an earlier report at most. Raises UsageError."""
    try:
        if not files.read_bytes(place).startswith(start):
            raise UsageError(f"{place}: is there and is no earlier report; name another file")
    except NotFound:
        pass
    except DamagedFile as error:
        raise UsageError(f"{error}; name another file") from None
    try:
        files.write_atomic(place, data)
    except OSError as error:
        raise UsageError(
            f"{place}: cannot be written ({error.strerror}); name a file in a folder that is there"
        ) from None
