"""`python -m kev.autorl COMMAND ...`: the bench's commands, each loaded only when it is called."""

import sys
from dataclasses import dataclass
from importlib import import_module

from kev.console import run

USAGE = 2


@dataclass(frozen=True, slots=True)
class Command:
    """A module whose `main(arguments)` returns the exit code, and what it does, in a few words."""

    module: str
    words: str


COMMANDS: dict[str, Command] = {
    "run": Command(
        "kev.autorl.runner", "an agent in a fixed time: workspace, baseline, agent, grades, a row of results.csv"
    ),
    "serve": Command("kev.autorl.serve", "grades one run: the server that an agent submits to"),
    "metrics": Command("kev.autorl.metrics_command", "the figures of a run, and its curve of scores"),
    "journal": Command("kev.autorl.journal.command", "the record of an agent's rounds: append, check, repair"),
    "submit": Command("kev.autorl.submit", "submits a model, from inside a run"),
}


def main(arguments: list[str] | None = None) -> int:
    """The command line. Returns the exit code of the command, or 2 where there is no such command."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] in (["-h"], ["--help"]):
        return run(lambda: print(usage()) or 0)
    if not arguments or arguments[0] not in COMMANDS:
        print(usage(), file=sys.stderr)
        return USAGE
    command = import_module(COMMANDS[arguments[0]].module)
    return int(command.main(arguments[1:]))


def usage() -> str:
    """What can be called."""
    width = max((len(name) for name in COMMANDS), default=0)
    lines = [f"  {name:<{width}}  {command.words}" for name, command in COMMANDS.items()]
    return "\n".join(["usage: python -m kev.autorl COMMAND ...", "", *lines])


if __name__ == "__main__":
    raise SystemExit(main())
