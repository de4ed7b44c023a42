"""`python -m kev.session show`: the sum that a launch would be held against. Asks nobody and writes nothing."""

import argparse

from kev.clock import SystemClock
from kev.session.desk import add_place, answer
from kev.session.find import find_state
from kev.session.standing import read_standing


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `show`."""
    add_place(parser)


def show_command(arguments: argparse.Namespace) -> int:
    """Print the sum. Raises KevError."""
    standing = read_standing(find_state(arguments.root / "runs", arguments.session), SystemClock().now())
    answer(arguments, standing.to_json(), standing.lines())
    return 0
