"""The dashboard over a session that another machine has, mounted by a real sshfs from a real sshd on loopback."""

import getpass
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY / "benchmarks"))

import over_ssh  # noqa: E402
from over_ssh import OPTIONS, Wire  # noqa: E402
from pseudo_terminal import PseudoTerminal  # noqa: E402
from session_files import NAME, SessionFiles  # noqa: E402

STEPS_S = 30.0
"""A sweep every 2 s, over attributes that sshfs keeps for 1 s: far more than a step takes to be seen."""


def missing() -> str:
    """Why no session can be mounted here, or ""."""
    found = over_ssh.programs()
    if isinstance(found, str):
        return found
    absent = [name for name in ("sshfs", "fusermount3") if shutil.which(name) is None]
    if absent:
        return f"{', '.join(absent)} is not installed"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse is not there, or closed to this user"
    return ""


pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(bool(why := missing()), reason=f"mounts with sshfs, and {why or 'all is there'}"),
]


class Mount:
    """`root` of the far machine, seen at `here`."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.here = root, folder / "here"
        self._folder = folder
        self._stack = ExitStack()
        self.wire: Wire

    def mount(self, *options: str) -> None:
        found = over_ssh.programs()
        assert isinstance(found, dict)
        keys = self._folder / f"keys-{time.monotonic_ns()}"
        self.wire, port = self._stack.enter_context(over_ssh.reached(keys, found))
        self.here.mkdir(exist_ok=True)
        told = [f"IdentityFile={keys / 'user'}", *OPTIONS, "dcache_timeout=1", *options]
        command = ["sshfs", "-p", str(port), "-o", ",".join(told), f"{getpass.getuser()}@127.0.0.1:{self.root}"]
        subprocess.run([*command, str(self.here)], check=True, timeout=60)

    def unmount(self) -> None:
        subprocess.run(["fusermount3", "-u", "-z", str(self.here)], capture_output=True)
        if hasattr(self, "wire"):
            self.wire.open.set()
        self._stack.close()

    def kill(self) -> None:
        """Kill the program behind the mount, as a lack of memory does."""
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                command = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if command[0] == b"sshfs" and os.fsencode(self.here) in command:
                os.kill(int(folder.name), signal.SIGKILL)


@contextmanager
def mounted(files: SessionFiles, folder: Path, *options: str) -> Iterator[Mount]:
    mount = Mount(files.root, folder)
    try:
        mount.mount(*options)
        yield mount
    finally:
        mount.unmount()


@pytest.fixture
def files(tmp_path: Path) -> SessionFiles:
    return SessionFiles(tmp_path / "far").write()


def listed(root: Path) -> list[tuple[str, int, int]]:
    return sorted((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in root.rglob("*"))


Start = Callable[..., PseudoTerminal]


def test_it_polls_and_shows_a_far_change_and_writes_nothing_though_it_could(
    files: SessionFiles, tmp_path: Path, dashboard: Start
) -> None:
    with mounted(files, tmp_path) as mount, dashboard(mount.here) as terminal:
        terminal.wait_for("polling: fuse.sshfs")
        terminal.wait_for("READ-ONLY")
        files.step(0, 0, 777)
        terminal.wait_for("777/", deadline_s=STEPS_S)
        before = listed(files.root)
        for key in "pncbhuaLWMRVX!!":
            terminal.press(key)
            terminal.read(0.1)
        terminal.wait_until_quiet()
        terminal.press("q")
        assert terminal.wait_for_exit() == 0
        assert listed(files.root) == before
        command = [sys.executable, "-m", "kevtui", "act", "launch", "r1", "--root", str(mount.here), "--yes", "--json"]
        env = os.environ | {"PYTHONPATH": str(REPOSITORY)}
        for way in (["status", NAME], ["report", NAME], ["session", NAME, "--once"], ["session", NAME, "--json"]):
            looked = subprocess.run([*command[:3], *way, "--root", str(mount.here)], capture_output=True, env=env)
            assert looked.returncode == 0, (way, looked.stderr)
        assert json.loads(looked.stdout)["polling"] == "polling: fuse.sshfs"
        assert subprocess.run(command, capture_output=True, env=env).returncode != 0
        assert listed(files.root) == before


def test_while_the_link_hangs_it_says_so_and_keys_work_and_it_goes_on_by_itself(
    files: SessionFiles, tmp_path: Path, dashboard: Start
) -> None:
    with mounted(files, tmp_path, "ro") as mount, dashboard(mount.here) as terminal:
        terminal.wait_for("polling: fuse.sshfs")
        terminal.wait_until_quiet()
        mount.wire.open.clear()
        terminal.wait_for("no answer for 20 s")
        terminal.press("l")  # a log, whose thread hangs as well
        terminal.wait_for("train.log")
        terminal.press("?")
        terminal.wait_for("escape closes")
        terminal.press("\x1b")
        terminal.wait_for(lambda: "escape closes" not in terminal.text)
        files.step(0, 0, 888)
        mount.wire.open.set()
        terminal.wait_for(lambda: "no answer" not in terminal.text and "888/" in terminal.text)


def test_leaving_gives_the_prompt_back_while_the_link_hangs(
    files: SessionFiles, tmp_path: Path, dashboard: Start
) -> None:
    with mounted(files, tmp_path, "ro") as mount:
        for way, status in (("q", 0), (signal.SIGTERM, 128 + signal.SIGTERM), ("hang up", 128 + signal.SIGHUP)):
            with dashboard(mount.here) as terminal:
                terminal.wait_for("polling: fuse.sshfs")
                terminal.wait_until_quiet()
                mount.wire.open.clear()
                terminal.wait_for("no answer for 20 s")
                if way == "q":
                    terminal.press("q")
                elif way == "hang up":
                    terminal.hang_up()
                else:
                    os.kill(terminal.process.pid, signal.SIGTERM)
                assert terminal.wait_for_exit(deadline_s=20) == status
                assert way == "hang up" or b"\x1b[?1049l" in terminal.raw
                mount.wire.open.set()


def test_an_action_that_could_only_be_refused_can_be_left_while_the_link_hangs(
    files: SessionFiles, tmp_path: Path
) -> None:
    with mounted(files, tmp_path) as mount:
        command = [sys.executable, "-m", "kevtui", "act", "launch", "r1", "--root", str(mount.here), "--yes"]
        mount.wire.open.clear()
        acting = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ | {"PYTHONPATH": str(REPOSITORY)})
        with pytest.raises(subprocess.TimeoutExpired):
            acting.wait(5)
        acting.send_signal(signal.SIGINT)
        assert acting.wait(10) == 128 + signal.SIGINT
        mount.wire.open.set()


def test_a_dead_mount_an_unmounted_one_and_one_that_is_back(
    files: SessionFiles, tmp_path: Path, dashboard: Start
) -> None:
    with mounted(files, tmp_path, "ro") as mount, dashboard(mount.here) as terminal:
        terminal.wait_for("polling: fuse.sshfs")
        terminal.wait_for("400/")
        mount.kill()
        terminal.wait_for("lost its connection")
        assert "400/" in terminal.text and terminal.text.count("lost its connection") == 1
        mount.unmount()
        terminal.wait_for("is gone")
        assert "400/" in terminal.text and terminal.text.count("is gone") == 1
        files.step(0, 0, 999)
        mount.mount("ro")
        terminal.wait_for("999/")
        terminal.wait_for(lambda: "is gone" not in terminal.text)
        terminal.press("q")
        assert terminal.wait_for_exit() == 0
