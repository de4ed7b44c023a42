"""`kevtui demo`: a real round of tiny models on an emulator of this machine, and the dashboard over it.

The round is played by `python -m kev.demo`, a process of its own that holds the emulator and the watcher. Closing its
input is what ends it, so it ends however the viewer ends; and its own warden ends what it would leave if it is killed.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Final

from kev.errors import KevError, UsageError
from kevtui import exit_codes
from kevtui.attended import Attended, folder, print_lines
from kevtui.headless.output import Output, complain
from kevtui.session_command import dashboard, no_screen

ROUND: Final = "r40"
FIRST_FILES_S: Final = 90.0
"""More than a loaded machine needs until the round is registered and the emulator answers."""

LEAVE_S: Final = 30.0
"""Processes are killed in a moment; a folder of some hundred megabytes takes longer to remove."""


def demo(arguments: argparse.Namespace) -> int:
    """Play and watch the demo; the exit status."""
    if arguments.sample:
        from kevtui.sample_demo import demo as sample

        return sample(arguments)
    output = Output(sys.stdout, os.environ, ascii_only=arguments.ascii)
    why = no_screen(output)
    if why and arguments.by_hand:
        raise UsageError(f"{why}, and --by-hand leaves everything to keys; leave one of them out")
    complain("preparing: an emulator, a registered round, a session of simulated money")
    # Hidden, as what is not kept: from a folder in plain sight no finished checkpoint is ever removed, not even these.
    root = folder(arguments.root, prefix=".kev-demo-", what="demo")
    options = [*(["--fast"] if arguments.fast else []), *(["--by-hand"] if arguments.by_hand else [])]
    with Player(root, options, temporary=arguments.root is None) as player:
        # The actions of the dashboard must meet the emulator, and not a provider that this environment names.
        os.environ.update(player.await_environment())
        from kevtui.observe.target import resolve

        work = root / "work"
        arguments.leases, arguments.poll = None, False
        target = resolve(ROUND, root=work, cwd=work)
        if why:
            complain(f"{why}: printing changes until there is a candidate")
            print_lines(target, arguments, output, player.is_over)
            if player.confirm is None:
                return exit_codes.NOTHING
            output.write(f"what a person would do next: {player.confirm}\n")
            return exit_codes.FINE
        status = dashboard(target, arguments)
    if arguments.root is not None:
        complain(f"{root} is kept; `kevtui session {ROUND} --root {root / 'work'}` shows it again")
    return status


class Player(Attended):
    """The process that plays the demo in `root`."""

    def __init__(self, root: Path, options: list[str], *, temporary: bool) -> None:
        arguments = [str(root), *options, *(["--temporary"] if temporary else [])]
        super().__init__("kev.demo", arguments, "demo", leave_s=LEAVE_S)
        self._environment: dict[str, str] = {}
        self.confirm: str | None = None
        """The command that decides the stage, once there is something to decide."""
        self._over = False

    def is_over(self, timeout_s: float = 0.0) -> bool:
        """Whether a person is wanted now, waiting up to `timeout_s` for it. Raises KevError if the demo broke off."""
        if not self._over:
            self._take(timeout_s)
        return self._over

    def await_environment(self) -> dict[str, str]:
        """The environment in which the emulator is met, once the round is registered. Raises KevError."""
        until = time.monotonic() + FIRST_FILES_S
        while not self._environment and not self._over:
            if time.monotonic() > until:
                raise KevError(f"the demo did not begin within {FIRST_FILES_S:.0f} s; try again later")
            self._take(0.1)
        return self._environment

    def _take(self, timeout_s: float) -> None:
        for line in self.read(timeout_s):
            said = json.loads(line)
            if said["phase"] == "environment":
                self._environment = json.loads(said["text"])
            elif said["phase"] == "confirm":
                self.confirm, self._over = said["text"], True
            elif said["phase"] == "over":
                self._over = True
