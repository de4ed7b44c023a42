"""The dashboard in a browser: on loopback, for its own page only, read-only unless asked otherwise."""

import asyncio
import shlex
from argparse import Namespace
from pathlib import Path

import pytest

from kev.errors import UsageError
from kevtui import web
from kevtui.cli import build_parser

pytest.importorskip("textual_serve")

PORT = 8123


def asked(*words: str) -> Namespace:
    return build_parser().parse_args(["web", *words])


def test_the_process_of_a_browser_is_read_only_unless_actions_are_asked_for(tmp_path: Path) -> None:
    arguments = asked("a b;rm", "--root", str(tmp_path), "--poll", "--theme", "light")
    words = shlex.split(web.command(arguments))
    assert words[3:] == ["session", "a b;rm", "--root", str(tmp_path), "--theme", "light", "--poll", "--read-only"]
    assert "--read-only" not in web.command(asked("night", "--actions"))


def test_no_address_beyond_loopback_can_be_asked_for() -> None:
    assert {action.dest for action in build_parser()._subparsers._group_actions[0].choices["web"]._actions}.isdisjoint(
        {"host", "bind", "address"}
    )
    assert web.HOST == "127.0.0.1"
    with pytest.raises(UsageError, match="--port 0"):
        web.serve(asked("night", "--port", "0"))


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
    from aiohttp.test_utils import TestClient, TestServer

    async def answer() -> int:
        app = await web.make_server("true", PORT, "title")._make_app()
        # What it prints when it starts belongs to the command.
        app.on_startup.clear()
        async with TestClient(TestServer(app)) as client, client.get(path, headers=headers) as response:
            return response.status

    assert asyncio.run(answer()) == status
