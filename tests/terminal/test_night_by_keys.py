"""A real round on the emulator, seen through by keys alone, in tmux: from opening its session to closing it.

The captures are kept as a transcript where KEVTUI_KEEP_RECORD names a folder.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PATIENCE_S = 420.0

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux"),
]


class Tmux:
    """A terminal of its own server, driven as a person would: one key after the other."""

    def __init__(self, folder: Path, columns: int, rows: int, command: str) -> None:
        self.socket = str(folder / "tmux")
        self.record = folder / "record.txt"
        self.run("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), command)

    def run(self, *arguments: str) -> str:
        done = subprocess.run(["tmux", "-S", self.socket, *arguments], capture_output=True, text=True, check=False)
        return done.stdout

    def text(self) -> str:
        return self.run("capture-pane", "-p")

    def wait_for(self, *words: str, patience_s: float = PATIENCE_S) -> str:
        """The screen, once it shows any of `words`."""
        end = time.monotonic() + patience_s
        while True:
            text = self.text()
            if any(word in text for word in words):
                with self.record.open("a") as record:
                    record.write(f"{'=' * 20} {words}\n{text}\n")
                return text
            assert time.monotonic() < end, f"waited in vain for {words}:\n{text}"
            time.sleep(0.5)  # a look at a terminal is a process; nothing tells when it changes

    def press(self, *keys: str) -> None:
        for key in keys:
            time.sleep(0.6)  # as deliberate as the dashboard asks for
            self.run("send-keys", key)

    def type(self, text: str) -> None:
        for letter in text:
            self.run("send-keys", "-l", letter)

    def command(self, name: str) -> None:
        """Choose it in the palette."""
        self.press("C-p")
        self.wait_for("a command; enter runs it")
        self.type(name)
        self.press("Enter")

    def confirm(self, typed: str = "") -> None:
        """Agree to what the dialog shows, with `typed` as the name where it asks for one."""
        if typed:
            self.wait_for(f"type {typed}")
            self.press("Tab")
            self.type(typed)
            self.press("Enter")
            self.wait_for("The name is right")
        self.press("y")


@pytest.fixture(params=[(160, 50, "xterm-256color"), (80, 24, "screen-256color")], ids=["tmux pane", "phone"])
def demo(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tmux]:
    columns, rows, term = request.param
    settings = tmp_path / "config" / "kevtui"
    settings.mkdir(parents=True)
    (settings / "config.toml").write_text("undo_window_s = 2\n")
    environment = f"PYTHONPATH={REPOSITORY} XDG_CONFIG_HOME={tmp_path / 'config'} TERM={term} COLORTERM="
    options = f"--fast --by-hand --root {tmp_path / 'demo'}"
    command = f"env {environment} OMP_NUM_THREADS=1 {sys.executable} -m kevtui demo {options}"
    terminal = Tmux(tmp_path, columns, rows, f"cd {tmp_path}; {command} 2>{tmp_path / 'err'}; sleep 1000")
    yield terminal
    terminal.run("kill-server")
    if keep := os.environ.get("KEVTUI_KEEP_RECORD"):
        shutil.copy(terminal.record, Path(keep) / f"night-{columns}x{rows}.txt")


def test_a_round_is_seen_through_by_keys(demo: Tmux, tmp_path: Path) -> None:
    runs = tmp_path / "demo" / "work" / "runs"
    demo.wait_for("CONTROL")

    demo.command("open session")
    demo.wait_for("name of the session")
    demo.type("night7")
    demo.press("Enter")
    demo.type("50")
    demo.press("Enter")
    demo.confirm("night7")
    demo.wait_for("open night7 done")
    demo.wait_for("r40 · night7")

    demo.press("L")
    demo.wait_for("y launch r40")
    assert not list(runs.glob("*.spawn.json"))
    demo.confirm()
    demo.wait_for("launch r40")
    demo.wait_for("/160")  # steps of the full-weight arm

    # Nothing but a person continues what the timeout ended: the watcher of this demo leaves it to them.
    demo.wait_for("waits to be continued")
    demo.press("R")
    demo.wait_for("y resume r40-full/trial-0")
    demo.confirm()
    demo.wait_for("resume r40-full/trial-0 done")
    demo.wait_for("160/160")

    demo.press("p")
    demo.wait_for("pull r40-full done")
    demo.wait_for("candidate tiny tiny-full")
    demo.press("n")
    demo.wait_for("readout r40 done")

    demo.command("stage reads")
    demo.confirm("tiny-full")
    demo.wait_for("reads r40/tests done")
    demo.wait_for("11 landed")
    assert not list(runs.glob("r40-verdict/*"))
    demo.press("V")
    demo.confirm("tests")
    demo.wait_for("confirm r40/tests done")
    assert [path.name for path in runs.glob("r40-verdict/*.json")] == ["tiny-tests.json"]

    demo.command("close session")
    demo.confirm("night7")
    demo.wait_for("close night7 done")
    demo.press("q")

    spawn = json.loads((runs / "r40-full.spawn.json").read_text())
    assert len(spawn["attempts"]["trial-0"]) == 2
    events = [json.loads(line) for line in (runs / "night7-events.jsonl").read_text().splitlines()]
    acts = [event["text"].split(";")[0] for event in events if event["kind"] == "action"]
    verbs = ("launch", "resume", "pull", "readout", "reads", "confirm", "close")
    assert [act for act in acts if act.endswith("accepted")] == [f"{verb} accepted" for verb in verbs]
    assert not [act for act in acts if "failed" in act]
