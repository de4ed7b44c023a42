"""A demo's processes are found by its folder, and ended whatever they are doing; nobody else's are."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kev.demo.processes import end_all, processes_of
from kev.emulator.process import is_running

WAITS = "import sys; sys.stdout.write('up\\n'); sys.stdout.flush(); sys.stdin.read()"


def start(*words: str) -> "subprocess.Popen[bytes]":
    """A process that waits, with `words` in its command line."""
    process = subprocess.Popen(
        [sys.executable, "-c", WAITS, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None and process.stdout.readline() == b"up\n"
    return process


@pytest.fixture
def started() -> Iterator[list["subprocess.Popen[bytes]"]]:
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def test_what_names_the_folder_is_ended_and_a_viewer_of_it_or_another_demo_is_not(
    tmp_path: Path, started: list["subprocess.Popen[bytes]"]
) -> None:
    ours, other = tmp_path / "ours", tmp_path / "other"
    watcher, viewer, stranger = (
        start("kev.rounds", "watch", str(ours / "work")),
        start("kevtui", "session", "--root", str(ours / "work")),
        start("kev.rounds", "watch", str(other / "work")),
    )
    started += [watcher, viewer, stranger]
    assert list(processes_of(ours)) == [watcher.pid]
    assert end_all(ours)
    assert watcher.wait() < 0
    assert viewer.poll() is None and stranger.poll() is None


def test_the_warden_ends_what_is_left_and_the_folder_once_its_demo_is_gone(
    tmp_path: Path, started: list["subprocess.Popen[bytes]"]
) -> None:
    root = tmp_path / "demo"
    (root / "work").mkdir(parents=True)
    left = start("kev.rounds", "watch", str(root / "work"))
    started.append(left)
    warden = subprocess.Popen(
        [sys.executable, "-m", "kev.demo.warden", str(root), "--temporary"], stdin=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    assert is_running(left.pid)
    warden.communicate()  # its input ends, as it does when the demo is killed
    assert left.wait() < 0 and not root.exists()
