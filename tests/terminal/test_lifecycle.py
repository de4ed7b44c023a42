"""The screen ends with its terminal, gives it back whole, and comes back whole."""

import shutil
import signal
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pseudo_terminal import PseudoTerminal

Start = Callable[..., PseudoTerminal]
REPOSITORY = Path(__file__).parent.parent.parent
SMALL_APP = Path(__file__).parent / "small_app.py"

ENDS_WITHIN_S = 2.0
"""Promised to users. The one wall-clock figure here, since it is the promise itself."""


def is_sane(terminal: PseudoTerminal) -> bool:
    """Whether the last word on every mode that the screen sets is that it is off."""
    raw = bytes(terminal.raw)
    off = all(
        raw.rfind(f"\x1b[?{mode}l".encode()) > raw.rfind(f"\x1b[?{mode}h".encode())
        for mode in (1000, 1003, 1004, 1006, 1015, 1016, 1049, 2004, 2048)
        if f"\x1b[?{mode}h".encode() in raw
    )
    on = all(raw.rfind(f"\x1b[?{mode}h".encode()) > raw.rfind(f"\x1b[?{mode}l".encode()) for mode in (7, 25))
    return off and on and raw.rfind(b"\x1b[<u") > raw.rfind(b"\x1b[>")


def echoes(terminal: PseudoTerminal) -> bool:
    flags = terminal.settings()[3]
    assert isinstance(flags, int)
    return bool(flags & termios.ECHO) and bool(flags & termios.ICANON)


@pytest.mark.parametrize("ignore_hangup", [True, False])
def test_it_ends_when_its_terminal_vanishes(small_app: Start, ignore_hangup: bool) -> None:
    with small_app(ignore_hangup=ignore_hangup) as terminal:
        terminal.wait_for("step 100")
        begun = time.perf_counter()
        terminal.hang_up()
        code = terminal.wait_for_exit()
        assert time.perf_counter() - begun < ENDS_WITHIN_S
        assert code == 128 + signal.SIGHUP


def test_a_vanished_terminal_leaves_no_traceback_where_errors_go(log: Path, tmp_path: Path) -> None:
    errors = tmp_path / "errors"
    command = f"exec {sys.executable} {SMALL_APP} {log} 2>{errors}"
    with PseudoTerminal(["/bin/sh", "-c", command], env={"PYTHONPATH": str(REPOSITORY)}) as terminal:
        terminal.wait_for("step 100")
        terminal.press("x" * 50)
        terminal.hang_up()
        assert terminal.wait_for_exit() == 128 + signal.SIGHUP
        assert errors.read_text() == ""


def test_it_ends_when_its_terminal_vanishes_even_with_a_stuck_screen(small_app: Start) -> None:
    with small_app(ignore_hangup=True) as terminal:
        terminal.wait_for("step 100")
        terminal.press("b")
        terminal.wait_for("blocked")
        terminal.wait_until_quiet()
        terminal.hang_up()
        assert terminal.wait_for_exit() == 128 + signal.SIGHUP


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_it_with_the_terminal_restored(small_app: Start, number: signal.Signals) -> None:
    with small_app() as terminal:
        terminal.wait_for("step 100")
        assert not echoes(terminal)
        terminal.process.send_signal(number)
        assert terminal.wait_for_exit() == 128 + number
        assert is_sane(terminal) and echoes(terminal)


def test_a_stuck_screen_is_ended_by_a_signal_with_the_terminal_restored(small_app: Start) -> None:
    with small_app() as terminal:
        terminal.wait_for("step 100")
        terminal.press("b")
        terminal.wait_for("blocked")
        terminal.wait_until_quiet()
        terminal.process.terminate()
        assert terminal.wait_for_exit() == 128 + signal.SIGTERM
        assert is_sane(terminal) and echoes(terminal)


def test_quitting_restores_the_terminal(small_app: Start) -> None:
    with small_app() as terminal:
        terminal.wait_for("step 100")
        terminal.press("q")
        assert terminal.wait_for_exit() == 0
        assert is_sane(terminal) and echoes(terminal)


