"""The dashboard in a browser: on loopback, for its own page only, read-only unless asked otherwise."""

import asyncio
import contextlib
import errno
import os
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
from argparse import Namespace
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kev.errors import KevError, NotFound, UsageError
from kevtui import exit_codes, web
from kevtui.cli import build_parser

pytest.importorskip("textual_serve")

if TYPE_CHECKING:
    from aiohttp.test_utils import TestClient

PORT = 8123
OWN = {"Host": f"127.0.0.1:{PORT}"}


def asked(*words: str) -> Namespace:
    return build_parser().parse_args(["web", *words])


def words_of(*words: str) -> list[str]:
    return shlex.split(web.command(asked(*words)))[4:]


def test_the_process_of_a_browser_is_read_only_unless_actions_are_asked_for(tmp_path: Path) -> None:
    options = ["--root", str(tmp_path), "--theme", "light", "--poll"]
    assert words_of("a b;rm", *options) == ["session", "a b;rm", *options, "--read-only"]
    assert "--read-only" not in words_of("night", "--actions")


def test_several_sessions_are_tabs_as_without_a_browser(tmp_path: Path) -> None:
    words = words_of("r31", "r27", "--root", str(tmp_path), "night3")
    assert words == ["session", "r31", "r27", "night3", "--root", str(tmp_path), "--read-only"]
    again = build_parser().parse_args(words)
    assert (again.session, again.others, again.read_only) == ("r31", ["r27", "night3"], True)


def test_no_address_beyond_loopback_can_be_asked_for() -> None:
    assert {action.dest for action in build_parser()._subparsers._group_actions[0].choices["web"]._actions}.isdisjoint(
        {"host", "bind", "address"}
    )
    assert web.HOST == "127.0.0.1"
    with pytest.raises(UsageError, match="--port 0"):
        web.serve(asked("night", "--port", "0"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "runs" / "20260301T120000_agent" / "output").mkdir(parents=True)
    for name in ("night-1", "night-2"):
        (tmp_path / "runs" / f"{name}-state.json").write_text('{"authorization_usd": "10"}')
    return tmp_path


@pytest.mark.parametrize(
    "names", [["night-3"], ["night-1", "night-3"], ["night-1", "runs/20260301T120000_agent"], [""]]
)
def test_what_a_dashboard_could_not_show_is_refused_in_the_same_words(root: Path, names: list[str]) -> None:
    from kevtui.session_command import targets_of

    with pytest.raises((NotFound, UsageError)) as without:
        targets_of(names, root=root)
    with pytest.raises((NotFound, UsageError)) as within:
        web.serve(asked(*names, "--root", str(root)))
    assert str(within.value) == str(without.value)


def test_a_run_of_the_bench_and_a_recorded_night_are_shown_alone(root: Path) -> None:
    from kevtui.session_command import titles_of

    (root / "night.kevtui.zip").write_bytes(b"PK\x03\x04")
    assert titles_of(["runs/20260301T120000_agent"], root=root) == ["runs/20260301T120000_agent"]
    assert titles_of(["night.kevtui.zip"], root=root) == ["night.kevtui.zip"]
    assert titles_of(["night-1", "night-2", "night-1"], root=root) == ["night-1", "night-2"]


def test_a_port_that_is_taken_is_one_line_that_names_the_option(root: Path) -> None:
    with socket.create_server((web.HOST, 0)) as taken, pytest.raises(KevError) as told:
        port = taken.getsockname()[1]
        web.serve(asked("night-1", "--root", str(root), "--port", str(port)))
    assert str(told.value) == f"{web.HOST}:{port}: {os.strerror(errno.EADDRINUSE)}; --port takes another"


@asynccontextmanager
async def served(command: str = "exec true", *, secret: str = "") -> AsyncIterator["TestClient[Any, Any]"]:
    from aiohttp.test_utils import TestClient, TestServer

    app = await web.make_server(command, PORT, "title", secret=secret)._make_app()
    async with TestClient(TestServer(app)) as client:
        yield client


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/", {"Host": f"127.0.0.1:{PORT}"}, 200),
        ("/", {"Host": f"localhost:{PORT}"}, 200),
        ("/", {"Host": "evil.example"}, 403),
        ("/", {"Host": f"evil.example:{PORT}"}, 403),
        ("/ws", {"Host": f"127.0.0.1:{PORT}", "Origin": "http://evil.example"}, 403),
        ("/ws", {"Host": f"127.0.0.1:{PORT}", "Origin": f"http://127.0.0.1.evil.example:{PORT}"}, 403),
        ("/ws", {"Host": f"127.0.0.1:{PORT}", "Origin": "null"}, 403),
        ("/static/js/textual.js", {"Host": "evil.example"}, 403),
    ],
)
def test_only_its_own_page_is_answered(path: str, headers: dict[str, str], status: int) -> None:
    async def answer() -> int:
        async with served() as client, client.get(path, headers=headers) as response:
            return response.status

    assert asyncio.run(answer()) == status


