"""`kevtui demo`: a real round of tiny models on an emulator of this machine, and the dashboard over it.

The round is played by `python -m kev.demo`, a process of its own that holds the emulator and the watcher. Closing its
input is what ends it, so it ends however the viewer ends; and its own warden ends what it would leave if it is killed.
"""

import argparse
import json
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

from kev.errors import KevError, UsageError
from kevtui import exit_codes
from kevtui.headless.output import Output, complain
from kevtui.session_command import dashboard, no_screen, open_observer

if TYPE_CHECKING:
    from kevtui.observe.target import Target

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
    complain("preparing: an emulator, a registered round, a session of simulated money")
    with _folder(arguments.root) as root, Player(root, fast=arguments.fast, temporary=arguments.root is None) as player:
        # The actions of the dashboard must meet the emulator, and not a provider that this environment names.
        os.environ.update(player.await_environment())
        from kevtui.observe.target import resolve

        work = root / "work"
        arguments.leases, arguments.poll = None, False
        target = resolve(ROUND, root=work, cwd=work)
        if why:
            complain(f"{why}: printing changes until there is a candidate")
            return _lines(target, arguments, output, player)
        status = dashboard(target, arguments)
    if arguments.root is not None:
        complain(f"{root} is kept; `kevtui session {ROUND} --root {root / 'work'}` shows it again")
    return status


def _lines(target: "Target", arguments: argparse.Namespace, output: Output, player: "Player") -> int:
    from kev.clock import SystemClock
    from kevtui.headless.plain import follow

    observer = open_observer(target, arguments)
    try:
        follow(observer, output, SystemClock(), over=player.is_over)
    finally:
        observer.close()
    if player.confirm is None:
        return exit_codes.NOTHING
    output.write(f"what a person would do next: {player.confirm}\n")
    return exit_codes.FINE


@contextmanager
def _folder(root: Path | None) -> Iterator[Path]:
    """The folder of the demo: `root`, which is kept, or a temporary one, which is removed by who plays there."""
    if root is None:
        try:
            yield Path(tempfile.mkdtemp(prefix="kev-demo-")).resolve()
        except OSError as error:
            raise KevError(f"no temporary folder can be made: {error.strerror}; name a new one with --root") from None
        return
    try:
        if any(root.iterdir()):
            raise UsageError(f"{root} is not empty; name a new folder, so that nothing mixes with the demo")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise UsageError(f"{root}: {error.strerror}; name a new or empty folder") from None
    yield root.resolve()


class Player:
    """The process that plays the demo in `root`; ended by the end of the `with` block."""

    def __init__(self, root: Path, *, fast: bool, temporary: bool) -> None:
        command = [sys.executable, "-m", "kev.demo", str(root), "--attended"]
        command += ["--fast"] if fast else []
        command += ["--temporary"] if temporary else []
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Ctrl-C is for the viewer; the player then sees its input close.
            start_new_session=True,
        )
        self._unread = b""
        self._environment: dict[str, str] = {}
        self.confirm: str | None = None
        """The command that decides the stage, once there is something to decide."""
        self._over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._process.communicate(timeout=LEAVE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()  # its warden does the rest
            self._process.communicate()

    def is_over(self, timeout_s: float = 0.0) -> bool:
        """Whether a person is wanted now, waiting up to `timeout_s` for it. Raises KevError if the demo broke off."""
        if not self._over:
            self._read(timeout_s)
        return self._over

    def await_environment(self) -> dict[str, str]:
        """The environment in which the emulator is met, once the round is registered. Raises KevError."""
        until = time.monotonic() + FIRST_FILES_S
        while not self._environment and not self._over:
            if time.monotonic() > until:
                raise KevError(f"the demo did not begin within {FIRST_FILES_S:.0f} s; try again later")
            self._read(0.1)
        return self._environment

    def _read(self, timeout_s: float) -> None:
        output, errors = self._process.stdout, self._process.stderr
        assert output is not None and errors is not None
        if not select.select([output], [], [], timeout_s)[0]:
            return
        piece = os.read(output.fileno(), 65_536)
        if not piece:
            last = errors.read().decode(errors="replace").strip().splitlines() or ["no reason given"]
            raise KevError(f"the demo broke off: {last[-1]}")
        *lines, self._unread = (self._unread + piece).split(b"\n")
        for line in lines:
            said = json.loads(line)
            if said["phase"] == "environment":
                self._environment = json.loads(said["text"])
            elif said["phase"] == "confirm":
                self.confirm, self._over = said["text"], True
            elif said["phase"] == "over":
                self._over = True
