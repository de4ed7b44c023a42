"""textual-serve's server, for its own page only.

Every page of any site that this machine's browser shows can reach a port on loopback, by its number or by a name that
its owner lets lead here. textual-serve asks nobody where a request comes from, so this does: the address bar must hold
this very address, a websocket must be opened by this very page, no other page may frame it, and it loads nothing from
elsewhere. It also ends what textual-serve leaves: the dashboards of pages that are open when the server goes, and
those that do not go when their page does.
"""

import asyncio
import hmac
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from aiohttp import WSCloseCode, web
from textual_serve.app_service import AppService
from textual_serve.server import Server

from kevtui.headless.output import complain
from kevtui.web_driver import GRACE_S

PATIENCE_S: Final = GRACE_S + 1
"""How long a dashboard may take to end once it is told to. It ends itself before that, if it can."""

CLOSING_S: Final = 1.0
"""How long a browser may take to hear that the server goes."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class OwnPageServer(Server):  # type: ignore[misc, unused-ignore]
    """A dashboard for each page that is opened at `address`.

    With a `secret`, only for browsers that came by an address that holds it.
    """

    def __init__(self, command: str, host: str, port: int, title: str, secret: str = "") -> None:
        super().__init__(command, host=host, port=port, title=title)
        self._secret = secret
        # A cookie is for one name, and the page's websocket is opened by the address.
        names = [host] if secret else [host, "localhost"]
        self._allowed = {f"{name}:{port}" for name in names} | (set(names) if port == 80 else set())
        self._open: set[web.WebSocketResponse] = set()
        self._serving: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"{self.public_url}/?key={self._secret}" if self._secret else f"{self.public_url}/"

    def run(self, listener: socket.socket) -> None:
        """Serve on `listener` until SIGINT or SIGTERM; no dashboard is left then."""
        logger = logging.getLogger("textual-serve")
        logger.addHandler(_Complaints())
        logger.propagate = False
        web.run_app(self._make_app(), sock=listener, shutdown_timeout=PATIENCE_S, print=None, access_log=None)

    # --------------------------------------------------------------------------------------------- who is answered

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._own_page_only)
        app.on_response_prepare.append(self._restrict)
        return app

    @web.middleware
    async def _own_page_only(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        origin = request.headers.get("Origin")
        if request.host not in self._allowed or (origin is not None and not self._is_own(origin)):
            raise web.HTTPForbidden(text=f"open {self.public_url} itself\n")
        if self._secret and not self._is_secret(request.cookies.get(self._cookie, "")):
            if not self._is_secret(request.query.get("key", "")):
                raise web.HTTPForbidden(text="open the address that kevtui web printed\n")
            inside = web.HTTPSeeOther("/")
            inside.set_cookie(self._cookie, self._secret, httponly=True, samesite="Strict")
            raise inside
        return await handler(request)

    def _is_own(self, origin: str) -> bool:
        scheme, _, host = origin.partition("://")
        return scheme == "http" and host in self._allowed

    def _is_secret(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(errors="replace"), self._secret.encode())

    @property
    def _cookie(self) -> str:
        return f"kevtui-{self.port}"  # ports share cookies

    async def _restrict(self, request: web.Request, response: web.StreamResponse) -> None:  # noqa: ARG002
        # The page has its own address in full, also where it was opened as localhost.
        own = f"'self' {self.public_url}"
        response.headers["Content-Security-Policy"] = (
            f"default-src 'none'; script-src {own} 'unsafe-inline'; style-src {own} 'unsafe-inline'; "
            f"img-src {own} data:; font-src {own} data:; connect-src {own} {self.public_url.replace('http', 'ws', 1)}; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        response.headers["X-Frame-Options"] = "DENY"
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"

    # ------------------------------------------------------------------------------------------------------ ending

    async def on_startup(self, app: web.Application) -> None:
        """Without textual-serve's banner: the command has said what is served."""

    async def on_shutdown(self, app: web.Application) -> None:  # noqa: ARG002
        """Tell every open page that the server goes, and wait for the end of its dashboard, and of those that are
        ending already: nobody else waits for a page whose connection is gone."""
        leaving = [asyncio.create_task(page.close(code=WSCloseCode.GOING_AWAY)) for page in self._open]
        if leaving:
            await asyncio.wait(leaving, timeout=CLOSING_S)
        if self._serving:
            await asyncio.wait(self._serving, timeout=PATIENCE_S + CLOSING_S)

    async def _process_messages(self, websocket: web.WebSocketResponse, app_service: AppService) -> None:
        serving = asyncio.create_task(self._serve(websocket, app_service))
        self._serving.add(serving)
        serving.add_done_callback(self._served)
        # Whoever takes this away, as with a connection that is lost, closes the page; the dashboard ends after that.
        await asyncio.shield(serving)

    def _served(self, serving: asyncio.Task[None]) -> None:
        self._serving.discard(serving)
        if not serving.cancelled():
            serving.exception()  # told by who waited for it, or of no page that is still there

    async def _serve(self, websocket: web.WebSocketResponse, app_service: AppService) -> None:
        self._open.add(websocket)
        watch = asyncio.create_task(_close_after(app_service, websocket))
        try:
            await super()._process_messages(websocket, app_service)
        finally:
            watch.cancel()
            self._open.discard(websocket)
            await _end(app_service)


async def _close_after(service: AppService, websocket: web.WebSocketResponse) -> None:
    """A page whose dashboard has ended, in whatever way, says so."""
    if service._task is not None:
        await asyncio.wait({service._task})
    await websocket.close()


async def _end(service: AppService) -> None:
    """End a dashboard, in order if it can."""
    process = service._process
    if process is None:
        return
    stopping, gone = asyncio.create_task(service.stop()), asyncio.create_task(process.wait())
    try:
        # Not under a timeout that cancels: what textual-serve waits with takes no notice of that.
        await asyncio.wait({gone}, timeout=PATIENCE_S)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
    await gone  # or the loop may close before it has heard of the end
    await asyncio.wait({stopping}, timeout=CLOSING_S)


class _Complaints(logging.Handler):
    """What textual-serve has to say, a line each."""

    def emit(self, record: logging.LogRecord) -> None:
        complain(record.getMessage())
