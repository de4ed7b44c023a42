"""`kevtui demo --sample`: a sample session grows in a process of its own while the dashboard, or the lines, watch it.

The viewer is never in the process that it watches. Closing the writer's input is what ends it, so it ends however the
viewer ends, and takes the temporary folder with it.
"""

import argparse
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from kev import files
from kev.errors import KevError, UsageError
from kevtui import exit_codes
from kevtui.headless.output import Output, complain
from kevtui.session_command import dashboard, no_screen, open_observer

if TYPE_CHECKING:
    from kevtui.observe.target import Target

SECONDS: Final = {"screen": 3.0, "lines": 1.0, "fast": 0.22}
"""Real seconds per second of the story, which lasts some 50: a person wants to look around, a script to go on."""

FIRST_FILES_S: Final = 20.0
"""More than a loaded machine needs until the sample session has registered its round."""


def demo(arguments: argparse.Namespace) -> int:
    """Play and watch the sample session; the exit status."""
    output = Output(sys.stdout, os.environ, ascii_only=arguments.ascii)
    why = no_screen(output)
    stretch = SECONDS["fast" if arguments.fast else "lines" if why else "screen"]
    with _folder(arguments.root) as root, Writer(root, stretch, temporary=arguments.root is None) as writer:
        writer.await_first_files(root / "runs" / "sample-state.json")
        from kevtui.observe.target import resolve

        arguments.leases = root / "volumes" / "kev-leases"
        arguments.poll = False
        # It is made up: no engine stands behind it that could be asked for anything.
        arguments.read_only = True
        target = resolve("r7", root=root, cwd=root)
        if not why:
            return dashboard(target, arguments)
        complain(f"{why}: printing changes until the sample session is over")
        return _lines(target, arguments, output, writer)


def _lines(target: "Target", arguments: argparse.Namespace, output: Output, writer: "Writer") -> int:
    from kev.clock import SystemClock
    from kevtui.headless.plain import follow

    observer = open_observer(target, arguments)
    try:
        follow(observer, output, SystemClock(), over=writer.is_over)
    finally:
        observer.close()
    return exit_codes.FINE


@contextmanager
def _folder(root: Path | None) -> Iterator[Path]:
    """The folder that the sample session grows in: `root`, which is kept, or a temporary one, which is not."""
    if root is None:
        try:
            temporary = Path(tempfile.mkdtemp(prefix="kevtui-sample-"))
        except OSError as error:
            raise KevError(f"no temporary folder can be made: {error.strerror}; name a new one with --root") from None
        try:
            yield temporary
        finally:
            files.remove_tree(temporary)
        return
    try:
        if any(root.iterdir()):
            raise UsageError(f"{root} is not empty; name a new folder, so that nothing mixes with the sample")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise UsageError(f"{root}: {error.strerror}; name a new or empty folder") from None
    yield root.absolute()


class Writer:
    """The process that plays the sample session into `root`; ended by the end of the `with` block."""

    def __init__(self, root: Path, stretch: float, *, temporary: bool) -> None:
        command = [sys.executable, "-m", "kevtui.sample", str(root), "--stretch", str(stretch), "--attended"]
        self._process = subprocess.Popen(
            command + (["--temporary"] if temporary else []),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Ctrl-C is for the viewer; the writer then sees its input close.
            start_new_session=True,
        )
        self._last_word = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._process.communicate(timeout=5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def is_over(self, timeout_s: float = 0.0) -> bool:
        """Whether the session is over, waiting up to `timeout_s` for it. Raises KevError if it broke off."""
        output, errors = self._process.stdout, self._process.stderr
        if output is None or errors is None or self._last_word:
            return True
        readable, _, _ = select.select([output], [], [], timeout_s)
        if not readable:
            return False
        self._last_word = output.readline().strip()
        if self._last_word != b"over":
            last = errors.read().decode(errors="replace").strip().splitlines() or ["no reason given"]
            raise KevError(f"the sample session broke off: {last[-1]}")
        return True

    def await_first_files(self, state: Path) -> None:
        """Return once `state` is there. Raises KevError if the session does not begin."""
        until = time.monotonic() + FIRST_FILES_S
        while not state.exists() and not self.is_over(0.02):
            if time.monotonic() > until:
                raise KevError(f"the sample session did not begin within {FIRST_FILES_S:.0f} s; try again later")
