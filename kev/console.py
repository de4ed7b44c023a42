"""Running a command of the engine: what it prints reaches any terminal or pipe, and a failure is one line."""

import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress

from kev.errors import KevError
from kev.text import visible

INTERRUPTED = 130


def run(command: Callable[[], int]) -> int:
    """The exit code of `command`, after everything it printed is written.

    An expected failure is one line on stderr and 1; so is output that cannot be written, since a script must not
    believe that it has it. A reader that stops reading, as `head` does, has what it wanted.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal without UTF-8 gets an escape for what it cannot show, and no traceback.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = command()
        if sys.stdout is None:
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
        if error.filename is not None:
            raise  # a file's own failure has a name, and is not one of the output
        _discard_output()
        _complain(f"cannot write the output: {(error.strerror or str(error)).lower()}; what it holds is not whole")
        return 1


def _complain(line: str) -> None:
    with suppress(OSError, AttributeError):
        print(visible(line), file=sys.stderr, flush=True)


def _discard_output() -> None:
    """Point the output at nothing, so that the interpreter's own last flush finds no broken pipe."""
    with suppress(OSError, AttributeError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
