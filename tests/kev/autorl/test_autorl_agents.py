"""The agents that come along: what they train with is read from their source, and their rounds are on record."""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_autorl_runner import command, workspace_of
from test_autorl_serve import write_task

from kev.autorl.__main__ import main
from kev.autorl.agent_folder import SHIPPED
from kev.autorl.evaluators.problems import write_training_data
from kev.autorl.journal.section import read_journal
from kev.autorl.journal.training import read_code, training_in
from kev.autorl.results import read_results

REPOSITORY = Path(__file__).parents[3]
OFFLINE = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


def make_base(directory: Path) -> Path:
    """A base whose tokenizer knows the words of the problems."""
    script = runpy.run_path(str(REPOSITORY / "scripts" / "make_tiny_base.py"))
    assert script["main"](["--problems", "--out", str(directory)]) == 0
    return directory


@pytest.mark.parametrize(
    ("agent", "file", "kind", "settings"),
    [
        ("example_sft", "train.py", "SFT", {"lr": "0.003", "batch": "32", "max_steps": "70", "warmup_steps": "7"}),
        ("example_grpo", "warm_up.py", "SFT", {"lr": "0.003", "batch": "32", "max_steps": "85", "seed": "0"}),
        ("example_grpo", "grpo.py", "GRPO", {"lr": "0.0004", "batch": "64", "num_generations": "8", "beta": "0.0"}),
        ("copy_model", "train.py", "copy_model", {}),
    ],
)
def test_what_an_agent_trains_with_is_read_from_its_source(
    agent: str, file: str, kind: str, settings: dict[str, str]
) -> None:
    found = training_in(read_code(SHIPPED / agent), file)
    assert found.kind == kind and settings.items() <= found.settings.items()


def test_copies_of_the_base_end_without_an_improvement_and_are_on_record_as_what_they_are(tmp_path: Path) -> None:
    done = subprocess.run(
        command(tmp_path, SHIPPED / "copy_model", "--timeout", "300"), capture_output=True, text=True, timeout=120
    )
    found = json.loads(done.stdout)
    assert (found["verdict"], found["improvement"], found["submissions"]) == ("no change", 0.0, 3)
    workspace = workspace_of(tmp_path)
    assert main(["journal", "check", str(workspace.directory)]) == 0
    lines = [json.loads(line) for line in workspace.summary_lines.read_text().splitlines()]
    assert [(line["iteration"], line["train_type"], line["failure_type"], line["improvement"]) for line in lines] == [
        (number, "copy_model", "copy_model_fallback", 0.0) for number in (1, 2, 3)
    ]
    assert "journal: 3 rounds, no breach" in workspace.run_log.read_text()
    reasons = [section.text("为什么") for section in read_journal(workspace.summary.read_text()).sections]
    assert "scores.json has" in reasons[1] and "for submission 1" in reasons[1]
    assert json.loads(workspace.metrics.read_text())["copy_model_count"] == 3


def test_an_agent_that_trains_submits_each_round_and_appends_it(tmp_path: Path) -> None:
    pytest.importorskip("trl", reason="the example agents train with it; the extra `rl` brings it")
    agent = tmp_path / "agents" / "example_sft"
    shutil.copytree(SHIPPED / "example_sft", agent)
    script = (agent / "train.py").read_text()
    assert "STEPS = 70" in script
    (agent / "train.py").write_text(script.replace("STEPS = 70", "STEPS = 20"))
    write_training_data(tmp_path / "data", steps=1)
    base = make_base(tmp_path / "tiny")
    started = [
        sys.executable, "-m", "kev.autorl", "run", "--agent", str(agent), "--task", str(write_task(tmp_path / "task")),
        "--model", str(base), "--data", str(tmp_path / "data"), "--root", str(tmp_path / "runs"), "--json",
        "--timeout", "600",
    ]  # fmt: skip
    done = subprocess.run(started, capture_output=True, text=True, env=OFFLINE)
    found = json.loads(done.stdout)
    assert (found["submissions"], found["errors"], found["exit_code"]) == (3, 0, 0)
    workspace = workspace_of(tmp_path)
    assert main(["journal", "check", str(workspace.directory)]) == 0
    sections = read_journal(workspace.summary.read_text()).sections
    assert [(each.train_type, each.setting("max_steps")) for each in sections] == [("SFT", "20")] * 3
    losses = [re.search(r"loss (\S+) -> (\S+) over 20 steps", each.text("问题/进步")) for each in sections]
    assert [float(each[1]) > float(each[2]) for each in losses if each] == [True] * 3


@pytest.mark.soak
@pytest.mark.parametrize(("agent", "seconds"), [("example_sft", 280), ("example_grpo", 570)])
def test_an_agent_that_trains_ends_better_than_its_base(tmp_path: Path, agent: str, seconds: int) -> None:
    base = make_base(tmp_path / "tiny")
    started = [
        sys.executable, "-m", "kev.autorl", "run", "--agent", agent, "--task", "arithmetic", "--model", str(base),
        "--root", str(tmp_path / "runs"), "--json", "--timeout", str(seconds),
    ]  # fmt: skip
    done = subprocess.run(started, capture_output=True, text=True, env=OFFLINE)
    found = json.loads(done.stdout)
    assert found["verdict"] == "gain" and found["best_score"] > found["baseline"] and found["submissions"] >= 3
    (row,) = read_results(tmp_path / "runs" / "results.csv").rows
    directory = Path(row["workspace"])
    assert main(["journal", "check", str(directory)]) == 0
    kinds = [json.loads(line)["train_type"] for line in (directory / "reports/summary.jsonl").read_text().splitlines()]
    assert kinds == (["SFT"] * 3 if agent == "example_sft" else ["SFT", "GRPO", "GRPO"])
    figures = json.loads((directory / "reports" / "metrics.json").read_text())
    assert figures["best_score"] == found["best_score"] and figures["time_to_first_improvement"] is not None
