"""A bench as tables, lines, JSON and one line: as scripts meet it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from bench_files import HOSTILE, SUMMARY, entry, result, workspace

from kevtui import exit_codes

REPOSITORY = Path(__file__).parents[3]
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")


def kevtui(*arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(
        [sys.executable, "-m", "kevtui", *arguments], capture_output=True, text=True, env=environment, timeout=60
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    scores = [entry(1, 24.0, label="gain"), entry(2, None, error=HOSTILE, model_path=HOSTILE)]
    path = workspace(tmp_path / "arithmetic" / "20270115T080000_sft", scores)
    (path / "agent.log").write_text(f"{HOSTILE}\r99%\n")
    (path / "reports" / "summary.md").write_text(SUMMARY + f"- **做了什么**: {HOSTILE}\n")
    (path / "final.json").write_text(json.dumps({"verdict": "gain", "submission_id": 1, "score": 23.0, "baseline": 20}))
    return path


@pytest.mark.parametrize("way", [["session", "--once"], ["session", "--json"], ["status"], ["status", "--tmux"]])
def test_hostile_text_of_a_bench_reaches_no_terminal(place: Path, way: list[str]) -> None:
    done = kevtui(way[0], str(place), *way[1:])
    assert (done.returncode, done.stderr) == (exit_codes.FINE, "")
    assert CONTROL.search(done.stdout) is None
    assert "24.00" in done.stdout or way[-1] == "--json"


def test_the_json_holds_what_the_files_hold(place: Path) -> None:
    run = json.loads(kevtui("session", str(place), "--json").stdout)["run"]
    assert (run["baseline"], run["best"]["score"], run["final"]["verdict"]) == (20.0, 24.0, "gain")
    assert run["submissions"][1]["error"] == HOSTILE
    assert run["journal"]["entries"][0]["train_type"] == "SFT"


def test_the_results_come_out_as_a_matrix_and_a_table(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    result(path, "a1", "sft", "arithmetic", 3.0, verdict="tie")
    result(path, "b1", "grpo", "decision", 5.25)
    done = kevtui("session", str(path), "--once")
    assert done.returncode == exit_codes.FINE, done.stderr
    assert re.search(r"sft +\+3\.00 \(1\) +–", done.stdout) and re.search(r"grpo +– +\+5\.25 \(1\)", done.stdout)
    status = kevtui("status", str(path)).stdout
    assert "2 runs, 0 running" in status and "best +5.25 grpo on decision" in status


def test_the_exit_status_tells_nothing_from_something_and_damage(place: Path, tmp_path: Path) -> None:
    assert kevtui("session", str(place), "--once", "--strict").returncode == exit_codes.FINE
    (place / "scores.json").write_text("{")
    assert kevtui("session", str(place), "--once", "--strict").returncode == exit_codes.FINDINGS
    bare = workspace(tmp_path / "t" / "20270115T080000_none", [])
    (bare / "run_meta.json").unlink()
    assert kevtui("status", str(bare)).returncode == exit_codes.NOTHING
