"""`python -m kev.rounds`: one command per step of a round."""

import argparse
from collections.abc import Callable

from kev.console import run
from kev.rounds import options, scaffold, validate

Command = Callable[[argparse.Namespace], int]


def build_parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    parser = argparse.ArgumentParser(prog="python -m kev.rounds", description="Rounds, from draft to verdict.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add: list[tuple[str, str, Callable[[argparse.ArgumentParser], None], Command]] = [
        ("new", "draft a round's spec and section from an earlier one", scaffold.add_arguments, scaffold.new_command),
        ("validate", "say everything that is wrong with a spec", validate.add_arguments, validate.validate_command),
        ("readout", "compare every arm with its parent under the rule", options.add_readout_arguments, _readout),
        ("confirm", "decide a stage for the candidate, once", options.add_confirm_arguments, _confirm),
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
    """Run one command. Returns its exit code; a wrong command line exits with 2."""
    parsed = build_parser().parse_args(arguments)
    command: Command = parsed.run
    return run(lambda: command(parsed))


if __name__ == "__main__":
    raise SystemExit(main())
