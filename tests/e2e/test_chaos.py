"""The demo's round under fire: watcher, emulator and containers are killed, and its numbers stay the same."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("modal", reason="the demo deploys to an emulator")
pytest.importorskip("torch", reason="the demo trains models")

from kev.demo.chaos import EVERY_S, MOST_STRETCHES

REPOSITORY = Path(__file__).parents[2]


def run_module(*arguments: str, patience_s: float = 1800) -> str:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", *arguments], capture_output=True, text=True, env=environment, timeout=patience_s
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.soak
def test_a_round_whose_processes_are_killed_at_random_has_the_numbers_of_one_left_alone(tmp_path: Path) -> None:
    began = time.monotonic()
    run_module("kev.demo", str(tmp_path / "calm"), "--fast")
    # On a busy machine a container takes longer to begin, and one that is killed before gets nowhere.
    every = max(EVERY_S, (time.monotonic() - began) / 6)
    told = run_module("kev.demo.chaos", str(tmp_path / "fire"), "--like", str(tmp_path / "calm"), "--seed", "1",
                      "--every", f"{every:.0f}", patience_s=2 * MOST_STRETCHES * every)  # fmt: skip
    found: dict[str, Any] = json.loads(told.splitlines()[-1])
    assert found["same_numbers"] is True and found["bill"] == [] and found["left"] == []
    assert {"watcher", "emulator"} <= found["killed"].keys()
