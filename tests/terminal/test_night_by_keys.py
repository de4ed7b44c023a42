"""A real round on the emulator, seen through by keys in tmux: watch it, pull, read out, confirm by name, close."""

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


@pytest.fixture(params=[(160, 50, "xterm-256color"), (80, 24, "screen-256color")], ids=["tmux pane", "phone"])
def demo(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tmux]:
    columns, rows, term = request.param
    settings = tmp_path / "config" / "kevtui"
    settings.mkdir(parents=True)
    (settings / "config.toml").write_text("undo_window_s = 2\n")
    environment = f"PYTHONPATH={REPOSITORY} XDG_CONFIG_HOME={tmp_path / 'config'} TERM={term} COLORTERM="
    command = f"env {environment} OMP_NUM_THREADS=1 {sys.executable} -m kevtui demo --fast --root {tmp_path / 'demo'}"
    terminal = Tmux(tmp_path, columns, rows, f"cd {tmp_path}; {command} 2>{tmp_path / 'err'}; sleep 1000")
    yield terminal
    terminal.run("kill-server")
    if keep := os.environ.get("KEVTUI_KEEP_RECORD"):
        shutil.copy(terminal.record, Path(keep) / f"night-{columns}x{rows}.txt")


def test_a_round_is_seen_through_by_keys(demo: Tmux, tmp_path: Path) -> None:
    runs = tmp_path / "demo" / "work" / "runs"
    demo.wait_for("CONTROL")
    demo.wait_for("/160")  # steps of the full-weight arm
    demo.press("p")
    demo.wait_for("pull r40-full done", "pull r40-lora done")
    # The watcher continues what the timeout ended; a second one is not started.
    demo.press("W")
    demo.wait_for("Nothing to do", "its studies were launched")
    demo.press("Enter")
    demo.wait_for("tiny tiny-full", "candidate")
    demo.press("n")
    demo.wait_for("readout r40 done")
    # Its reads are launched by the player; the stage then waits for a person.
    demo.wait_for("11 landed")
    demo.press("V")
    demo.wait_for("type tests")
    assert not list(runs.glob("r40-verdict/*"))
    demo.press("Tab")
    demo.type("tests")
    demo.press("Enter")
    demo.wait_for("The name is right")
    demo.press("y")
    demo.wait_for("takes it back", "confirm r40/tests")
    demo.wait_for("confirm r40/tests done")
    assert [path.name for path in runs.glob("r40-verdict/*.json")] == ["tiny-tests.json"]
    demo.press("C-p")
    demo.type("close session")
    demo.press("Enter")
    demo.wait_for("type demo")
    demo.press("Tab")
    demo.type("demo")
    demo.press("Enter")
    demo.wait_for("The name is right")
    demo.press("y")
    demo.wait_for("close demo done", "close demo failed")
    journal = (runs / "demo-events.jsonl").read_text()
    for words in ("pull accepted", "pull done", "confirm accepted", "confirm done", "close accepted"):
        assert words in journal
    demo.press("q")
