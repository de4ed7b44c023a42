"""A registered round by `python -m kev.rounds` against the emulator: launched, watched, read."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import APP, DEADLINE_S, Night

CONFIG: dict[str, Any] = {"base": "synthetic/linear", "base_revision": "0" * 40, "lr": 1e-3, "batch": 1, "accum": 2}
SPEC: dict[str, Any] = {
    "round": 61, "registered": "PLAN.md > Round 61", "gpu": "H200", "app": APP,
    "studies": {"r61-a": {"plan": "experiments/plan.json", "suite": "evals/small-v1",
                          "transfer": "evals/small-transfer-v1", "gpu": "H200", "timeout": 600, "budget": 40}},
    "reads": {"far": {"suite": "evals/small-transfer-v1"}},
    "parents": {"p": {"trial": "runs/p/00-trial-0", "reads": "runs/p-{tag}"}},
    "arms": {"1b-a": {"trial": "runs/r61-a/00-trial-0", "parent": "p"}},
    "rule": {"panels": {"far": {"reads": ["far"], "metrics": ["acc"]}},
             "criteria": {"gain": {"left": "far.acc.lower", "op": ">", "right": 0}}},
}  # fmt: skip


def rounds(night: Night, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kev.rounds", *arguments]
    return subprocess.run(command, cwd=night.root, env=night.environment, capture_output=True, text=True,
                          timeout=DEADLINE_S)  # fmt: skip


def write_round(night: Night) -> str:
    place = night.root / "experiments" / "rounds"
    place.mkdir(parents=True)
    (place / "r61.json").write_text(json.dumps(SPEC))
    (night.root / "experiments" / "plan.json").write_text(json.dumps([CONFIG]))
    (night.root / "PLAN.md").write_text("# Plan\n\n## Round 61\n\nDoes it help?\n")
    for name in ("p-far", "p/00-trial-0/development"):
        (night.root / "runs" / name).mkdir(parents=True)
        (night.root / "runs" / name / "rows.json").write_text("[]\n")
    (night.root / "runs" / "dusk-state.json").write_text(json.dumps(
        {"session": "dusk", "simulated": True, "authorization_usd": 100, "baseline_usd": 0}))  # fmt: skip
    commit = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-qm", "Register round 61"]
    for arguments in (["init", "-q"], ["add", "PLAN.md", "experiments"], commit):
        subprocess.run(["git", *arguments], cwd=night.root, check=True, capture_output=True)
    return "experiments/rounds/r61.json"


@pytest.fixture
def own_night(night: Night, tmp_path: Path) -> Night:
    """A checkout of its own, with a session that counts no other test's work, on the same deployed app."""
    root = tmp_path / "checkout"
    shutil.copytree(night.root, root, ignore=shutil.ignore_patterns("runs", "__pycache__", ".git"))
    return Night(root, night.emulator)


def test_a_round_is_launched_once_watched_and_read(own_night: Night) -> None:
    night = own_night
    spec = write_round(night)
    launched = rounds(night, "launch", spec, "--stagger", "0")
    assert launched.returncode == 0, launched.stdout + launched.stderr
    again = rounds(night, "launch", spec, "--json")
    assert json.loads(again.stdout) == {"started": {}, "already": ["trial/r61-a/trial-0"], "unknown": {}}
    watched = rounds(night, "watch", spec, "--interval", "1", "--stagger", "0", "--passes", "90")
    status = json.loads(rounds(night, "status", spec, "--json").stdout)
    states = {unit["unit"]: unit["state"] for unit in status["units"]}
    expected = {"trial/r61-a/trial-0": "done", "read/runs/r61-1b-a-far": "done"}
    assert states == expected, f"{states}\n{watched.stdout}\n{watched.stderr}"
    assert (night.root / "runs" / "r61-1b-a-far" / "rows.json").exists()
    assert (night.root / "runs" / "r61-a" / "00-trial-0" / "result.json").exists()
