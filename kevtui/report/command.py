"""`kevtui report`: a session or round as Markdown, or as one HTML page."""

import argparse
import os
import sys
from pathlib import Path

from kev.clock import SystemClock
from kev.errors import UsageError
from kevtui.headless.output import Output
from kevtui.keeping import keep
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
        data = text.encode(errors="backslashreplace")
        keep(place, data, kind="earlier report", is_of_kind=lambda before: before.startswith(start))
        output.write(f"{place}\n")
    return exit_status(material.snapshot, strict=False)
