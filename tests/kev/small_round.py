"""A small round on disk: rows of every read, a spec, and a commit, all of it invented."""

import json
import math
import random
import subprocess
from pathlib import Path
from typing import Any

from kev.records.base import parse_record
from kev.records.spec import RoundSpec


def make_rows(
    seed: int, *, strength: float, n: int = 40, source: str = "alpha", start: int = 0, unknowable: int = 0
) -> list[dict[str, Any]]:
    """`n` questions, two to a group; a larger `strength` answers more of them right."""
    draw = random.Random(seed)
    shared = random.Random(1000)
    out = []
    for i in range(start, start + n):
        label = shared.randrange(3)
        z = [strength * (k == label) + draw.gauss(0, 1.2) for k in range(3)]
        out.append(_row(f"{source}-{i:03d}", f"{source}-g{i // 2:03d}", source, label, z))
    for i in range(unknowable):
        z = [draw.gauss(0, 0.4) for _ in range(3)]
        out.append(_row(f"unknowable-{i:03d}", f"unknowable-g{i:03d}", "unknowable", 0, z))
    return out


def _row(identifier: str, group: str, source: str, label: int, z: list[float]) -> dict[str, Any]:
    total = sum(math.exp(value - max(z)) for value in z)
    return {
        "id": identifier, "group": group, "question": "q", "source": source, "task": source, "type": "choice",
        "variant": "clean", "keys": ["a", "b", "c"], "label": label, "control_id": None, "pair_id": None,
        "sibling": None, "parent": identifier, "p": [math.exp(value - max(z)) / total for value in z],
        "raw_probability_sum": 1.0, "zero_count": 0, "logits": z, "inference_temperature": 1.0,
    }  # fmt: skip


def write_rows(root: Path, directory: str, rows: list[dict[str, Any]], report: dict[str, Any] | None = None) -> None:
    place = root / directory
    place.mkdir(parents=True, exist_ok=True)
    (place / "rows.json").write_text(json.dumps(rows))
    if report is not None:
        (place / "report.json").write_text(json.dumps(report))


SPEC: dict[str, Any] = {
    "round": 41,
    "registered": "PLAN.md > Round 41",
    "reads": {
        "hard": {"suite": "evals/hard"},
        "docs": {"suite": "evals/docs"},
        "cal": {"suite": "evals/cal", "flags": "--split calibration"},
        "hardtest": {"suite": "evals/hard", "flags": "--allow-test"},
        "docstest": {"suite": "evals/docs", "flags": "--allow-test"},
    },
    "temperature": {"reads": ["cal"], "ci": {"level": 0.9, "samples": 200, "seed": 0}},
    "parents": {"4b": {"trial": "runs/p4/00-trial-0", "reads": "runs/p4-{tag}"}},
    "arms": {
        "4b-a": {"trial": "runs/r41-4b/00-trial-0", "parent": "4b"},
        "4b-b": {"trial": "runs/r41-4b/01-trial-1", "parent": "4b"},
    },
    "rule": {
        "panels": {
            "hard": {"reads": ["hard"], "metrics": ["acc", "ece"], "report": ["aurc"]},
            "both": {"reads": ["hard", "docs"], "metrics": ["acc", "brier"]},
        },
        "unknowable": "docs",
        "criteria": {
            "1_hard": {"left": "hard.acc.lower", "op": ">", "right": 0},
            "2_both": {"left": "both.brier.upper", "op": "<=", "right": 0.05},
            "2_unknowable": {"left": "unknowable.candidate", "op": "<=", "right": 0.1},
        },
        "rank": [{"by": ["hard.acc.delta", "both.acc.delta"]}],
    },
    "confirm": {
        "tests": {
            "candidate_reads": "runs/r41c-{size}-cand-{tag}",
            "parent_reads": "runs/r41c-{size}-parent-{tag}",
            "panels": {"hardtest": {"reads": ["hardtest"], "metrics": ["acc"]}},
            "criteria": {"gain": {"left": "hardtest.acc.lower", "op": ">", "right": 0}},
        },
        "docs": {
            "candidate_reads": "runs/r41c-{size}-cand-{tag}",
            "parent_reads": "runs/r41c-{size}-parent-{tag}",
            "panels": {"docstest": {"reads": ["docstest"], "metrics": ["acc"]}},
            "criteria": {"kept": {"left": "docstest.acc.lower", "op": ">=", "right": -0.05}},
        },
    },
}

STRENGTH = {"4b-a": 4.0, "4b-b": 1.2}
PARENT_STRENGTH = 1.0


def parse_spec(value: dict[str, Any]) -> RoundSpec:
    return parse_record(Path("r41.json"), value, RoundSpec)


def edited(**changes: Any) -> dict[str, Any]:
    """A deep copy of SPEC with top-level keys replaced."""
    return {**json.loads(json.dumps(SPEC)), **changes}


def write_round(root: Path) -> None:
    """The rows of every rule-stage read and of the parent's development set."""
    for arm, strength in STRENGTH.items():
        for number, tag in enumerate(("hard", "docs", "cal")):
            rows = make_rows(
                hash_of(arm, tag), strength=strength, source=tag, start=100 * number, unknowable=10 * (tag == "docs")
            )
            write_rows(root, f"runs/r41-{arm}-{tag}", rows)
    for number, tag in enumerate(("hard", "docs", "cal")):
        rows = make_rows(
            hash_of("p", tag), strength=PARENT_STRENGTH, source=tag, start=100 * number, unknowable=10 * (tag == "docs")
        )
        write_rows(root, f"runs/p4-{tag}", rows)
    write_rows(root, "runs/p4/00-trial-0/development", make_rows(7, strength=1.0, source="dev"))


def write_stage(root: Path, stage: str = "tests") -> None:
    """The reads of one confirmation stage, with the reports that say what was read."""
    tag = {"tests": "hardtest", "docs": "docstest"}[stage]
    for role, strength, run in (
        ("cand", 4.0, "/runs/r41-4b/00-trial-0/checkpoint"),
        ("parent", 1.0, "/runs/p4/00-trial-0/checkpoint"),
    ):
        rows = make_rows(hash_of(role, tag), strength=strength, source=tag)
        report = {"run": run, "suite_sha256": tag.removesuffix("test") * 8, "split": "test"}
        write_rows(root, f"runs/r41c-4b-{role}-{tag}", rows, report)


def hash_of(*words: str) -> int:
    return sum(ord(letter) * (place + 1) for place, letter in enumerate("/".join(words)))


def commit(root: Path, plan: str) -> None:
    """A repository at `root` whose HEAD has `plan` as its PLAN.md."""
    (root / "PLAN.md").write_text(plan)
    for command in (
        ["init", "-q"],
        ["add", "PLAN.md"],
        ["-c", "user.name=Researcher", "-c", "user.email=researcher@example.org", "-c", "commit.gpgsign=false",
         "commit", "-q", "-m", "Plan"],
    ):  # fmt: skip
        subprocess.run(["git", "-C", str(root), *command], check=True, capture_output=True)
