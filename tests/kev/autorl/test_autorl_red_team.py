"""Nobody gains by cheating, and nobody honest is taken for a cheat."""

from pathlib import Path
from typing import Any

import pytest
from agents import PAIRS, Agent, Pair, published_weights
from grading import StandIn, run_of, served
from hand_clock import HandClock
from model_directories import model

from kev.autorl.evaluation import Asked
from kev.autorl.grading_process import ProcessEvaluator
from kev.autorl.tasks import Task, TaskRecord, freeze
from kev.errors import KevError, Refused

GAIN = "gain"


def play(root: Path, agent: Agent) -> dict[str, Any]:
    """A whole run of an agent; its final result, or that it is void."""
    clock = HandClock()
    known = model(root / "published" / "vendor-instruct", published_weights())
    run = run_of(root, known=(known,))
    with served(run, StandIn(), clock=clock) as found:
        found.clock = clock
        agent(found)
        try:
            return found.finish()
        except KevError as error:
            return {"verdict": "void", "error": str(error), "tampering": []}


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_a_cheat_gains_nothing(tmp_path: Path, pair: Pair) -> None:
    final = play(tmp_path, pair.cheat)
    assert final["verdict"] != GAIN, final
    assert final["verdict"] in ("tie", "no change", "no submission", "void"), final


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_its_honest_twin_passes(tmp_path: Path, pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    final = play(tmp_path, pair.twin)
    if final["verdict"] != GAIN or final["tampering"]:
        with capsys.disabled():
            print(f"\nfalse alarm: {pair.twin.__name__}, the twin of {pair.name}: {final}")
    assert final["verdict"] == GAIN and final["tampering"] == []


def test_what_was_forged_in_the_workspace_is_in_the_record(tmp_path: Path) -> None:
    by_name = {pair.name: pair for pair in PAIRS}
    scores = play(tmp_path / "a", by_name["a row of its own in scores.json"].cheat)
    time = play(tmp_path / "b", by_name["a clock of its own"].cheat)
    assert scores["tampering"] == ["scores.json was changed in the workspace"]
    assert time["tampering"] == ["run_meta.json was changed in the workspace"]


async def test_a_grader_whose_own_source_is_written_over_grades_no_more(tmp_path: Path) -> None:
    """The tenth probe: eval.py lay in the workspace as a link to the grader's own source."""
    base = model(tmp_path / "base", published_weights())
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "eval.py").write_text("def score(sample, output): return 0\n")
    (tmp_path / "t" / "samples.jsonl").write_text('{"prompt": "x"}\n')
    record = TaskRecord(name="t", evaluator="per_sample", settings={"eval": "eval.py", "samples": "samples.jsonl"})
    own = freeze(Task(record, tmp_path / "t"), tmp_path / "own")
    evaluator = ProcessEvaluator(own, base, b"secret", tmp_path / "scratch")
    (tmp_path / "t" / "eval.py").write_text("def score(sample, output): return 1\n")
    assert (tmp_path / "own" / "eval.py").read_text().endswith("return 0\n"), "the task's folder is not what is used"
    (tmp_path / "own" / "eval.py").write_text("def score(sample, output): return 1\n")
    with pytest.raises(Refused, match="nothing is graded any more"):
        await evaluator.evaluate(Asked(base, "validation", 0))
