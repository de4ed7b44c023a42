"""Alerts in a real terminal: the bell, both notifications, tmux handing them on, the hook, and nothing else at rest."""

import json
import re
import shutil
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pseudo_terminal import PseudoTerminal
from session_files import NAME, SessionFiles

Start = Callable[..., PseudoTerminal]
REPOSITORY = Path(__file__).parent.parent.parent

EVERYTHING = 'bell = "warning"\nnotify = "warning"\nnotify_by = "both"\n'
HOOK = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_bytes(sys.stdin.buffer.read()); print('on no screen')"


def settings(root: Path, text: str) -> dict[str, str]:
    """The environment in which `text` is the user's table of alerts."""
    folder = root / "config" / "kevtui"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(f"[alerts]\n{text}")
    return {"XDG_CONFIG_HOME": str(root / "config")}


def lose_the_loss(session: SessionFiles, study: int = 0) -> None:
    with (session.directory(study, 0) / "metrics.jsonl").open("a") as stream:
        at = (datetime.now(UTC) + timedelta(seconds=10)).isoformat()
        stream.write(f'{{"step": 401, "steps": 100000, "loss": null, "at": "{at}"}}\n')


@pytest.fixture
def session(tmp_path: Path) -> SessionFiles:
    return SessionFiles(tmp_path).write()


def rung(terminal: PseudoTerminal) -> bool:
    """Whether a bell came by itself, not as the end of a sequence."""
    return b"\x07" in re.sub(rb"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)", b"", bytes(terminal.raw))


@pytest.mark.parametrize("arguments", [(), ("--read-only",)])
def test_a_lost_loss_rings_and_notifies_once_and_then_the_terminal_is_at_rest(
    session: SessionFiles, dashboard: Start, arguments: tuple[str, ...]
) -> None:
    with dashboard(session.root, *arguments, env=settings(session.root, EVERYTHING)) as terminal:
        terminal.wait_for("study-001/1")
        terminal.wait_until_quiet(1.5)
        assert not rung(terminal) and b"\x1b]9;" not in terminal.raw, "what was there before is not told"
        lose_the_loss(session)
        terminal.wait_for("the loss is not a finite number")
        terminal.wait_for(lambda: b"]777;" in terminal.raw)
        assert rung(terminal)
        assert b"\x1b]9;kevtui: measured: critical: study-000/trial-0: the loss is not" in terminal.raw
        assert b"\x1b]777;notify;kevtui;measured: critical: study-000/trial-0: the loss" in terminal.raw
        session.step(0, 1, 402)
        terminal.wait_for("402/")
        assert terminal.raw.count(b"\x1b]9;") == 1
    assert (session.root / "runs" / f"{NAME}-alerts.json").exists() is (not arguments)


class HostileFiles(SessionFiles):
    def study(self, number: int) -> str:
        return f"s\x1b]9;4;1;99\x07\x9b2J\x1bPtmux;x\x1b\\;notify;x{number}"


def test_a_hostile_name_is_text_in_every_sequence(tmp_path: Path, dashboard: Start) -> None:
    session = HostileFiles(tmp_path).write()
    with dashboard(session.root, env=settings(session.root, EVERYTHING)) as terminal:
        terminal.wait_for("at risk")
        terminal.wait_until_quiet(1.5)
        lose_the_loss(session)
        terminal.wait_for(lambda: b"]777;" in terminal.raw)
        terminal.wait_until_quiet()
        told = re.findall(rb"\x1b\](9|777);([^\x07]*)\x07", bytes(terminal.raw))
        assert [kind for kind, _ in told] == [b"9", b"777"]
        assert all(b"s\\x1b]9" in text and not re.search(rb"[\x00-\x1f\x7f]|\xc2[\x80-\x9f]", text) for _, text in told)
        assert told[1][1].count(b";") == 2, "the fields of the sequence, and none of the name's"
        assert b"\x1bPtmux" not in terminal.raw


@pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux")
def test_tmux_hands_the_notification_on_and_marks_the_bell(session: SessionFiles) -> None:
    socket = session.root / "tmux"
    config = session.root / "tmux.conf"
    config.write_text("set -g allow-passthrough on\nset -g status off\nset -g default-terminal tmux-256color\n")
    inner = [sys.executable, "-m", "kevtui", "session", NAME, "--root", str(session.root), "--read-only"]
    env = settings(session.root, EVERYTHING) | {"PYTHONPATH": str(REPOSITORY)}
    argv = ["tmux", "-S", str(socket), "-f", str(config), "new-session", *inner]
    with PseudoTerminal(argv, env=env, cwd=session.root) as terminal:
        terminal.wait_for("study-001/1")
        terminal.wait_until_quiet(1.5)
        lose_the_loss(session)
        terminal.wait_for(lambda: b"\x1b]9;kevtui: measured: critical: study-000/trial-0: the loss" in terminal.raw)
        terminal.wait_for(lambda: rung(terminal))
        terminal.press("q")
        terminal.wait_for_exit()


def test_the_hook_runs_with_the_alert_and_never_on_the_screen(session: SessionFiles, dashboard: Start) -> None:
    told = session.root / "told.json"
    text = f"hook = {json.dumps([sys.executable, '-c', HOOK, str(told)])}\n"
    with dashboard(session.root, "--read-only", env=settings(session.root, text)) as terminal:
        terminal.wait_for("study-001/1")
        lose_the_loss(session)
        terminal.wait_for(lambda: told.exists() and told.stat().st_size)
        terminal.wait_until_quiet()
        assert "on no screen" not in terminal.text
    (alert,) = json.loads(told.read_bytes())["alerts"]
    assert (alert["id"], alert["severity"]) == ("loss-not-finite:study-000/trial-0", "critical")


def test_a_hanging_hook_is_said_once_delays_no_key_and_does_not_outlive_the_dashboard(
    session: SessionFiles, dashboard: Start
) -> None:
    mark = session.root / "pid"
    code = "import os, pathlib, signal, sys, time; pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))\n"
    code += "while True: time.sleep(600)"
    text = f"hook = {json.dumps([sys.executable, '-c', code, str(mark)])}\nhook_timeout_s = 1\n"
    with dashboard(session.root, "--read-only", env=settings(session.root, text)) as terminal:
        terminal.wait_for("study-001/1")
        lose_the_loss(session)
        terminal.wait_for(lambda: mark.exists() and mark.read_text())
        terminal.press("6")
        terminal.wait_for("the alert hook")
        assert not Path(f"/proc/{mark.read_text()}").exists()
        mark.unlink()
        lose_the_loss(session, study=1)
        terminal.wait_for(lambda: mark.exists() and mark.read_text())
        hanging = Path(f"/proc/{mark.read_text()}")
        terminal.press("q")
        assert terminal.wait_for_exit() == 0
        terminal.wait_for_exit()
        assert not hanging.exists() or "Z" in (hanging / "stat").read_text()
