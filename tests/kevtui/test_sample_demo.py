"""The sample session shows, ends, and leaves nothing behind, however its viewer ends."""

import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kev.clock import SystemClock
from kevtui import exit_codes

REPOSITORY = Path(__file__).parents[2]
DEMO = [sys.executable, "-m", "kevtui", "demo", "--sample", "--fast"]


def environment(temporary: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(REPOSITORY), "TMPDIR": str(temporary), "TERM": "xterm-256color"}


def until(true: Callable[[], bool], seconds: float = 30.0) -> None:
    clock = SystemClock()
    end = clock.monotonic() + seconds
    while not true():
        assert clock.monotonic() < end, "it never came"
        select.select([], [], [], 0.02)


def test_without_a_terminal_it_tells_the_story_and_ends(tmp_path: Path) -> None:
    temporary, kept = tmp_path / "temporary", tmp_path / "kept"
    temporary.mkdir()
    command = [*DEMO, "--root", str(kept)]
    done = subprocess.run(command, capture_output=True, env=environment(temporary), timeout=60, text=True)
    assert done.returncode == exit_codes.FINE, done.stderr
    for told in (
        "SAMPLE, made up",
        "; simulated",
        "trial r7-4b/trial-0: done",
        "alert past-timeout r7-27b/trial-0",
        "trial r7-9b/trial-0: timed out",
        "try 2 of 3",
        "read 4b-b/hard: failed",
        "read 4b-b/hard: landed",
        "candidate 4b: 4b-a (was none)",
        "the sample session is over",
    ):
        assert told in done.stdout, f"{told!r} was not told"
    assert " summary: " in done.stdout.splitlines()[-1]
    assert "committed is incomplete" not in done.stdout
    assert done.stderr.count("\n") == 1, "one line that says why there is no dashboard"
    assert list(temporary.iterdir()) == []

    # A folder that was named is kept, and never written into again.
    before = {path: path.stat().st_mtime_ns for path in kept.rglob("*")}
    assert kept / "runs" / "r7-readout" / "round7.json" in before
    again = subprocess.run(command, capture_output=True, env=environment(temporary), timeout=60, text=True)
    assert again.returncode == exit_codes.USAGE
    assert "not empty" in again.stderr
    assert {path: path.stat().st_mtime_ns for path in kept.rglob("*")} == before


@pytest.mark.parametrize(
    ("folder", "said"),
    [(["--root", "sample"], "the sample session broke off: OSError"), ([], "no temporary folder can be made")],
)
def test_a_disk_that_takes_nothing_is_one_line(tmp_path: Path, folder: list[str], said: str) -> None:
    no_file_may_grow = ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *DEMO, *folder]
    done = subprocess.run(
        no_file_may_grow, capture_output=True, env=environment(tmp_path), timeout=60, text=True, cwd=tmp_path
    )
    assert done.returncode == exit_codes.NOTHING
    assert done.stderr.splitlines()[-1].startswith(f"kevtui: {said}")
    assert "Traceback" not in done.stderr


@contextmanager
def on_a_terminal(temporary: Path, **changes: str) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """The demo on a pseudo-terminal, and the terminal's other end."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        DEMO, stdin=theirs, stdout=theirs, stderr=theirs, env={**environment(temporary), **changes},
        start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    try:
        yield process, ours
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def read_until(terminal: int, word: bytes, seconds: float = 30.0) -> bytes:
    clock = SystemClock()
    end = clock.monotonic() + seconds
    seen = b""
    while word not in seen:
        left = end - clock.monotonic()
        assert left > 0, f"{word!r} never came; the end of what did: {seen[-300:]!r}"
        if select.select([terminal], [], [], left)[0]:
            seen += os.read(terminal, 65536)
    return seen


def drain(terminal: int) -> Callable[[], bool]:
    def gone() -> bool:
        if select.select([terminal], [], [], 0)[0]:
            try:
                return not os.read(terminal, 65536)
            except OSError:
                return True
        return False

    return gone


def test_on_a_terminal_the_dashboard_opens_and_quitting_leaves_nothing(tmp_path: Path) -> None:
    with on_a_terminal(tmp_path) as (process, terminal):
        read_until(terminal, b"SAMPLE")
        os.write(terminal, b"q")
        gone = drain(terminal)
        until(lambda: gone() or process.poll() is not None)
        assert process.wait(timeout=20) == exit_codes.FINE
    assert list(tmp_path.iterdir()) == []


def test_a_viewer_that_is_killed_takes_the_writer_and_its_folder_along(tmp_path: Path) -> None:
    with on_a_terminal(tmp_path) as (process, terminal):
        read_until(terminal, b"SAMPLE")
        assert list(tmp_path.iterdir())
        process.send_signal(signal.SIGKILL)
        process.wait()
        until(lambda: not list(tmp_path.iterdir()))


def test_a_terminal_that_is_not_utf8_gets_ascii_without_asking(tmp_path: Path) -> None:
    with on_a_terminal(tmp_path, PYTHONIOENCODING="latin-1") as (_, terminal):
        seen = read_until(terminal, b"r7-27b")
    assert seen.isascii()