def test_keys_come_from_the_terminal_where_input_is_something_else(small_app: Start, log: Path) -> None:
    code = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:], stdin=subprocess.DEVNULL))"
    argv = [sys.executable, "-c", code, sys.executable, str(Path(__file__).parent / "small_app.py"), str(log)]
    with PseudoTerminal(argv, env={"PYTHONPATH": str(REPOSITORY)}) as terminal:
        terminal.wait_for("step 100")
        terminal.wait_until_quiet()
        assert terminal.observe(2).cpu_percent < 5
        terminal.press("q")
        assert terminal.wait_for_exit() == 0


@pytest.fixture
def shell(log: Path) -> PseudoTerminal:
    """An interactive shell with job control, in which the small app can be started by `app`."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no shell with job control")
    command = f"{sys.executable} {Path(__file__).parent / 'small_app.py'} {log}"
    inputrc = log.with_name("inputrc")
    inputrc.write_text("set enable-bracketed-paste off\n")
    env = {"PYTHONPATH": str(REPOSITORY), "PS1": "shell$ ", "APP": command, "INPUTRC": str(inputrc)}
    return PseudoTerminal([bash, "--norc", "--noprofile", "-i"], env=env)


def threads_of(terminal: PseudoTerminal) -> int:
    return len(list(Path(f"/proc/{terminal.process.pid}/task").iterdir()))


def first_line(terminal: PseudoTerminal) -> str:
    return terminal.text.partition("\n")[0].rstrip()


@pytest.mark.parametrize("command", ["$APP", 'sh -c "$APP; :"'])
def test_ctrl_z_gives_a_sane_shell_and_fg_the_whole_screen(shell: PseudoTerminal, command: str) -> None:
    with shell as terminal:
        terminal.wait_for("shell$")
        terminal.press(f"{command}\n")
        terminal.wait_for("step 100")
        terminal.wait_until_quiet()
        whole = terminal.text
        terminal.press("\x1a")
        terminal.wait_for("Stopped")
        assert is_sane(terminal)
        terminal.press("stty -a | grep -o -w -E -e '-?(icanon|echo)' | tr '\\n' ' '\n")
        terminal.wait_for("\nicanon echo")
        begun = len(terminal.raw)
        terminal.press("fg\n")
        # pyte keeps one screen only, so what is seen now was painted after fg.
        terminal.wait_for(lambda: b"\x1b[?1049h" in terminal.raw[begun:])
        terminal.screen.reset()
        terminal.wait_for(lambda: terminal.text == whole)
        terminal.press("x")
        terminal.wait_for(lambda: first_line(terminal) == "count 1")
        terminal.press("q")
        terminal.wait_for("shell$")


def test_ctrl_z_without_a_shell_to_return_to_stays_on_the_screen(small_app: Start) -> None:
    with small_app() as terminal:
        terminal.wait_for("step 100")
        terminal.press("\x1a")
        terminal.press("x")
        terminal.wait_for("count 1")
        assert "step 100" in terminal.text


def test_a_stop_from_outside_is_survived_with_the_whole_screen_and_no_second_reader(small_app: Start) -> None:
    with small_app() as terminal:
        terminal.wait_for("step 100")
        terminal.wait_until_quiet()
        whole = terminal.text
        threads = threads_of(terminal)
        terminal.process.send_signal(signal.SIGSTOP)
        terminal.wait_for(lambda: "(stopped)" in Path(f"/proc/{terminal.process.pid}/status").read_text())
        begun = len(terminal.raw)
        terminal.process.send_signal(signal.SIGCONT)
        terminal.wait_for(lambda: b"\x1b[?1049h" in terminal.raw[begun:])
        terminal.screen.reset()
        terminal.wait_for(lambda: terminal.text == whole)
        assert threads_of(terminal) == threads
        terminal.press("x")
        terminal.wait_for("count 1")
        terminal.press("q")
        assert terminal.wait_for_exit() == 0
        assert is_sane(terminal) and echoes(terminal)
