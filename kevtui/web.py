"""`kevtui web`: the dashboard in a browser on this machine, through textual-serve. Read-only unless asked otherwise."""

import argparse
import os
import secrets
import shlex
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kev.errors import KevError, UsageError
from kev.text import visible
from kevtui import exit_codes

if TYPE_CHECKING:
    from kevtui.web_server import OwnPageServer

HOST: Final = "127.0.0.1"
"""Where it listens, and nowhere else; from another machine, forward the port over SSH."""


def serve(arguments: argparse.Namespace) -> int:
    """Serve until ctrl-C. Raises KevError where it cannot, OutputLost and OutputEnded."""
    if not 1 <= arguments.port <= 65535:
        raise UsageError(f"--port {arguments.port}: should be from 1 to 65535")
    from kevtui.session_command import titles_of

    # What cannot be shown is said here, not in the browser.
    title = visible(", ".join(titles_of(names_of(arguments), root=arguments.root)))
    # Everyone who has an account here can reach the port, and may look; who may act, only the terminal says.
    secret = secrets.token_urlsafe(24) if arguments.actions else ""
    server = make_server(command(arguments), arguments.port, f"kevtui {title}", secret=secret)
    try:
        listener = socket.create_server((HOST, arguments.port))
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise KevError(f"{HOST}:{arguments.port}: {why}; --port takes another") from None
    with listener:
        _say(f"{server.address} shows {title}{'' if arguments.actions else ', read-only'}; ctrl-C ends it")
        server.run(listener)
    return exit_codes.FINE


def names_of(arguments: argparse.Namespace) -> list[str]:
    """Every session that was named."""
    return [arguments.session, *arguments.others]


def command(arguments: argparse.Namespace) -> str:
    """The command that each browser gets a process of."""
    words = [sys.executable, "-m", "kevtui", "session", *names_of(arguments)]
    for option in ("root", "leases", "theme"):
        value = getattr(arguments, option)
        if value is not None:
            words += [f"--{option}", str(value.absolute() if isinstance(value, Path) else value)]
    if arguments.poll:
        words.append("--poll")
    if not arguments.actions:
        words.append("--read-only")
    # No shell stays between server and dashboard: what ends the one's process ends the dashboard.
    return f"exec {shlex.join(words)}"


def make_server(command: str, port: int, title: str, *, secret: str = "") -> "OwnPageServer":
    """A server on loopback that answers its own page only. Raises UsageError where a package for it lacks."""
    try:
        from kevtui.web_server import OwnPageServer
    except ModuleNotFoundError as error:
        raise UsageError(f"{error.name} is not installed: pip install 'kevtui[web]'") from None
    return OwnPageServer(command, HOST, port, title, secret)


def _say(line: str) -> None:
    from kevtui.headless.output import Output

    Output(sys.stdout, os.environ).write(f"{line}\n")
