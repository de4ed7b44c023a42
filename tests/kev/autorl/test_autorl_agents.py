"""The agents that come along: what they train with is read from their source, and their rounds are on record."""

import json
import subprocess
from pathlib import Path

import pytest
from test_autorl_runner import command, workspace_of

from kev.autorl.__main__ import main
from kev.autorl.agent_folder import SHIPPED
from kev.autorl.journal.section import read_journal
from kev.autorl.journal.training import read_training


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
    found = read_training(SHIPPED / agent, file)
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
    reasons = [section.text("为什么") for section in read_journal(workspace.summary.read_text()).sections]
    assert "scores.json has" in reasons[1] and "for submission 1" in reasons[1]
    assert json.loads(workspace.metrics.read_text())["copy_model_count"] == 3
