"""An agent is given a base in a container by the stock command line of Modal, and its records come home."""

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="a base is made here")

from kev.autorl.results import read_results
from kev.autorl.tasks import TaskRecord
from kev.model.tiny_base import make_tiny_base

from .conftest import Night

SCORE = """
import sys
from pathlib import Path
out = Path(sys.argv[2]) / "summary.csv"
out.write_text("dataset,version,metric,mode,model\\nmade-up,1,accuracy,gen,20.0\\n")
"""


def test_a_run_of_an_agent_is_one_call_whose_records_come_home(night: Night, tmp_path: Path) -> None:
    base = make_tiny_base(tmp_path / "base", hidden=32, layers=1, vocabulary=400)
    task = tmp_path / "task"
    task.mkdir()
    (task / "score.py").write_text(SCORE)
    command = [sys.executable, str(task / "score.py"), "{model}", "{work_dir}"]
    record = TaskRecord(name="made-up", evaluator="opencompass", settings={"command": command, "items": 400})
    (task / "task.json").write_text(json.dumps(record.to_json()))
    night.modal("volume", "put", "kev-hf-cache", str(base), "bases/agents")
    night.modal("volume", "put", "kev-hf-cache", str(task), "tasks/made-up")
    wanted = ("--agent", "copy_model", "--task", "/hf/tasks/made-up", "--model", "/hf/bases/agents", "--name", "first",
              "--seconds", "120")  # fmt: skip

    out, _ = night.run("agent", *wanted)
    home = night.root / "runs" / "autorl" / "first"
    assert f"kevtui session {home.relative_to(night.root)}/results.csv" in out
    (row,) = read_results(home / "results.csv").rows
    assert (row["agent"], row["verdict"], float(row["improvement"])) == ("copy_model", "no change", 0.0)
    (workspace,) = (home / "made-up").iterdir()
    assert len(json.loads((workspace / "scores.json").read_text())) == 3
    assert (workspace / "reports" / "summary.md").exists() and (workspace / "agent.log").exists()
    assert not list(home.rglob("*.safetensors")) and not list(home.rglob("key"))
    assert list(home.rglob("store.jsonl"))

    # The same again finds the run that was made, and another of that name is refused.
    again, _ = night.run("agent", *wanted)
    assert again.count("fc-") == 1 and again.split("fc-")[1][:20] == out.split("fc-")[1][:20]
    _, refused = night.run("agent", *wanted[:-1], "240", code=1)
    assert "a name is used once" in refused
