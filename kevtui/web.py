"""`kevtui web`: the dashboard in a browser on this machine, through textual-serve. Read-only unless asked otherwise.

It listens on 127.0.0.1 and nowhere else; from another machine, forward the port over SSH. Every page of any site that
this machine's browser shows can reach a port on loopback, so the server answers only those whose address bar holds
this very address: requests with another `Host`, and websockets that another page opens, are refused.
"""

import argparse
import shlex
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kev.errors import KevError, UsageError
from kevtui import exit_codes

if TYPE_CHECKING:
    from aiohttp import web

HOST: Final = "127.0.0.1"
NAMES: Final = (HOST, "localhost")

Handler = Callable[["web.Request"], Awaitable["web.StreamResponse"]]


def serve(arguments: argparse.Namespace) -> int:
    """Serve until ctrl-C. Raises KevError where it cannot."""
    if not 1 <= arguments.port <= 65535:
        raise UsageError(f"--port {arguments.port}: should be from 1 to 65535")
    from kevtui.observe.target import resolve

    # What cannot be shown is said here, not in the browser.
    target = resolve(arguments.session, root=arguments.root, cwd=Path.cwd())
    try:
        server = make_server(command(arguments), arguments.port, f"kevtui {target.title}")
    except ModuleNotFoundError as error:
        raise UsageError(f"{error.name} is not installed: pip install 'kevtui[web]'") from None
    try:
        server.serve()
    except OSError as error:
        raise KevError(f"{HOST}:{arguments.port}: {error.strerror or error}; --port takes another") from None
    return exit_codes.FINE


def command(arguments: argparse.Namespace) -> str:
    """The command that each browser gets a process of."""
    words = [sys.executable, "-m", "kevtui", "session", arguments.session]
    for option in ("root", "leases", "theme"):
        value = getattr(arguments, option)
        if value is not None:
            words += [f"--{option}", str(value.absolute() if isinstance(value, Path) else value)]
    if arguments.poll:
        words.append("--poll")
    if not arguments.actions:
        words.append("--read-only")
    return shlex.join(words)


def make_server(command: str, port: int, title: str) -> Any:
    """A server of textual-serve on loopback that answers its own page only. Raises ModuleNotFoundError."""
    from aiohttp import web
    from textual_serve.server import Server

    allowed = {f"{name}:{port}" for name in NAMES} | (set(NAMES) if port == 80 else set())

    @web.middleware
    async def own_page_only(request: "web.Request", handler: Handler) -> "web.StreamResponse":
        origin = request.headers.get("Origin")
        if request.host not in allowed or (origin is not None and origin.partition("://")[2] not in allowed):
            raise web.HTTPForbidden(text=f"open http://{HOST}:{port} itself\n")
        return await handler(request)

    class OwnPageServer(Server):  # type: ignore[misc, unused-ignore]
        """textual-serve's server with the check in front."""

        async def _make_app(self) -> "web.Application":
            app: web.Application = await super()._make_app()
            app.middlewares.append(own_page_only)
            return app

    return OwnPageServer(command, host=HOST, port=port, title=title)
