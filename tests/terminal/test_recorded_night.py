"""A recorded night in a real terminal: its keys, its costs, and that nothing is written by looking at it."""

import os
import re
import signal
import sys
from pathlib import Path

import pytest
from pseudo_terminal import PseudoTerminal
from session_files import NAME, SessionFiles

from kevtui.cli import main

REPOSITORY = Path(__file__).parent.parent.parent

WRITES = re.compile(
    r"O_WRONLY|O_RDWR|O_CREAT|\b(?:creat|mkdir|mkdirat|rename\w*|unlink\w*|link\w*|symlink\w*|rmdir|chmod|fchmodat"
    r"|truncate|utimensat|mknod\w*|flock|connect)\(|F_SETLK|F_OFD_SETLK"
)
CALLS = "trace=open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,link,linkat,symlink,symlinkat,"
CALLS += "rmdir,chmod,fchmodat,truncate,utimensat,mknod,mknodat,flock,fcntl,connect"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    session = SessionFiles(tmp_path / "session").write()
    place = tmp_path / "night.zip"
    assert main(["record", NAME, "--root", str(session.root), "-o", str(place)]) == 0
    (tmp_path / "session").rename(tmp_path / "elsewhere")
    return place


def opened(bundle: Path, *prefix: str) -> PseudoTerminal:
    argv = [*prefix, sys.executable, "-m", "kevtui", "session", str(bundle), "--read-only", "--no-mouse"]
    return PseudoTerminal(argv, env={"PYTHONPATH": str(REPOSITORY)}, cwd=bundle.parent)


def test_a_recorded_night_stands_still_for_nothing_and_moves_by_its_keys(bundle: Path) -> None:
    with opened(bundle) as terminal:
        terminal.wait_for("REPLAY")
        terminal.wait_for("study-001/1")
        terminal.wait_until_quiet(1.0)
        seen = terminal.observe(6)
        assert seen.written == 0
        assert seen.cpu_percent < 1.0
        at_the_end = terminal.text.splitlines()[0]
        terminal.press("\x1b[D")
        terminal.wait_for(lambda: terminal.text.splitlines()[0] != at_the_end)
        terminal.press("++++++ ")
        terminal.wait_for("1000x")
        terminal.press("q")
        assert terminal.wait_for_exit() == 0


@pytest.mark.skipif(not Path("/usr/bin/strace").exists(), reason="traces system calls with strace")
def test_nothing_is_written_locked_or_called_by_looking_at_a_recorded_night(bundle: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with opened(bundle, "strace", "-f", "-qq", "-s", "300", "-e", CALLS, "-o", str(trace)) as terminal:
        terminal.wait_for("study-001/1")
        for key in ("\x1b[D", "]", "[", " ", "L", "X", "p", "a", "u", ".", ",", "\x7f"):
            terminal.press(key)
            terminal.read(0.1)
        terminal.wait_until_quiet()
        os.kill(terminal.process.pid, signal.SIGTERM)
        terminal.read(1)
    lines = trace.read_text(errors="replace").splitlines()
    assert len(lines) > 100
    written = [line for line in lines if WRITES.search(line) and '"/dev/' not in line and '"/proc/' not in line]
    assert written == []
