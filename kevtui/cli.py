"""The command line. Each way of looking imports only what it needs: `--once` has 150 ms for everything.

Parsed with argparse, which loads in a fraction of the time that a decorator-based parser takes.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from kev.errors import KevError, UsageError
from kevtui import exit_codes
from kevtui.headless.output import UNKNOWN_WIDTH, Output, OutputEnded, OutputLost, columns, complain

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

EPILOG = "exit status: " + "; ".join(f"{code} {meaning}" for code, meaning in exit_codes.MEANINGS)


def main(argv: Sequence[str] | None = None) -> int:
    """Run `kevtui` with `argv` (the process's own arguments if None); the exit status of kevtui.exit_codes."""
    parser = build_parser()
    arguments = parser.parse_args(argv)
    try:
        if arguments.command == "demo":
            from kevtui.demo import demo

            return demo(arguments)
        if arguments.command == "act":
            from kevtui.act_command import act

            return act(arguments)
        if arguments.command == "status":
            from kevtui.status_command import status

            return status(arguments)
        if arguments.command == "doctor":
            from kevtui.doctor.command import doctor

            return doctor(arguments)
        if arguments.command == "completion":
            from kevtui.completion import completion

            return completion(arguments, parser)
        if arguments.command == "_targets":
            from kevtui.completion import print_targets

            return print_targets()
        if arguments.command == "web":
            from kevtui.web import serve

            return serve(arguments)
        from kevtui.session_command import session

        return session(arguments)
    except UsageError as error:
        complain(str(error))
        return exit_codes.USAGE
    except KevError as error:
        complain(str(error))
        return exit_codes.NOTHING
    except OutputLost as error:
        complain(str(error))
        return exit_codes.OUTPUT_LOST
    except OutputEnded:
        return exit_codes.FINE
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED


class _Parser(argparse.ArgumentParser):
    """Prints through the same door as everything else, so that help survives the outputs that tables survive."""

    def _print_message(self, message: str, file: "SupportsWrite[str] | None" = None) -> None:
        if not message or file is sys.stderr:
            complain(message.rstrip())
            return
        try:
            Output(sys.stdout, os.environ).write(message)
        except OutputLost as error:
            complain(str(error))
            raise SystemExit(exit_codes.OUTPUT_LOST) from None
        except OutputEnded:
            raise SystemExit(exit_codes.FINE) from None

    def error(self, message: str) -> NoReturn:
        complain(f"{message}; {self.prog} --help says what there is")
        raise SystemExit(exit_codes.USAGE)


def _formatter(prog: str) -> argparse.HelpFormatter:
    # With a width of its own argparse does not load shutil to ask for one, each time that it makes a sub-command.
    width = columns(sys.stdout, os.environ) if sys.stdout is not None else UNKNOWN_WIDTH
    return argparse.HelpFormatter(prog, width=min(width, 110) - 2)


class _Version(argparse.Action):
    """Asks the installed package only when it is asked for: importlib.metadata takes 20 ms to load."""

    def __init__(self, option_strings: Sequence[str], dest: str, **_: object) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import PackageNotFoundError, version

        try:
            known = version("kevtui")
        except PackageNotFoundError:
            known = "of a checkout that is not installed"
        parser._print_message(f"kevtui {known}\n", sys.stdout)
        parser.exit()


def build_parser() -> argparse.ArgumentParser:
    """The parser of `kevtui`."""
    parser = _Parser(
        prog="kevtui",
        description="Watch unattended research sessions from a terminal.",
        epilog=EPILOG,
        formatter_class=_formatter,
    )
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    session = commands.add_parser(
        "session", help="look at a session or a round", epilog=EPILOG, formatter_class=_formatter
    )
    _add_target(session)
    ways = session.add_mutually_exclusive_group()
    ways.add_argument("--once", action="store_true", help="print everything as tables, once")
    ways.add_argument("--plain", action="store_true", help="print a line per change until ctrl-C")
    ways.add_argument("--json", action="store_true", help="print one snapshot as JSON (docs/snapshot.schema.json)")
    session.add_argument(
        "--strict", action="store_true", help="exit 4 if a file cannot be believed (not on the dashboard)"
    )
    _add_screen_options(session)

    demo = commands.add_parser(
        "demo", help="watch a real round of tiny models on an emulator", epilog=EPILOG, formatter_class=_formatter
    )
    demo.add_argument("--root", type=Path, metavar="DIR", help="play it in this new or empty folder, and keep it")
    demo.add_argument("--fast", action="store_true", help="a smaller round, in under two minutes")
    demo.add_argument("--sample", action="store_true", help="a made-up session instead, for which nothing is installed")
    _add_screen_options(demo)

    act = commands.add_parser(
        "act", help="do what a key of the dashboard does, without a screen", epilog=EPILOG, formatter_class=_formatter
    )
    _add_act_options(act)
    _add_around(commands)
    return parser


def _add_target(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "session",
        metavar="ARG",
        help="a round (r31, r31.json), a session or its state file (night3), a path, or a folder that holds runs/",
    )
    parser.add_argument("--root", type=Path, metavar="DIR", help="the folder that holds runs/ and experiments/")
    parser.add_argument("--leases", type=Path, metavar="DIR", help="a local copy of the lease volume")
    parser.add_argument("--poll", action="store_true", help="look at the files' dates instead of asking to be told")


def _add_around(commands: "argparse._SubParsersAction[_Parser]") -> None:
    """The commands around the dashboard."""
    status = commands.add_parser(
        "status", help="a session in one line, for tmux or a prompt", epilog=EPILOG, formatter_class=_formatter
    )
    _add_target(status)
    status.add_argument("--width", type=_columns, metavar="N", help="at most so many columns")
    status.add_argument("--tmux", action="store_true", help="with tmux's own colours, for status-right")
    status.add_argument("--ascii", action="store_true", help="use no character outside ASCII")
    status.add_argument("--strict", action="store_true", help="exit 4 if a file cannot be believed")

    doctor = commands.add_parser(
        "doctor", help="what stands in the way of a night, and the fix", epilog=EPILOG, formatter_class=_formatter
    )
    doctor.add_argument("--root", type=Path, metavar="DIR", help="the folder that holds runs/ and experiments/")
    doctor.add_argument("--json", action="store_true", help="a list of checks as JSON")
    doctor.add_argument("--ascii", action="store_true", help="use no character outside ASCII")

    completion = commands.add_parser(
        "completion", help="completion for a shell, to be evaluated by it", formatter_class=_formatter
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")
    commands.add_parser("_targets")

    web = commands.add_parser(
        "web", help="the dashboard in a browser on this machine", epilog=EPILOG, formatter_class=_formatter
    )
    _add_target(web)
    web.add_argument("--port", type=int, default=8000, metavar="N", help="on 127.0.0.1 (default: 8000)")
    web.add_argument("--actions", action="store_true", help="with the keys that change something; read-only without")
    web.add_argument("--theme", metavar="NAME", help="colours of the dashboard")


def _columns(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of columns")
    return int(text)


def _add_act_options(parser: argparse.ArgumentParser) -> None:
    from kevtui.act_command import add_arguments

    add_arguments(parser)


def _add_screen_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--theme", metavar="NAME", help="colours of the dashboard")
    parser.add_argument("--ascii", action="store_true", help="use no character outside ASCII")
    parser.add_argument(
        "--mouse",
        action=argparse.BooleanOptionalAction,
        help="let the dashboard take the mouse (default: yes, but not over SSH)",
    )
    parser.add_argument("--read-only", action="store_true", help="no key that changes anything")
