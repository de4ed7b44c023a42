"""`python -m kev.rounds`: one command per step of a round that needs no accelerator."""

import argparse
import sys
from collections.abc import Callable

from kev.errors import KevError
from kev.rounds import options, scaffold, validate
from kev.text import visible

Command = Callable[[argparse.Namespace], int]


def build_parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    parser = argparse.ArgumentParser(
        prog="python -m kev.rounds", description="Rounds: registered, validated, read out."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add: list[tuple[str, str, Callable[[argparse.ArgumentParser], None], Command]] = [
        (
            "new",
            "draft a round's spec and plan section from an earlier one",
            scaffold.add_arguments,
            scaffold.new_command,
        ),
        ("validate", "say everything that is wrong with a spec", validate.add_arguments, validate.validate_command),
        (
            "readout",
            "compare every arm with its parent under the registered rule",
            options.add_readout_arguments,
            _readout,
        ),
        ("confirm", "decide a confirmation stage for the candidate, once", options.add_confirm_arguments, _confirm),
    ]
    for name, words, add_arguments, command in add:
        child = commands.add_parser(name, help=words, description=words)
        add_arguments(child)
        child.set_defaults(run=command)
    return parser


# The numbers need numpy, which the other commands do without.


def _readout(arguments: argparse.Namespace) -> int:
    from kev.rounds import readout

    return readout.readout_command(arguments)


def _confirm(arguments: argparse.Namespace) -> int:
    from kev.rounds import confirm

    return confirm.confirm_command(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run one command. Returns its exit code; an expected failure is one line on stderr and 1."""
    parsed = build_parser().parse_args(arguments)
    command: Command = parsed.run
    try:
        return command(parsed)
    except KevError as error:
        print(visible(str(error)), file=sys.stderr)
        return 1


if __name__ == "__main__":
    raise SystemExit(main())
