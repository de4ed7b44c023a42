"""A registered round of one study in a checkout, and the commands that run it."""

import json
import subprocess
import sys
from typing import Any

from .conftest import APP, DEADLINE_S, Night

CONFIG: dict[str, Any] = {"base": "synthetic/linear", "base_revision": "0" * 40, "lr": 1e-3, "batch": 1, "accum": 2}
GPU, TIMEOUT = "H200", 600


def spec_of(study: str) -> dict[str, Any]:
    """The round of one study. All tests share a volume, where a study's name is used once."""
    return {
        "round": 61, "registered": "PLAN.md > Round 61", "gpu": GPU, "app": APP,
        "studies": {study: {"plan": "experiments/plan.json", "suite": "evals/small-v1",
                            "transfer": "evals/small-transfer-v1", "gpu": GPU, "timeout": TIMEOUT, "budget": 40}},
        "reads": {"far": {"suite": "evals/small-transfer-v1"}},
        "parents": {"p": {"trial": "runs/p/00-trial-0", "reads": "runs/p-{tag}"}},
        "arms": {"1b-a": {"trial": f"runs/{study}/00-trial-0", "parent": "p"}},
        "rule": {"panels": {"far": {"reads": ["far"], "metrics": ["acc"]}},
                 "criteria": {"gain": {"left": "far.acc.lower", "op": ">", "right": 0}}},
    }  # fmt: skip


def command(night: Night, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What `python -m MODULE ARGUMENTS` did in the checkout of `night`."""
    return subprocess.run([sys.executable, "-m", module, *arguments], cwd=night.root, env=night.environment,
                          capture_output=True, text=True, timeout=DEADLINE_S)  # fmt: skip


def rounds(night: Night, *arguments: str) -> subprocess.CompletedProcess[str]:
    return command(night, "kev.rounds", *arguments)


def write_round(night: Night, study: str) -> str:
    """Register the round of `study`. Returns its spec's path."""
    place = night.root / "experiments" / "rounds"
    place.mkdir(parents=True)
    (place / "r61.json").write_text(json.dumps(spec_of(study)))
    (night.root / "experiments" / "plan.json").write_text(json.dumps([CONFIG]))
    (night.root / "PLAN.md").write_text("# Plan\n\n## Round 61\n\nDoes it help?\n")
    for name in ("p-far", "p/00-trial-0/development"):
        (night.root / "runs" / name).mkdir(parents=True)
        (night.root / "runs" / name / "rows.json").write_text("[]\n")
    commit = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-qm", "Register round 61"]
    for arguments in (["init", "-q"], ["add", "PLAN.md", "experiments"], commit):
        subprocess.run(["git", *arguments], cwd=night.root, check=True, capture_output=True)
    return "experiments/rounds/r61.json"
