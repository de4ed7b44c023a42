"""`python -m kev.rounds`: one command per step of a round."""

import argparse
import sys
from importlib import import_module
from typing import NamedTuple

from kev.console import run


class Command(NamedTuple):
    """A module with `add_arguments(parser)` and the function that runs the command and returns its exit code."""

    module: str
    function: str
    words: str


COMMANDS = {
    "new": Command("scaffold", "new_command", "draft a round's spec and plan section from an earlier one"),
    "validate": Command("validate", "validate_command", "say everything that is wrong with a spec"),
    "readout": Command("readout", "readout_command", "compare every arm with its parent under the rule"),
    "confirm": Command("confirm", "confirm_command", "decide a confirmation stage of the candidate"),
}


def build_parser(chosen: str | None) -> argparse.ArgumentParser:
    """All commands, with the options of the chosen one: the others' modules, some of them slow, stay unloaded."""
    parser = argparse.ArgumentParser(
        prog="python -m kev.rounds", description="Rounds: registered, validated, read out."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        child = commands.add_parser(name, help=command.words, description=command.words)
        if name == chosen:
            module = import_module(f"kev.rounds.{command.module}")
            module.add_arguments(child)
            child.set_defaults(run=getattr(module, command.function))
    return parser


# The numbers need numpy, which the other commands do without.


def _readout(arguments: argparse.Namespace) -> int:
    from kev.rounds import readout

    return readout.readout_command(arguments)


def _confirm(arguments: argparse.Namespace) -> int:
    from kev.rounds import confirm

    return confirm.confirm_command(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run one command. Returns its exit code; a wrong command line exits with 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    chosen = next((word for word in arguments if word in COMMANDS), None)
    options = build_parser(chosen).parse_args(arguments)
    return run(lambda: int(options.run(options)))


if __name__ == "__main__":
    raise SystemExit(main())
