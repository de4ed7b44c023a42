"""`kevtui demo --sample`: a sample session grows in a process of its own while the screen, or the lines, watch it."""

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Final

from kev import files
from kev.errors import KevError
from kevtui import exit_codes
from kevtui.attended import Attended, folder, print_lines
from kevtui.headless.output import Output, complain
from kevtui.session_command import dashboard, no_screen

SECONDS: Final = {"screen": 3.0, "lines": 1.0, "fast": 0.22}
"""Real seconds per second of the story, which lasts some 50: a person wants to look around, a script to go on."""

FIRST_FILES_S: Final = 20.0
"""More than a loaded machine needs until the sample session has registered its round."""

LEAVE_S: Final = 5.0


def demo(arguments: argparse.Namespace) -> int:
    """Play and watch the sample session; the exit status."""
    output = Output(sys.stdout, os.environ, ascii_only=arguments.ascii)
    why = no_screen(output)
    stretch = SECONDS["fast" if arguments.fast else "lines" if why else "screen"]
    root = folder(arguments.root, prefix="kevtui-sample-", what="sample")
    try:
        with Writer(root, stretch, temporary=arguments.root is None) as writer:
            writer.await_first_files(root / "runs" / "sample-state.json")
            return _watch(root, arguments, output, writer, why)
    finally:
        if arguments.root is None:
            files.remove_tree(root)


def _watch(root: Path, arguments: argparse.Namespace, output: Output, writer: "Writer", why: str) -> int:
    """The dashboard; or, where `why` says that there can be none, the lines."""
    from kevtui.observe.target import resolve

    arguments.leases = root / "volumes" / "kev-leases"
    arguments.poll = False
    # It is made up: no engine stands behind it that could be asked for anything.
    arguments.read_only = True
    target = resolve("r7", root=root, cwd=root)
    if not why:
        return dashboard(target, arguments)
    complain(f"{why}: printing changes until the sample session is over")
    print_lines(target, arguments, output, writer.is_over)
    return exit_codes.FINE


class Writer(Attended):
    """The process that plays the sample session into `root`."""

    def __init__(self, root: Path, stretch: float, *, temporary: bool) -> None:
        options = [str(root), "--stretch", str(stretch), *(["--temporary"] if temporary else [])]
        super().__init__("kevtui.sample", options, "sample session", leave_s=LEAVE_S)
        self._over = False

    def is_over(self, timeout_s: float = 0.0) -> bool:
        """Whether the session is over, waiting up to `timeout_s` for it. Raises KevError if it broke off."""
        if not self._over:
            self._over = b"over" in self.read(timeout_s)
        return self._over

    def await_first_files(self, state: Path) -> None:
        """Return once `state` is there. Raises KevError if the session does not begin."""
        until = time.monotonic() + FIRST_FILES_S
        while not state.exists() and not self.is_over(0.02):
            if time.monotonic() > until:
                raise KevError(f"the sample session did not begin within {FIRST_FILES_S:.0f} s; try again later")
