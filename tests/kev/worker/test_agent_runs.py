"""What of an agent's run comes to the volume."""

from pathlib import Path

import pytest

from kev.errors import NotFound, Refused
from kev.worker.agent_runs import Records, records_in, run_agent
from kev.worker.orders import AgentOrder

from .conftest import Bench


def put(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)


def test_records_are_kept_and_models_links_and_the_graders_own_are_not(tmp_path: Path) -> None:
    root = tmp_path / "autorl"
    put(root, "results.csv", "task/run/scores.json", "task/run/reports/summary.md", "task/run/output/v1/model.bin",
        ".grader/key", ".grader/runs/task/run/store.jsonl", ".grader/runs/task/run/sealed/1/model.bin")  # fmt: skip
    (root / "task" / "run" / "passwords").symlink_to(tmp_path)
    found = {path.relative_to(root).as_posix() for path in records_in(root)}
    assert found == {"results.csv", "task/run/scores.json", "task/run/reports/summary.md",
                     ".grader/runs/task/run/store.jsonl"}  # fmt: skip


def test_what_changed_is_copied_again_and_what_did_not_is_left(bench: Bench, tmp_path: Path) -> None:
    root, home = tmp_path / "autorl", bench.runs.path / "autorl" / "first"
    put(root, "a.json", "b.json")
    records = Records(root, home, bench.container)
    assert records.copy() and not records.copy()
    (root / "a.json").write_text("longer than before")
    (home / "b.json").unlink()
    assert records.copy()
    assert (home / "a.json").read_text() == "longer than before" and not (home / "b.json").exists()


def test_a_name_is_used_once_and_a_base_must_be_there(bench: Bench) -> None:
    order = AgentOrder(
        run_id="r", sources=bench.order().sources, agent="copy_model", task="arithmetic", model="/runs/nowhere",
        name="first", seconds=60,
    )  # fmt: skip
    with pytest.raises(NotFound, match="/runs/nowhere"):
        run_agent(order, bench.container, bench.lines.append)
    put(bench.runs.path / "autorl" / "first", "results.csv")
    with pytest.raises(Refused, match="is there already"):
        run_agent(order, bench.container, bench.lines.append)
