"""The demo without a terminal: a real round comes to its candidate, and nothing of it is left."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("modal", reason="the demo deploys to an emulator")
pytest.importorskip("torch", reason="the demo trains models")

from kev.demo.processes import processes_of
from kev.records.base import read_record
from kev.records.spawn import SpawnRecord

REPOSITORY = Path(__file__).parents[2]
DEADLINE_S = 600
"""For what takes less than two minutes on an idle machine; nothing here measures how long it takes."""


def test_the_demo_times_out_is_continued_finds_a_candidate_and_leaves_no_process(tmp_path: Path) -> None:
    root = tmp_path / "demo"
    command = [sys.executable, "-m", "kevtui", "demo", "--fast", "--root", str(root)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1", "TERM": "dumb"}
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, timeout=DEADLINE_S
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr}"
    assert processes_of(root) == {}

    runs = root / "work" / "runs"
    attempts = read_record(runs / "r40-full.spawn.json", SpawnRecord).attempts["trial-0"]
    assert len(attempts) == 2 and attempts[0].call != attempts[1].call
    log = (runs / "r40-full" / "00-trial-0" / "train.log").read_text()
    assert log.count("resumed from ") == 1 and "step 160/160" in log
    readout = json.loads((runs / "r40-readout" / "round40.json").read_text())
    assert readout["candidates"] == {"tiny": "tiny-full"} and readout["arms"]["tiny-full"]["passed"] is True
    state = json.loads((runs / "demo-state.json").read_text())
    assert state["simulated"] is True and float(state["readings"][-1]["metered_usd"]) > 0
    assert "; simulated" in done.stdout and "candidate tiny: tiny-full" in done.stdout
    assert "confirm" in done.stdout.splitlines()[-1]
    assert not (runs / "r40-verdict").exists(), "only a person confirms"


def player_of(viewer: int) -> int:
    """The process that plays the demo which `viewer` shows."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and (entry / "stat").exists():
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) == viewer and b"kev.demo" in (entry / "cmdline").read_bytes():
                return int(entry.name)
    raise AssertionError("nobody plays")


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not true():
        assert time.monotonic() < end, "it never came"
        select.select([], [], [], 0.05)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds its processes in /proc")
@pytest.mark.parametrize(("victim", "number"), [("viewer", signal.SIGKILL), ("viewer", signal.SIGTERM),
                                                ("viewer", signal.SIGHUP), ("player", signal.SIGKILL)])  # fmt: skip
def test_whatever_ends_a_demo_leaves_no_process_and_no_folder(tmp_path: Path, victim: str, number: int) -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path)}
    viewer = subprocess.Popen(
        [sys.executable, "-m", "kevtui", "demo", "--fast"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, env=environment, start_new_session=True,
    )  # fmt: skip
    try:
        until(lambda: any("kev.emulator" in line for line in processes_of(tmp_path).values()))
        os.kill(viewer.pid if victim == "viewer" else player_of(viewer.pid), number)
        until(lambda: not processes_of(tmp_path) and not any(tmp_path.iterdir()))
        viewer.wait(60)
    finally:
        viewer.kill()
        viewer.wait()
