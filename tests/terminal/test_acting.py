"""The dashboard that acts, in a real terminal: its end in any way changes nothing of what was begun."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pseudo_terminal import PseudoTerminal

TESTS = Path(__file__).parents[1]
REPOSITORY = TESTS.parent
for directory in (TESTS / "kevtui" / "actions", TESTS / "kev" / "rounds"):
    sys.path.insert(0, str(directory))

from action_lab import ActionLab, prepare, wait_until  # noqa: E402  found through the lines above
from test_lifecycle import echoes, is_sane  # noqa: E402

from kevtui.permission import why_read_only  # noqa: E402


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare(tmp_path_factory.mktemp("prepared") / "checkout")


@pytest.fixture
def lab(prepared: Path, tmp_path: Path) -> Iterator[ActionLab]:
    lab = ActionLab(prepared, tmp_path / "checkout")
    yield lab
    (lab.root / "hang").unlink(missing_ok=True)


def dashboard(lab: ActionLab, *arguments: str, prefix: tuple[str, ...] = (), **terminal: object) -> PseudoTerminal:
    write_config(lab)
    argv = [
        *prefix,
        sys.executable,
        "-m",
        "kevtui",
        "session",
        "r201",
        "--root",
        str(lab.root),
        "--no-mouse",
        *arguments,
    ]
    env = {"PYTHONPATH": str(REPOSITORY), "XDG_CONFIG_HOME": str(lab.root / "config"), "PYTHONDONTWRITEBYTECODE": "1"}
    return PseudoTerminal(argv, env=env, cwd=REPOSITORY, **terminal)  # type: ignore[arg-type]


def write_config(lab: ActionLab) -> None:
    config = lab.root / "config" / "kevtui" / "config.toml"
    if not config.exists():
        config.parent.mkdir(parents=True)
        config.write_text("undo_window_s = 0\n")


def begin_reads(terminal: PseudoTerminal) -> None:
    """Agree to launching the reads, and see it under way."""
    terminal.wait_for("CONTROL")
    terminal.read(0.5)
    terminal.press("M")
    terminal.wait_for("y reads r201 for at most")
    terminal.read(0.5)
    terminal.press("y")
    terminal.wait_for(lambda: "pending" in terminal.text)


def test_keys_in_one_burst_are_a_paste_whatever_the_terminal_calls_it(lab: ActionLab) -> None:
    with dashboard(lab) as terminal:
        terminal.wait_for("CONTROL")
        terminal.press("My" * 30)
        terminal.press("\x1b[200~My\x1b[201~")
        terminal.wait_until_quiet()
        assert "y reads r201 for at most" not in terminal.text
        terminal.press("M")
        terminal.wait_for("y reads r201 for at most")
        terminal.press("y\ty\ty")
        terminal.press("\x1b[200~yyy\x1b[201~")
        terminal.wait_for("nothing was done")
        terminal.wait_until_quiet()
    assert lab.calls == []


def test_a_crashed_dashboard_leaves_what_it_began_to_its_end(lab: ActionLab) -> None:
    (lab.root / "hang").touch()
    with dashboard(lab) as terminal:
        begin_reads(terminal)
        wait_until(lambda: lab.called("launch-reads") == 1, "the engine to be asked")
        terminal.process.kill()
        terminal.process.wait()
    with dashboard(lab) as terminal:
        # Control of the dead one is free, and what it began is in sight.
        terminal.wait_for("CONTROL")
        terminal.wait_for("pending")
        (lab.root / "hang").unlink()
        terminal.wait_for(" done ")
    assert lab.called("launch-reads") == 1
    assert [event["text"].split(";")[0] for event in lab.events] == ["reads accepted", "reads done"]


ENDS: dict[str, Callable[[PseudoTerminal], None]] = {
    "kill": lambda terminal: terminal.process.kill(),
    "terminate": lambda terminal: terminal.process.terminate(),
    "hang up": lambda terminal: terminal.hang_up(),
    "interrupt": lambda terminal: terminal.process.send_signal(signal.SIGINT),
}


def end_again_and_again(lab: ActionLab, times: int) -> None:
    (lab.root / "hang").touch()
    with dashboard(lab) as terminal:
        begin_reads(terminal)
        wait_until(lambda: lab.called("launch-reads") == 1, "the engine to be asked")
        terminal.process.kill()
    before = {path: path.read_bytes() for path in sorted(lab.runs.rglob("*")) if kept(path)}
    for number in range(times):
        with dashboard(lab) as terminal:
            terminal.wait_for("reads r201")
            if number % 3 == 0:
                terminal.press("X" if number % 2 else "L")
                terminal.read(0.1)
            list(ENDS.values())[number % len(ENDS)](terminal)
            terminal.wait_for_exit()
    assert {path: path.read_bytes() for path in sorted(lab.runs.rglob("*")) if kept(path)} == before
    (lab.root / "hang").unlink()
    wait_until(lambda: any("reads done" in event["text"] for event in lab.events), "what was begun to end")
    assert [call[0] for call in lab.calls] == ["launch-reads"]


def kept(path: Path) -> bool:
    """Whether it is no file of control and none of what was alerted on, which each dashboard writes."""
    return path.is_file() and not path.name.startswith(("control", "alerts"))


def test_ending_dashboards_in_every_way_changes_nothing_of_a_session(lab: ActionLab) -> None:
    end_again_and_again(lab, 4)


@pytest.mark.soak
def test_ending_a_hundred_dashboards_changes_nothing_of_a_session(lab: ActionLab) -> None:
    end_again_and_again(lab, 100)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_over_an_open_dialog_restores_the_terminal(lab: ActionLab, number: signal.Signals) -> None:
    with dashboard(lab) as terminal:
        terminal.wait_for("CONTROL")
        terminal.read(0.5)
        terminal.press("L")
        terminal.wait_for("Launch r201")
        terminal.process.send_signal(number)
        assert terminal.wait_for_exit() == 128 + number
        assert is_sane(terminal) and echoes(terminal)
    assert lab.calls == []


def test_a_stop_over_a_dialog_is_survived_with_the_dialog_and_confirms_nothing(lab: ActionLab) -> None:
    with dashboard(lab) as terminal:
        terminal.wait_for("CONTROL")
        terminal.read(0.5)
        terminal.press("M")
        terminal.wait_for("y reads r201 for at most")
        terminal.process.send_signal(signal.SIGSTOP)
        terminal.wait_for(lambda: "(stopped)" in Path(f"/proc/{terminal.process.pid}/status").read_text())
        terminal.press("yyyy")
        begun = len(terminal.raw)
        terminal.process.send_signal(signal.SIGCONT)
        terminal.wait_for(lambda: b"\x1b[?1049h" in terminal.raw[begun:])
        terminal.screen.reset()
        terminal.wait_for("y reads r201 for at most")
        terminal.wait_until_quiet()
    assert lab.calls == []


# ----------------------------------------------------------------------------------------------------------- read-only


WRITING = re.compile(
    r"\b(?:open|openat|creat)\((?:AT_FDCWD, )?\"(?P<opened>[^\"]*)\".*(?:O_WRONLY|O_RDWR|O_CREAT|O_TRUNC)"
    r"|\b(?:mkdir|mkdirat|rename\w*|unlink\w*|link\w*|symlink\w*|rmdir|chmod|fchmodat|truncate|utimensat|mknod\w*)\("
    r"(?:AT_FDCWD, )?\"(?P<changed>[^\"]*)\""
)


@pytest.mark.skipif(not Path("/usr/bin/strace").exists(), reason="traces system calls with strace")
@pytest.mark.parametrize("poll", [(), ("--poll",)])
def test_read_only_opens_nothing_for_writing_locks_nothing_and_connects_to_nothing(
    lab: ActionLab, tmp_path: Path, poll: tuple[str, ...]
) -> None:
    trace = tmp_path / "trace"
    calls = "trace=open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,link,linkat,symlink,"
    calls += "symlinkat,rmdir,chmod,fchmodat,truncate,utimensat,mknod,mknodat,flock,fcntl,connect,sendto"
    prefix = ("strace", "-f", "-qq", "-s", "300", "-e", calls, "-o", str(trace))
    with dashboard(lab, "--read-only", *poll, prefix=prefix) as terminal:
        terminal.wait_for("READ-ONLY")
        terminal.wait_for("r201-full")
        for key in "pncbhuaLWMRVX!!":
            terminal.press(key)
            terminal.read(0.1 if key != "!" else 0.5)
        terminal.wait_until_quiet()
        terminal.press("\x10")  # the palette
        terminal.wait_for("a command; enter runs it")
        terminal.press("launch\r")
        terminal.read(0.5)
        terminal.press("\x1b")
        terminal.wait_until_quiet()
        os.kill(terminal.process.pid, signal.SIGTERM)
        terminal.read(1)
    lines = trace.read_text(errors="replace").splitlines()
    assert len(lines) > 100
    written = [match["opened"] or match["changed"] for line in lines if (match := WRITING.search(line))]
    allowed = ("/dev/", "/proc/")
    assert [path for path in written if not path.startswith(allowed)] == []
    assert [line for line in lines if "flock(" in line or "F_SETLK" in line or "F_OFD_SETLK" in line] == []
    # The event loop wakes itself up through a pair of sockets that lead nowhere.
    assert [line for line in lines if "connect(" in line or ("sendto(" in line and "sa_family" in line)] == []
    assert lab.calls == [] and not (lab.runs / ".actions").exists()


NOBODY = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=+dac_read_search",
             "--ambient-caps=+dac_read_search")  # fmt: skip
"""Another user, who may read everything (so that Python starts, wherever it lies) and writes nothing of ours."""


@pytest.fixture
def not_ours(prepared: Path) -> Iterator[tuple[ActionLab, tuple[str, ...]]]:
    """A checkout that may not be written, and what to put before a command to run it as somebody who may not."""
    folder = Path(tempfile.mkdtemp(prefix="kevtui-not-ours-"))
    folder.chmod(0o755)
    lab = ActionLab(prepared, folder / "checkout")
    write_config(lab)
    paths = [path for path in (lab.root, *lab.root.rglob("*")) if not path.is_symlink()]
    modes = {path: path.stat().st_mode for path in paths}
    for path, mode in modes.items():
        path.chmod((mode | 0o555 if path.is_dir() else mode | 0o444) & ~0o222)
    yield lab, AS_NOBODY if os.geteuid() == 0 else ()
    for path, mode in modes.items():
        path.chmod(mode)
    shutil.rmtree(folder)


def test_the_environment_makes_it_read_only(lab: ActionLab) -> None:
    assert why_read_only(lab.root, asked=False, environment={}) == ""
    assert "KEVTUI_READONLY" in why_read_only(lab.root, asked=False, environment={"KEVTUI_READONLY": "1"})


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root becomes another user with setpriv")
def test_over_what_belongs_to_somebody_else_it_only_looks(not_ours: tuple[ActionLab, tuple[str, ...]]) -> None:
    lab, prefix = not_ours
    before = {path: path.stat().st_mtime_ns for path in lab.root.rglob("*")}
    with dashboard(lab, prefix=prefix) as terminal:
        terminal.wait_for("r201-full")
        terminal.wait_for("READ-ONLY")
        for key in "pLMXy":
            terminal.press(key)
            terminal.read(0.4)
        terminal.wait_until_quiet()
        assert "Launch r201" not in terminal.text and "L launch" not in terminal.text
        terminal.press("q")
        assert terminal.wait_for_exit() == 0
    asked = [
        sys.executable,
        "-m",
        "kevtui",
        "act",
        "launch",
        "r201",
        "--yes",
        "--name",
        "r201",
        "--root",
        str(lab.root),
    ]
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY), "XDG_CONFIG_HOME": str(lab.root / "config")}
    done = subprocess.run(
        [*prefix, *asked, "--root", str(lab.root)], capture_output=True, text=True, env=env, cwd=REPOSITORY, check=False
    )
    assert done.returncode == 5 and "no permission to write" in done.stdout + done.stderr
    assert lab.calls == []
    assert {path: path.stat().st_mtime_ns for path in lab.root.rglob("*")} == before
