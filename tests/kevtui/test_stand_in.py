"""Whoever started kevtui gets its prompt back at once, also while the process that reads a dead volume cannot end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kevtui import cli, stand_in
from kevtui.observe import mounts
from kevtui.observe.mounts import shared_on_the_way

REPOSITORY = Path(__file__).parents[2]
DEADLINE_S = 30.0

Start = Callable[[str], "subprocess.Popen[str]"]

HANGS = """if True:
    import signal, sys, threading
    from kevtui import stand_in

    def work():
        # As a thread in an uninterruptible wait: nothing but the end of the machine's patience ends the process.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        threading.Thread(target=threading.Event().wait).start()
        print("ready", flush=True)
        sys.stdin.readline()
        print("bye")
        return 4

    sys.exit(stand_in.run(work))"""

ENDS = """if True:
    import os, signal, sys
    from kevtui import stand_in

    def work():
        print("ready", flush=True)
        sys.stdin.readline()
        {end}

    sys.exit(stand_in.run(work))"""


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def start_(code: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, start_new_session=True, env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        )  # fmt: skip
        started.append(process)
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        return process

    yield start_
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def is_there(group: int) -> bool:
    """Whether any process of `group` lives; one that only waits to be reaped does not."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, of = stat.read_text().rpartition(")")[2].split()[:3]
            if int(of) == group and state not in "ZX":
                return True
    return False


def until_gone(group: int) -> None:
    end = time.monotonic() + DEADLINE_S
    while is_there(group):
        assert time.monotonic() < end, "something is left running"
        time.sleep(0.02)


def test_the_status_and_all_that_was_printed_come_though_the_child_cannot_end(start: Start) -> None:
    process = start(HANGS)
    output, errors = process.communicate("go\n", timeout=DEADLINE_S)
    assert (process.returncode, output, errors) == (4, "bye\n", "")
    until_gone(process.pid)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_though_the_child_does_not_listen(start: Start, number: signal.Signals) -> None:
    process = start(HANGS.replace("SIGTERM, signal.SIG_IGN", f"{number.name}, signal.SIG_IGN"))
    process.send_signal(number)
    assert process.wait(DEADLINE_S) == 128 + number
    until_gone(process.pid)


def test_a_child_that_listens_ends_as_it_likes(start: Start) -> None:
    end = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9)); print('set', flush=True); signal.pause()"
    process = start(ENDS.format(end=end))
    process.stdin.write("go\n")
    process.stdin.flush()
    assert process.stdout.readline() == "set\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(DEADLINE_S) == 9


@pytest.mark.parametrize(
    ("end", "status"),
    [("return 3", 3), ("sys.exit(5)", 5), ("raise ZeroDivisionError", 1), ("os.kill(os.getpid(), 9)", 137),
     ("return 300", 300 & 0xFF)],
)  # fmt: skip
def test_however_the_work_ends_is_how_it_ended(start: Start, end: str, status: int) -> None:
    process = start(ENDS.format(end=end))
    _, errors = process.communicate("go\n", timeout=DEADLINE_S)
    assert process.returncode == status
    assert ("ZeroDivisionError" in errors) is ("ZeroDivisionError" in end)


def test_without_the_parent_the_child_ends_too(start: Start) -> None:
    process = start(ENDS.format(end="return 0"))
    process.kill()
    process.wait(DEADLINE_S)
    until_gone(process.pid)


def test_what_lies_on_the_way_is_found_without_entering_it(tmp_path: Path) -> None:
    far = tmp_path / "far"
    (far / "in").mkdir(parents=True)
    (far / "in" / "out").symlink_to(tmp_path)
    (tmp_path / "link").symlink_to("far/in")
    (tmp_path / "round").symlink_to("round")
    (tmp_path / "up").symlink_to(f"{far}/../far/in")
    table = f"/dev/sda / ext4 rw 0 0\nhost:/x {far} fuse.sshfs rw 0 0\n/dev/sdb {tmp_path}/near xfs rw 0 0\n"
    for way in (far, far / "runs" / "x", far / "in" / "out", tmp_path / "link" / "runs", tmp_path / "up"):
        assert shared_on_the_way(way, table) == "fuse.sshfs", way
    for way in (tmp_path, tmp_path / "near", tmp_path / "farther", tmp_path / "round"):
        assert shared_on_the_way(way, table) == "", way
    assert shared_on_the_way(far, "") == ""


@pytest.mark.parametrize(
    ("kind", "arguments", "apart"),
    [("nfs", ["session", ".", "--once"], True), ("nfs", ["status", "."], True), ("nfs", ["doctor"], True),
     ("nfs", ["record", "."], True), ("nfs", ["completion", "bash"], False),
     # What acts must not be left behind; where there are no locks nothing acts.
     ("nfs", ["act", "validate", "r1"], False), ("fuse.sshfs", ["act", "validate", "r1"], True)],
)  # fmt: skip
def test_what_only_looks_is_done_apart_where_another_machine_has_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, arguments: list[str], apart: bool
) -> None:
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli, "_told", lambda *_: 0)
    run: list[object] = []
    monkeypatch.setattr(stand_in, "run", lambda work: run.append(work) or 0)
    assert cli.main(arguments) == 0 and run == []
    monkeypatch.setattr(mounts, "read_table", lambda: f"host:/x {tmp_path} {kind} rw 0 0\n")
    assert cli.main(arguments) == 0
    assert len(run) == apart
