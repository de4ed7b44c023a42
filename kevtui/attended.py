"""What both demos need: a folder to play in, the process that plays there, and the lines where there is no screen.

The viewer is never in the process that it watches. Closing that one's input is what ends it, so it ends however the
viewer ends, and takes a temporary folder with it.
"""

import argparse
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from kev.errors import KevError, UsageError
from kevtui.headless.output import Output
from kevtui.session_command import open_observer

if TYPE_CHECKING:
    from kevtui.observe.target import Target


class Attended:
    """A process of `python -m module` that says what it does on its output, a line each; `what` is it in words.

    It is ended by the end of the `with` block, at most `leave_s` seconds later.
    """

    def __init__(self, module: str, arguments: Sequence[str], what: str, *, leave_s: float) -> None:
        self._what = what
        self._leave_s = leave_s
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments, "--attended"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Ctrl-C is for the viewer; the player then sees its input close.
            start_new_session=True,
        )
        self._unread = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._process.communicate(timeout=self._leave_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def read(self, timeout_s: float) -> list[bytes]:
        """The lines that it has said since the last look, after at most `timeout_s`. Raises KevError if it ended."""
        output, errors = self._process.stdout, self._process.stderr
        assert output is not None and errors is not None
        if not select.select([output], [], [], timeout_s)[0]:
            return []
        piece = os.read(output.fileno(), 65_536)
        if not piece:
            last = errors.read().decode(errors="replace").strip().splitlines() or ["no reason given"]
            raise KevError(f"the {self._what} broke off: {last[-1]}")
        *lines, self._unread = (self._unread + piece).split(b"\n")
        return lines


def folder(root: Path | None, *, prefix: str, what: str) -> Path:
    """`root`, new or empty, or a temporary folder where it is None. Raises UsageError or KevError."""
    if root is None:
        try:
            return Path(tempfile.mkdtemp(prefix=prefix)).resolve()
        except OSError as error:
            raise KevError(f"no temporary folder can be made: {error.strerror}; name a new one with --root") from None
    try:
        if any(root.iterdir()):
            raise UsageError(f"{root} is not empty; name a new folder, so that nothing mixes with the {what}")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise UsageError(f"{root}: {error.strerror}; name a new or empty folder") from None
    return root.resolve()


def print_lines(target: "Target", arguments: argparse.Namespace, output: Output, over: Callable[[], bool]) -> None:
    """A line per change until `over` says so. Raises OutputLost and OutputEnded."""
    from kev.clock import SystemClock
    from kevtui.headless.plain import follow

    observer = open_observer(target, arguments)
    try:
        follow(observer, output, SystemClock(), over=over)
    finally:
        observer.close()
