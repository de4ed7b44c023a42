"""The stock `modal` command line and the emulator's own, each in a process of its own."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kev.emulator.__main__ import main
from kev.emulator.wire import pb

from .conftest import APP_FILE, Begin, Night, Pipe, modal_command


async def as_json(*arguments: str, cwd: Path) -> Any:
    return json.loads(await modal_command(*arguments, "--json", cwd=cwd))


async def test_deploy_and_run_work_with_nothing_but_the_printed_environment(begin: Begin, tmp_path: Path) -> None:
    night = await begin(deploy=False)
    assert "App deployed" in await modal_command("deploy", str(APP_FILE), cwd=tmp_path)
    assert "answer: hi" in await modal_command("run", f"{APP_FILE}::main", "--value", "hi", cwd=tmp_path)

    states = sorted(app.state for app in night.plane.store.apps.values())
    assert states == [pb.APP_STATE_DEPLOYED, pb.APP_STATE_STOPPED], "one deployed, one run and over"
    assert (await night.call("echo", 1))["value"] == 1


async def test_lists_of_containers_apps_and_calls(night: Night, pipe: Pipe, tmp_path: Path) -> None:
    call = await night.spawn("hold", pipe.path)
    await night.printed("holding")
    containers, apps, calls = await asyncio.gather(
        as_json("container", "list", cwd=tmp_path),
        as_json("app", "list", cwd=tmp_path),
        as_json("function", "calls", "night/hold", "--tail", "5", cwd=tmp_path),
    )

    [container] = containers
    assert container["app_id"] == night.app_id and container["app_name"] == "night"
    assert [(app["description"], app["state"], app["tasks"]) for app in apps] == [("night", "deployed", "1")]
    [row] = calls
    assert (row["function_call_id"], row["status"]) == (call.object_id, "running")
    assert row["container_id"] == container["container_id"]
    pipe.release()
    assert await call.get.aio(timeout=60) == "released"


async def test_logs_and_volumes(night: Night, tmp_path: Path) -> None:
    await night.call("speak", "first line", "second line")
    await night.printed("second line")
    (tmp_path / "up.txt").write_text("content")
    logs, _ = await asyncio.gather(
        modal_command("app", "logs", "night", "--tail", "10", cwd=tmp_path),
        modal_command("volume", "put", "night-runs", "up.txt", "/deep/up.txt", cwd=tmp_path),
    )
    listed, _ = await asyncio.gather(
        as_json("volume", "ls", "night-runs", "/deep", cwd=tmp_path),
        modal_command("volume", "get", "night-runs", "/deep/up.txt", "down.txt", cwd=tmp_path),
    )

    assert "first line\nsecond line" in logs
    assert [(entry["filename"], entry["type"], entry["size"]) for entry in listed] == [("deep/up.txt", "file", 7)]
    assert (tmp_path / "down.txt").read_text() == "content"


async def test_money_is_reported_as_simulated(night: Night, tmp_path: Path) -> None:
    await night.call("echo", 1)
    summary, rows = await asyncio.gather(
        as_json("billing", "summary", cwd=tmp_path),
        as_json("billing", "report", "--for", "today", "-r", "h", "-t", "*", cwd=tmp_path),
    )

    assert float(summary["metered_cost"]) > 0 and summary["billed_cost"] == "0"
    assert list(summary["adjustments"]) == ["simulated"]
    assert {row["object_id"] for row in rows} == {night.app_id}
    assert json.loads(rows[0]["tags"])["simulated"] == "true"


def test_up_refuses_in_one_line_what_cannot_be_meant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "plan.toml").write_text("[wishes]\n")
    for arguments in (["--host", "0.0.0.0"], ["--faults", str(tmp_path / "plan.toml")]):
        assert main(["up", "--root", str(tmp_path / "root"), *arguments]) == 2
        message = capsys.readouterr().err
        assert message.count("\n") == 1 and "Traceback" not in message


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_up_prints_the_environment_and_ends_in_order_at_a_signal(tmp_path: Path, number: int) -> None:
    command = [sys.executable, "-m", "kev.emulator", "up", "--root", str(tmp_path / "root"), "--print-env"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        names = [process.stdout.readline().removeprefix("export ").partition("=")[0] for _ in range(7)]
        process.send_signal(number)
        assert process.wait() == 0

    assert "MODAL_SERVER_URL" in names and "MODAL_TOKEN_SECRET" in names
    assert (tmp_path / "root").stat().st_mode & 0o077 == 0, "the root holds secrets"


def test_without_the_modal_package_one_line_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['modal'] = None\n"
        "import kev.emulator\n"
        "from kev.emulator.__main__ import main\n"
        f"sys.exit(main(['up', '--root', {str(tmp_path / 'root')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert done.stderr == "the emulator needs the modal package; install it with: pip install 'kevtui[modal]'\n"


def test_importing_the_package_loads_none_of_what_it_needs() -> None:
    code = "import sys, kev.emulator; print({'modal', 'grpclib', 'aiohttp', 'google.protobuf'} & set(sys.modules))"

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