@pytest.mark.parametrize("path", ["/", "/static/css/xterm.css", "/nothing"])
async def test_no_page_may_frame_it_and_it_loads_nothing_from_elsewhere(path: str) -> None:
    async with served() as client, client.get(path, headers=OWN) as response:
        policy = response.headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in policy and response.headers["X-Frame-Options"] == "DENY"
        assert set(re.findall(r"\w+://\S+?(?=[; ])", policy)) == {
            f"{kind}://127.0.0.1:{PORT}" for kind in ("http", "ws")
        }


async def test_who_may_act_came_by_the_address_that_holds_the_secret() -> None:
    async def get(path: str, **headers: str) -> Any:
        async with client.get(path, headers=OWN | headers, allow_redirects=False) as response:
            return response

    async with served(secret="tell-nobody") as client:
        for path in ("/", "/ws", "/static/js/textual.js", "/?key=", "/?key=guess", "/?key=%ff"):
            assert (await get(path)).status == 403
        assert (await get("/", Cookie=f"kevtui-{PORT}=guess")).status == 403
        came = await get("/?key=tell-nobody")
        assert (came.status, came.headers["Location"]) == (303, "/")
        cookie = came.cookies[f"kevtui-{PORT}"]
        assert cookie["httponly"] and cookie["samesite"] == "Strict"
        assert (await get("/", Cookie=f"kevtui-{PORT}=tell-nobody")).status == 200


@contextlib.contextmanager
def serving(root: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """`kevtui web` over two sessions, and its port."""
    with socket.create_server((web.HOST, 0)) as free:
        port = free.getsockname()[1]
    words = ["web", "night-1", "night-2", "--root", str(root), "--port", str(port)]
    server = subprocess.Popen([sys.executable, "-m", "kevtui", *words], stdout=subprocess.PIPE, text=True)
    with server:
        try:
            assert server.stdout is not None
            assert f"http://127.0.0.1:{port}/ shows night-1, night-2, read-only" in server.stdout.readline()
            yield server, port
        finally:
            server.kill()


async def shown(page: Any, words: bytes) -> None:
    """Read what a page is sent until it holds `words`."""
    seen = b""
    while words not in seen:
        message = await page.receive(timeout=60)
        assert isinstance(message.data, bytes), seen
        seen += message.data


def dashboards_of(server: int) -> list[int]:
    """A descriptor of each process that a server has started, which can be waited for when the server is gone."""
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    return [os.pidfd_open(int(child)) for child in children]


def has_ended(dashboard: int) -> bool:
    waiting = select.poll()
    waiting.register(dashboard, select.POLLIN)
    ended = bool(waiting.poll(60_000))
    os.close(dashboard)
    return ended


watches_processes = pytest.mark.skipif(
    not hasattr(os, "pidfd_open") or not Path("/proc/self/task").is_dir(), reason="Linux tells of others' children"
)


@watches_processes
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_no_dashboard_outlives_its_page_or_its_server(root: Path, number: int) -> None:
    from aiohttp import ClientSession

    with serving(root) as (server, port):
        origin = f"http://127.0.0.1:{port}"
        async with ClientSession() as session:
            async with session.ws_connect(f"{origin}/ws?width=100&height=30", origin=origin) as page:
                await shown(page, b"night-2")
                (first,) = dashboards_of(server.pid)
            assert await asyncio.to_thread(has_ended, first)
            async with session.ws_connect(f"{origin}/ws", origin=origin) as page:
                await shown(page, b"night-2")
                (second,) = dashboards_of(server.pid)
                server.send_signal(number)
                assert await asyncio.to_thread(has_ended, second)
                assert server.wait(60) == (-number if number == signal.SIGKILL else exit_codes.FINE)


async def test_a_page_whose_dashboard_could_not_start_says_that_it_is_over() -> None:
    async with served("exec false") as client, client.ws_connect("/ws", headers=OWN) as page:
        assert (await page.receive(timeout=60)).type.name == "CLOSE"


@watches_processes
async def test_a_dashboard_that_does_not_go_with_its_page_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    from kevtui import web_server

    monkeypatch.setattr(web_server, "PATIENCE_S", 0.1)
    deaf = r"import os, signal; os.write(1, b'__GANGLION__\nD\0\0\0\4deaf'); signal.pause()"
    before = len(dashboards_of(os.getpid()))
    async with served(shlex.join(["exec", sys.executable, "-c", deaf])) as client:
        async with client.ws_connect("/ws", headers=OWN) as page:
            await shown(page, b"deaf")
            dashboard = dashboards_of(os.getpid())[before]
        assert await asyncio.to_thread(has_ended, dashboard)
