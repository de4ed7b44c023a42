"""Running a command of the engine: what it prints reaches any terminal or pipe, and a failure is one line."""

import argparse
import errno
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TextIO, cast

from kev.errors import KevError
from kev.text import visible

INTERRUPTED = 130

OF_THE_DISK = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM, errno.EFBIG))
"""What may be the matter with the place of a file that a command was right to write or read."""

Command = Callable[[argparse.Namespace], int]
"""Does what its options ask for, and returns its exit code."""

Entry = tuple[str, str, Callable[[argparse.ArgumentParser], None], Command]
"""A command of several: its name, what it does in words, what adds its options, and itself."""


def parser_of(program: str, words: str, commands: Sequence[Entry]) -> argparse.ArgumentParser:
    """The parser of a program that has `commands`."""
    parser = argparse.ArgumentParser(prog=program, description=words)
    children = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, does, add_arguments, command in commands:
        child = children.add_parser(name, help=does, description=does)
        add_arguments(child)
        child.set_defaults(run=command)
    return parser


def run_one_of(parser: argparse.ArgumentParser, arguments: list[str] | None) -> int:
    """Run the command that the command line names. Returns its exit code; a wrong command line exits with 2."""
    parsed = parser.parse_args(arguments)
    command: Command = parsed.run
    return run(lambda: command(parsed))


def run(command: Callable[[], int]) -> int:
    """The exit code of `command`, after everything it printed is written.

    An expected failure is one line on stderr and 1; so is output that cannot be written, since a script must not
    believe that it has it. A reader that stops reading, as `head` does, has what it wanted.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal without UTF-8 gets an escape for what it cannot show, and no traceback.
        sys.stdout.reconfigure(errors="backslashreplace")
    is_closed = sys.stdout is None
    if is_closed:
        # What the command does is done all the same, whichever way it prints.
        sys.stdout = cast(TextIO, _Nowhere())
    try:
        code = command()
        if is_closed:
            raise OSError("it is closed")
        sys.stdout.flush()
        return code
    except KevError as error:
        _complain(str(error))
        return 1
    except KeyboardInterrupt:
        _complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        return 0
    except OSError as error:
        if error.filename is not None:  # a file's own failure, and not one of the output
            if error.errno not in OF_THE_DISK:
                raise
            _complain(
                f"{error.filename}: cannot be written or read ({error.strerror}); put that right, and run it again"
            )
            return 1
        _discard_output()
        _complain(f"cannot write the output: {(error.strerror or str(error)).lower()}; what it holds is not whole")
        return 1


@contextmanager
def failures_of_files(then: str = "") -> Iterator[None]:
    """Make a file that cannot be read or written one line, with `then` for what to do. Raises KevError."""
    try:
        yield
    except BrokenPipeError:
        raise  # whoever read the output has what they wanted
    except OSError as error:
        raise KevError(f"{error.filename or 'disk'}: {error.strerror or error}{then}") from None


def say(line: str) -> None:
    """Print a line at once; whatever it has from files or remote answers is made safe."""
    print(visible(line), flush=True)


def say_aside(line: str) -> None:
    """As `say`, beside the output: with --json that is one object."""
    print(visible(line), file=sys.stderr, flush=True)


def operator() -> str:
    """Who runs the command and where, for the record."""
    import getpass
    import socket

    return f"{getpass.getuser()}@{socket.gethostname()}"


class _Nowhere(io.TextIOBase):
    """Takes any text, and keeps none."""

    def write(self, text: str) -> int:
        return len(text)


def _complain(line: str) -> None:
    with suppress(OSError, AttributeError):
        print(visible(line), file=sys.stderr, flush=True)


def _discard_output() -> None:
    """Point the output at nothing, so that the interpreter's own last flush finds no broken pipe."""
    with suppress(OSError, AttributeError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
