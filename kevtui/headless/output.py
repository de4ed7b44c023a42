"""Where headless text goes: what the stream can hold, and what to say when it cannot take it."""

import errno
import os
import select
import sys
from collections.abc import Mapping
from typing import Final, TextIO

from kev.text import visible

UNKNOWN_WIDTH: Final = 80


class OutputEnded(Exception):
    """The reader of the pipe went away: not an error, it has what it wanted."""


class OutputLost(Exception):
    """The output could not be written; `str()` of it is the line to show."""


class Output:
    """A text stream that is flushed at every write and never raises anything but the two exceptions above."""

    def __init__(self, stream: TextIO | None, environment: Mapping[str, str], *, ascii_only: bool = False) -> None:
        """`stream` is None where the process was started with a closed output, as Python itself has it."""
        self._stream = stream
        self.is_terminal = stream is not None and _is_terminal(stream)
        encoding = (getattr(stream, "encoding", None) or "ascii").lower().replace("_", "-")
        self.ascii_only = ascii_only or not encoding.startswith("utf")
        self._environment = environment
        # An escape sequence is noise in a file, and a dumb terminal prints it.
        self.styled = (
            self.is_terminal
            and environment.get("TERM", "dumb") not in ("", "dumb", "unknown")
            and not environment.get("NO_COLOR")
        )

    @property
    def width(self) -> int | None:
        """Columns of the terminal; None where lines may be as long as they are, so that grep finds them whole."""
        return columns(self._stream, self._environment) if self._stream is not None and self.is_terminal else None

    def write(self, text: str) -> None:
        """Write all of `text` and flush. Raises OutputEnded or OutputLost."""
        if self._stream is None:
            raise OutputLost("cannot write the output: it is closed; give it a file, a pipe or a terminal")
        if self.ascii_only:
            from kevtui.glyphs import to_ascii

            text = to_ascii(text)
        try:
            self._stream.write(text)
            self._stream.flush()
        except BrokenPipeError:
            _discard(self._stream)
            raise OutputEnded from None
        except OSError as error:
            _discard(self._stream)
            raise OutputLost(f"cannot write the output: {_reason(error)}; what it holds is not whole") from None

    def look_for_reader(self) -> None:
        """Raise OutputEnded if this is a pipe that nobody reads any more, without writing to find out."""
        if self._stream is None or self.is_terminal:
            return
        try:
            poll = select.poll()
            poll.register(self._stream.fileno(), 0)  # no event asked for: an error is told of anyway
            gone = any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))
        except (OSError, ValueError):
            return
        if gone:
            _discard(self._stream)
            raise OutputEnded


def columns(stream: TextIO, environment: Mapping[str, str]) -> int:
    """Columns of the terminal that `stream` is, or a usual number; shutil knows too, but takes 4 ms to load."""
    told = environment.get("COLUMNS", "")
    if told.isdecimal() and int(told) > 0:
        return int(told)
    try:
        return os.get_terminal_size(stream.fileno()).columns or UNKNOWN_WIDTH
    except (OSError, ValueError):
        return UNKNOWN_WIDTH


def complain(line: str) -> None:
    """Say `line` on the error stream, if there is one that takes it."""
    # print() to a closed error stream would go to the output instead.
    if sys.stderr is not None:
        try:
            print(f"kevtui: {visible(line)}", file=sys.stderr, flush=True)
        except OSError:
            _discard(sys.stderr)


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:
        return False


def _reason(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return "no space left on the device"
    return (error.strerror or type(error).__name__).lower()


def _discard(stream: TextIO) -> None:
    # What is still in the buffer would be tried again, and complained about, when the interpreter ends.
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
