"""Whatever texts the files hold, the terminal gets text: no control, no sequence of theirs, nothing to be clicked."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pseudo_terminal import PseudoTerminal
from session_files import NAME, SessionFiles

Start = Callable[..., PseudoTerminal]

TEXT = (
    "[/b][@click=app.quit]x[/] [red]r\x1b[2J\x1b]0;t\x07\x1b]52;c;Zm9v\x07\x1bP1$r\x1b\\\x9b31m\x9d8;;http://x\x9c"
    "\r\b\x7f\u202e\u2028z\\"
)
OWN = re.compile(rb"\x1b\](?:22;default|52;c;[A-Za-z0-9+/=]*)(?:\x07|\x1b\\)")
"""The sequences of the dashboard itself that carry text: the pointer's shape, and what was copied, in base64."""

SEQUENCES = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[=>78]|\x1b\[>[0-9;]*q|\x1bP\+q[0-9a-fA-F;]*\x1b\\")
CONTROLS = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xa8-\xae]|\xe2\x81[\xa6-\xa9]")
QUERIES = re.compile(rb"\x1b\]1[01];\?(?:\x07|\x1b\\)|\x1b\[\?[0-9]+\$p|\x1b\[[?>]?[0-9]*[ucnq]")


class HostileFiles(SessionFiles):
    """Texts that act on a terminal where files hold names, errors, calls, statuses, events and lines of a log."""

    def study(self, number: int) -> str:
        return f"{TEXT.replace('/', '|')[:60]}{number}"

    def write(self) -> "HostileFiles":
        super().write()
        runs = self.root / "runs"
        failed = {"status": "failed", "launched": False, "transient": 0, "call": TEXT, "error": TEXT}
        (runs / "r9-b.watch.json").write_text(json.dumps({"calls": {TEXT[:40].replace("/", "|"): failed}}))
        (runs / "r9-b.spawn.json").write_text(json.dumps({
            "name": "r9-b", "calls": {"trial-0": TEXT}, "attempts": {}, "bound_usd": 3, "gpu": TEXT, "timeout": 60,
            "full_ft": False, "modal_retries": 0}))  # fmt: skip
        state = json.loads((runs / f"{NAME}-state.json").read_text())
        state["studies"]["r9-b"] = {"status": TEXT, "calls": {"trial-0": TEXT}}
        (runs / f"{NAME}-state.json").write_text(json.dumps(state))
        event = {"at": "2026-11-30T00:00:00Z", "kind": TEXT, "severity": "critical", "subject": TEXT, "text": TEXT}
        (runs / f"{NAME}-events.jsonl").write_bytes(json.dumps(event).encode() + b"\n" + TEXT.encode() + b"\n")
        with self.log(0, 0).open("ab") as stream:
            stream.write(TEXT.encode() + b"\n\xff\xfe\x1b]0;t\x07\n")
        return self


KEYS = (
    "8", "\r", "\x1b", "!", "!", "1", "\r", "\x1b", "i", "\x1b", "y", "l", "\x1b", "j", "j", "j", "j", "l", "\x1b",
    "6", "\r", "\x1b", "7", "\r", "\x1b", "?", "\x1b", "\x10", "\x1b", "o", "\x1b", "d", "\x1b", "v", "\x1b",
)  # fmt: skip


@pytest.mark.parametrize("arguments", [("--read-only",), ("--ascii",)])
def test_walking_through_every_panel_and_dialog_writes_text_alone(
    tmp_path: Path, dashboard: Start, arguments: tuple[str, ...]
) -> None:
    session = HostileFiles(tmp_path / "checkout").write()
    # The bell is a control character of the dashboard's own.
    settings = tmp_path / "kevtui" / "config.toml"
    settings.parent.mkdir()
    settings.write_text('[alerts]\nbell = "off"\n')
    own = {"XDG_CONFIG_HOME": str(tmp_path)}
    with dashboard(session.root, *arguments, columns=160, rows=50, env=own) as terminal:
        terminal.wait_for("[/b][@click=app.quit]x[/] [red]r\\x1b[2J")
        for key in KEYS:
            terminal.press(key)
            terminal.read(0.4)
        terminal.wait_until_quiet()
        terminal.process.terminate()
        terminal.wait_for_exit()
        raw = bytes(terminal.raw)
    left = SEQUENCES.sub(b"", OWN.sub(b"", QUERIES.sub(b"", raw)))
    assert [left[max(0, found.start() - 40) : found.end() + 40] for found in CONTROLS.finditer(left)] == []
    beyond_ascii = [
        left[max(0, found.start() - 40) : found.end() + 40] for found in re.finditer(rb"[\x80-\xff]+", left)
    ]
    assert "--ascii" not in arguments or beyond_ascii == []
