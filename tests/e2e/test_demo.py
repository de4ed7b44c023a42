"""The demo without a terminal: a real round comes to its candidate, and nothing of it is left."""

import json
import os
import subprocess
import sys
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
