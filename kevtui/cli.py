"""The command line. Each way of looking imports only what it needs: `--once` has 150 ms for everything.

Parsed with argparse, which loads in a fraction of the time that a decorator-based parser takes.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

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
    if _may_hang(arguments):
        from kevtui import stand_in

        return stand_in.run(lambda: _told(arguments, parser))
    return _told(arguments, parser)


def _may_hang(arguments: argparse.Namespace) -> bool:
    """Whether this only looks at what lies on a volume of another machine, and may be left whatever it waits for."""
    if arguments.command not in (*LOOKING, "act") or os.environ.get("TEXTUAL_DRIVER"):
        return False  # the screen that goes to a browser ends with its pipe
    from kevtui.observe.mounts import LOCKLESS, SHARED, read_table, shared_on_the_way

    root = getattr(arguments, "root", None) or Path()
    named = [getattr(arguments, "session", None), getattr(arguments, "leases", None), *getattr(arguments, "others", ())]
    table = read_table()
    places = (root, root / "runs", *(Path(each) for each in named if each))
    # An action only looks where no lock is taken: it is refused there.
    kinds = LOCKLESS if arguments.command == "act" else SHARED
    return any(shared_on_the_way(place, table) in kinds for place in places)


def _told(arguments: argparse.Namespace, parser: "Parser") -> int:
    try:
        return _run(arguments, parser)
    except UsageError as error:
        for line in error.lines:
            complain(line)
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


def _run(arguments: argparse.Namespace, parser: "Parser") -> int:
    match arguments.command:
        case "demo":
            from kevtui.demo import demo

            return demo(arguments)
        case "act":
            from kevtui.act_command import act

            return act(arguments)
        case "status":
            from kevtui.status_command import status

            return status(arguments)
        case "report":
            from kevtui.report.command import report

            return report(arguments)
        case "doctor":
            from kevtui.doctor.command import doctor

            return doctor(arguments)
        case "completion":
            from kevtui.completion import completion

            return completion(arguments, parser)
        case "_targets":
            from kevtui.completion import print_targets

            return print_targets()
        case "record":
            from kevtui.record.command import record

            return record(arguments)
        case "replay":
            from kevtui.replay.command import replay

            return replay(arguments)
        case "web":
            from kevtui.web import serve

            return serve(arguments)
    from kevtui.session_command import session

    return session(arguments)


class Parser(argparse.ArgumentParser):
    """Takes its options only once it is asked to parse: a start makes those of one command, not of all.

    It prints through the same door as everything else, so that help survives the outputs that tables survive.
    """

    add_options: "Callable[[Parser], None] | None" = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.fill()
        found, rest = super().parse_known_args(args, namespace)
        if rest and hasattr(found, "others") and not any(word.startswith("-") for word in rest):
            # argparse takes the words before the first option, and none of those after it.
            found.others += rest
            rest = []
        return found, rest

    def fill(self) -> None:
        """Take the options that are still to be added."""
        add_options, self.add_options = self.add_options, None
        if add_options is not None:
            add_options(self)

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


def build_parser() -> Parser:
    """The parser of `kevtui`. That of a command has its options once it has parsed, or after `fill`."""
    parser = Parser(
        prog="kevtui",
        description="Watch unattended research sessions from a terminal.",
        epilog=EPILOG,
        formatter_class=_formatter,
    )
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, words, add_options in COMMANDS:
        command = commands.add_parser(name, help=words, epilog=EPILOG, formatter_class=_formatter)
        command.add_options = add_options
    commands.add_parser("_targets")
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


def _add_others(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("others", nargs="*", metavar="ARG", help="more of them, each on a tab of the dashboard")


def _add_screen_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--theme", metavar="NAME", help="colours of the dashboard")
    parser.add_argument("--ascii", action="store_true", help="use no character outside ASCII")
    parser.add_argument(
        "--mouse",
        action=argparse.BooleanOptionalAction,
        help="let the dashboard take the mouse (default: yes, but not over SSH)",
    )
    parser.add_argument("--read-only", action="store_true", help="no key that changes anything")


def _session(parser: argparse.ArgumentParser) -> None:
    _add_target(parser)
    _add_others(parser)
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--once", action="store_true", help="print everything as tables, once")
    ways.add_argument("--plain", action="store_true", help="print a line per change until ctrl-C")
    ways.add_argument("--json", action="store_true", help="print one snapshot as JSON (docs/snapshot.schema.json)")
    parser.add_argument("--beside", metavar="ROUND", help="open the dashboard with the read-out beside another one's")
    parser.add_argument(
        "--strict", action="store_true", help="exit 4 if a file cannot be believed (not on the dashboard)"
    )
    parser.add_argument("--hook", action="store_true", help="with --plain: run the hook of your settings on alerts")
    _add_screen_options(parser)


def _demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--root", type=Path, metavar="DIR", help="play it in this new or empty folder, and keep it")
    parser.add_argument("--fast", action="store_true", help="a smaller round, in under two minutes")
    parser.add_argument("--by-hand", action="store_true", help="nothing is launched: you do the night with your keys")
    parser.add_argument(
        "--sample", action="store_true", help="a made-up session instead, for which nothing is installed"
    )
    _add_screen_options(parser)


def _act(parser: argparse.ArgumentParser) -> None:
    from kevtui.act_command import add_arguments

    add_arguments(parser)


def _status(parser: argparse.ArgumentParser) -> None:
    _add_target(parser)
    parser.add_argument("--width", type=_columns, metavar="N", help="at most so many columns")
    parser.add_argument("--tmux", action="store_true", help="with tmux's own colours, for status-right")
    parser.add_argument("--ascii", action="store_true", help="use no character outside ASCII")
    parser.add_argument("--strict", action="store_true", help="exit 4 if a file cannot be believed")


def _report(parser: argparse.ArgumentParser) -> None:
    _add_target(parser)
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--html", type=Path, metavar="FILE", help="one self-contained page with plots; - prints it")
    forms.add_argument("--markdown", action="store_true", help="Markdown (the default)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="put the Markdown there instead of printing it")


def _doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--root", type=Path, metavar="DIR", help="the folder that holds runs/ and experiments/")
    parser.add_argument("--json", action="store_true", help="a list of checks as JSON")
    parser.add_argument("--ascii", action="store_true", help="use no character outside ASCII")


def _replay(parser: argparse.ArgumentParser) -> None:
    from kevtui.replay.command import add_arguments

    _add_target(parser)
    add_arguments(parser)
    _add_screen_options(parser)


def _record(parser: argparse.ArgumentParser) -> None:
    _add_target(parser)
    parser.add_argument("-o", "--out", type=Path, metavar="FILE", help="the file to write (default: by its name, here)")
    parser.add_argument("--json", action="store_true", help="say what was taken out and left out as JSON")


def _completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")


def _web(parser: argparse.ArgumentParser) -> None:
    _add_target(parser)
    _add_others(parser)
    parser.add_argument("--port", type=int, default=8000, metavar="N", help="on 127.0.0.1 (default: 8000)")
    parser.add_argument("--actions", action="store_true", help="with the keys that change something; read-only without")
    parser.add_argument("--theme", metavar="NAME", help="colours of the dashboard")


LOOKING: Final = frozenset(("session", "status", "report", "doctor", "record", "replay"))
"""Commands that read a session and may be left whatever they wait for."""

COMMANDS: Final = (
    ("session", "look at a session or a round", _session),
    ("demo", "watch a real round of tiny models on an emulator", _demo),
    ("act", "do what a key of the dashboard does, without a screen", _act),
    ("status", "a session in one line, for tmux or a prompt", _status),
    ("report", "a session as Markdown, or as one HTML page", _report),
    ("doctor", "what stands in the way of a night, and the fix", _doctor),
    ("record", "a night in one file to give away, with nothing secret in it", _record),
    ("replay", "a night again, at any moment and speed", _replay),
    ("completion", "completion for a shell, to be evaluated by it", _completion),
    ("web", "the dashboard in a browser on this machine", _web),
)
"""(name, help, what adds its options)."""


def _columns(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of columns")
    return int(text)
