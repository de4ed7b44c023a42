"""`python -m kev.session report`: what was spent, what is pending, what went wrong, what came out, what to do next."""

import argparse

from kev.clock import SystemClock
from kev.session.desk import add_place, answer
from kev.session.find import find_state
from kev.session_report import read_report, to_markdown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `report`."""
    add_place(parser)


def report_command(arguments: argparse.Namespace) -> int:
    """Print the report as Markdown, or as JSON. Asks nobody and writes nothing. Raises KevError."""
    state = find_state(arguments.root / "runs", arguments.session)
    report = read_report(arguments.root, state, SystemClock().now())
    answer(arguments, report.to_json(), to_markdown(report).rstrip("\n").split("\n"))
    return 0
