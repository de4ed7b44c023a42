"""Evaluators grade what they say they grade, in processes of their own, on items that nobody was given."""

import asyncio
import json
import os
import select
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pytest
from causal import make_base, teach
from hypothesis import given
from hypothesis import strategies as st
from model_directories import model, tensors

from kev.autorl.engines import open_engine, tokenizer_for
from kev.autorl.evaluation import Asked
from kev.autorl.evaluators import decision, per_sample
from kev.autorl.evaluators.arithmetic import choose
from kev.autorl.evaluators.opencompass import evaluate as run_opencompass
from kev.autorl.evaluators.opencompass import read_summary
from kev.autorl.evaluators.order import Order
from kev.autorl.evaluators.problems import (
    make_problems,
    number_in,
    read_problems,
    training_problems,
    write_training_data,
)
from kev.autorl.evaluators.sandbox import Failed, Sandbox
from kev.autorl.grading_process import ProcessEvaluator, environment
from kev.autorl.tasks import BUILT_IN, Task, TaskRecord, freeze, open_task, sha256_of
from kev.errors import DamagedFile, DamagedLine, KevError, NotFound, Refused, UsageError

Split = Literal["validation", "hidden"]


def order(task: Task, split: Split = "validation", seed: int = 0, **more: Any) -> Order:
    facts: dict[str, Any] = {"model": Path("m"), "base": Path("b"), "secret": b"s", "engine": "auto", "scratch": Path()}
    return Order(task=task, split=split, seed=seed, **(facts | more))


def folder(path: Path, record: dict[str, Any], **contents: str) -> Path:
    path.mkdir(exist_ok=True)
    (path / "task.json").write_text(json.dumps(record))
    for name, content in contents.items():
        (path / name.replace("__", ".")).write_text(content)
    return path


# ------------------------------------------------------------------------------------------------- problems


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (" 3 + 4 = 7\n#### 7", 7), ("#### 1,234", 1234), ("#### $18.50 in all", Decimal("18.5")), ("so 5 or 6.", 6),
        ("#### 7 apples, not 8", 7), ("#### -2", -2), ("none", None), ("####", None), ("#### " + "9" * 50, None),
        ("#### 7.0", 7), ("#### 1 #### 2", 2), ("#### \u0663", None), ("", None),
    ],
)  # fmt: skip
def test_the_number_that_counts_is_the_one_after_the_mark(text: str, number: object) -> None:
    assert number_in(text) == number


@given(st.text())
def test_no_completion_breaks_the_grading(text: str) -> None:
    found = number_in(text)
    assert found is None or found.is_finite()


@given(st.integers(0, 2**32), st.integers(1, 4))
def test_what_a_problem_says_is_right(seed: int, steps: int) -> None:
    import random

    problem = next(make_problems(random.Random(seed), steps))
    words = problem.question.replace(".", "").split()
    have = int(words[2])
    for place, word in enumerate(words):
        if word in ("gets", "gives"):
            by = int(next(each for each in words[place:] if each.isdigit()))
            have += by if word == "gets" else -by
    assert problem.number == have >= 0 and number_in(problem.answer) == have


def test_hidden_and_validation_problems_are_nobodys_and_never_shared() -> None:
    task = Task(BUILT_IN["arithmetic"])
    drawn = {
        (split, seed): {each.question for each in choose(order(task, split, seed))}
        for split in ("validation", "hidden")
        for seed in range(3)
    }  # type: dict[tuple[str, int], set[str]]
    known = {each.question for each in training_problems(2000, 1)}
    assert all(len(questions) == 200 and not questions & known for questions in drawn.values())
    validation, hidden = (set().union(*(drawn[split, seed] for seed in range(3))) for split in ("validation", "hidden"))
    assert not validation & hidden
    assert drawn["hidden", 0] != drawn["hidden", 1]
    assert choose(order(task)) == choose(order(task)) != choose(order(task, secret=b"another season"))


def test_a_file_in_the_form_of_gsm8k_is_read_and_half_of_it_hidden(tmp_path: Path) -> None:
    write_training_data(tmp_path, count=60)
    found = read_problems(tmp_path / "train.jsonl")
    assert len(found) == 60 and found == training_problems(60, 1)
    task = open_task(str(folder(tmp_path / "t", {"name": "mine", "evaluator": "arithmetic",
        "settings": {"file": "p.jsonl", "items": 1000}}, p__jsonl=(tmp_path / "train.jsonl").read_text())))  # fmt: skip
    validation, hidden = choose(order(task)), choose(order(task, "hidden"))
    assert {each.question for each in (*validation, *hidden)} == {each.question for each in found}
    assert len(validation) + len(hidden) == 60 and validation and hidden
    (tmp_path / "bad.jsonl").write_text('{"question": "q", "answer": "#### 1"}\n{"question": "q", "answer": "one"}\n')
    with pytest.raises(DamagedLine, match="line 2: the answer does not end in"):
        read_problems(tmp_path / "bad.jsonl")


# ------------------------------------------------------------------------------------------------- tasks


def test_a_run_keeps_its_own_copy_of_a_task(tmp_path: Path) -> None:
    record = {"name": "mine", "evaluator": "per_sample", "settings": {"eval": "eval.py", "samples": "s.jsonl"}}
    task = open_task(str(folder(tmp_path / "t", record, eval__py="def score(s, o): return 0\n", s__jsonl="{}\n")))
    frozen = freeze(task, tmp_path / "own")
    (tmp_path / "t" / "eval.py").write_text("def score(s, o): return 1\n")
    assert sha256_of(freeze(task, tmp_path / "own")) == sha256_of(frozen) != sha256_of(task)


@pytest.mark.parametrize(
    ("record", "error", "says"),
    [
        ({"name": "x", "evaluator": "vibes"}, DamagedFile, "one of arithmetic"),
        ({"name": "../x", "evaluator": "arithmetic"}, UsageError, "task"),
        (
            {"name": "x", "evaluator": "per_sample", "settings": {"eval": "../e.py"}},
            UsageError,
            "not the name of a file",
        ),
        ({"name": "x", "evaluator": "per_sample", "settings": {"eval": "gone.py"}}, NotFound, "no such file"),
        ({"name": "x"}, DamagedFile, "evaluator"),
    ],
)
def test_a_task_that_cannot_be_meant_is_refused(
    tmp_path: Path, record: dict[str, Any], error: type[KevError], says: str
) -> None:
    with pytest.raises(error, match=says):
        open_task(str(folder(tmp_path / "t", record)))
    with pytest.raises(NotFound, match="did you mean arithmetic"):
        open_task("arithmetics")


# ------------------------------------------------------------------------------------------------- per sample

EVAL = """
import os, sys, time
print("hello, I print")
def prompt(sample): return sample["q"]
def score(sample, output):
    if sample["q"] == "slow": time.sleep(60)
    if sample["q"] == "hungry": return len(bytearray(10**10))
    if sample["q"] == "exit": os._exit(3)
    if sample["q"] == "raise": raise KeyError("\\x1b[2J")
    if sample["q"] == "forge": os.write(1, b'{"value": 1}\\n')
    return sample["worth"]
"""


def test_a_sample_that_breaks_the_evaluation_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "eval.py"
    path.write_text(EVAL)
    with Sandbox(path, seconds=60, memory=512 * 1024**2) as sandbox:
        assert sandbox.ask("prompt", {"q": "a\u2028b"}) == "a\u2028b"
        assert sandbox.ask("score", {"q": "x", "worth": 0.5}, "text") == 0.5
        for name, says in [("hungry", "MemoryError"), ("exit", "ended"), ("raise", "x1b")]:
            with pytest.raises(Failed, match=says):
                sandbox.ask("score", {"q": name}, "text")
            assert sandbox.ask("score", {"q": "forge", "worth": 0.25}, "text") == 0.25


def test_a_sample_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    path = tmp_path / "eval.py"
    path.write_text(EVAL)
    with Sandbox(path, seconds=0.2, memory=512 * 1024**2) as sandbox, pytest.raises(Failed, match=r"more than 0\.2 s"):
        sandbox.ask("score", {"q": "slow"}, "text")


@pytest.mark.parametrize(
    ("content", "says"), [("x = 1", "defines no score"), ("import nothing_like_it", "ModuleNotFound"), ("(", "Syntax")]
)
def test_a_file_that_cannot_be_an_evaluation_says_why(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "eval.py"
    path.write_text(content)
    with pytest.raises(Failed, match=says), Sandbox(path, seconds=5, memory=512 * 1024**2) as sandbox:
        sandbox.ask("score", {}, "")


# ------------------------------------------------------------------------------------------------- opencompass

SUMMARY = """
import pathlib, sys
work = pathlib.Path(sys.argv[2]) / "20270101_000000" / "summary"
work.mkdir(parents=True)
rows = ["dataset,version,metric,mode,mine", "gsm8k,1d7fe4,accuracy,gen,61.5", "math,393424,accuracy,gen,38.5"]
(work / "summary_20270101_000000.csv").write_text("\\n".join(rows) + "\\n")
print(sys.argv[1])
"""


def test_a_command_is_called_and_its_own_summary_read(tmp_path: Path) -> None:
    (tmp_path / "fake.py").write_text(SUMMARY)
    command = [sys.executable, str(tmp_path / "fake.py"), "{model}", "{work_dir}"]
    planted = tmp_path / "m" / "20990101_000000" / "summary"
    planted.mkdir(parents=True)
    (planted / "summary_20990101_000000.csv").write_text("dataset,version,metric,mode,mine\ngsm8k,x,accuracy,gen,100\n")

    def ask(**settings: Any) -> Any:
        task = Task(TaskRecord(name="t", evaluator="opencompass", settings={"command": command, **settings}))
        scratch = tmp_path / f"scratch-{len(list(tmp_path.iterdir()))}"
        return run_opencompass(order(task, model=tmp_path / "m", scratch=scratch))

    found = ask()
    assert found.score == 50 and found.accuracy_summary["datasets"] == {"gsm8k": 61.5, "math": 38.5}
    assert ask(datasets=["math"]).score == 38.5
    with pytest.raises(Refused, match="no score for 'mmlu'"):
        ask(datasets=["mmlu"])
    with pytest.raises(UsageError, match="no such command"):
        ask(command=["a-command-that-is-not-there"])
    with pytest.raises(Refused, match="exit code 1"):
        ask(command=[sys.executable, "-c", "raise SystemExit('no dataset')"])
    with pytest.raises(NotFound, match="left no summary"):
        ask(command=[sys.executable, "-c", ""])


@pytest.mark.parametrize(
    "rows", ["", "gsm8k,x,acc,gen,-\n", "gsm8k,x,acc,gen,nan\n", "gsm8k,x,acc,gen\n", "a,x,a,g,1\na,x,a,g,2\n"]
)
def test_a_summary_with_a_hole_gives_no_score(tmp_path: Path, rows: str) -> None:
    (tmp_path / "s.csv").write_text("dataset,version,metric,mode,mine\n" + rows)
    with pytest.raises(DamagedFile):
        read_summary(tmp_path / "s.csv")


# ------------------------------------------------------------------------------------------------- processes


def grade(evaluator: ProcessEvaluator, path: Path, split: Split = "validation", seed: int = 0) -> Any:
    return asyncio.run(evaluator.evaluate(Asked(path, split, seed)))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_base(tmp_path_factory.mktemp("bases") / "tiny")


def test_a_tiny_model_is_really_graded_and_gains_by_training(base: Path, tmp_path: Path) -> None:
    task = Task(BUILT_IN["arithmetic"].model_copy(update={"settings": {"items": 48, "max_new_tokens": 8}}))
    taught = teach(base, tmp_path / "taught", steps=40, answer="#### 5")
    evaluator = ProcessEvaluator(task, base, b"secret", tmp_path / "scratch")
    before, after = grade(evaluator, base), grade(evaluator, taught)
    right = sum(each.number == 5 for each in choose(order(task, secret=b"secret")))
    assert before.error is None and after.error is None
    assert (before.items, after.items) == (48, 48) and before.eval_type == "exact match"
    assert after.score == pytest.approx(100 * right / 48) and after.score > before.score
    assert after.accuracy_summary["engine"] == "transformers"
    assert not list((tmp_path / "scratch").iterdir())


def test_a_model_that_lacks_weights_its_configuration_asks_for_is_never_generated_with(
    base: Path, tmp_path: Path
) -> None:
    untied = json.loads((base / "config.json").read_text()) | {"tie_word_embeddings": False}
    lacking = model(tmp_path / "lacking", {}, config__json=json.dumps(untied).encode())
    (lacking / "model.safetensors").write_bytes((base / "model.safetensors").read_bytes())
    with pytest.raises(DamagedFile, match=r"1 weights .* are not in its files, lm_head\.weight the first"):
        open_engine("transformers", lacking, base)


def test_a_per_sample_task_is_graded_with_the_users_own_file(base: Path, tmp_path: Path) -> None:
    settings = {"eval": "eval.py", "samples": "s.jsonl", "hidden": "h.jsonl", "max_new_tokens": 2}
    record = {"name": "mine", "evaluator": "per_sample", "settings": settings}
    samples = "".join(json.dumps({"q": name, "worth": worth}) + "\n" for name, worth in
                      [("a", 1), ("b", 0.5), ("raise", 1), ("d", True)])  # fmt: skip
    task = open_task(str(folder(tmp_path / "t", record, eval__py=EVAL, s__jsonl=samples, h__jsonl='{"q": "raise"}\n')))
    found = per_sample.evaluate(order(freeze(task, tmp_path / "own"), model=base, base=base))
    assert (found.score, found.items, found.accuracy_summary["failed"]) == (62.5, 4, 1)  # type: ignore[index]
    hidden = per_sample.evaluate(order(task, "hidden", model=base, base=base))
    assert hidden.score is None and "no sample could be scored" in str(hidden.error)


def test_a_decision_suite_grades_checkpoints_and_bare_backbones(base: Path, tmp_path: Path) -> None:
    from small_suite import write_suites

    from kev.model.loading import new_model
    from kev.model.saving import save_checkpoint
    from kev.model.settings import Settings

    suite, _ = write_suites(tmp_path)
    record = TaskRecord(name="d", evaluator="decision", settings={"suite": str(suite.directory), "items": 10})
    save_checkpoint(tmp_path / "own", new_model(str(base), Settings(lora=0), seed=5))
    task = Task(record)
    bare = decision.evaluate(order(task, model=base, base=base, scratch=tmp_path / "scratch"))
    own = decision.evaluate(order(task, "hidden", model=tmp_path / "own", base=base, scratch=tmp_path))
    for found, partition in ((bare, "development"), (own, "test")):
        assert found.items == 10 and found.accuracy_summary is not None and found.score is not None
        assert found.accuracy_summary["partition"] == partition and found.accuracy_summary["refused"] == 0
        assert found.score == found.accuracy_summary["right"] * 10


def test_a_model_that_cannot_be_loaded_is_an_error_in_a_line(base: Path, tmp_path: Path) -> None:
    evaluator = ProcessEvaluator(Task(BUILT_IN["arithmetic"]), base, b"x", tmp_path / "scratch")
    found = grade(evaluator, model(tmp_path / "odd", tensors(0)))
    assert found.score is None and "could not be loaded" in found.error and "\n" not in found.error


def test_a_grading_that_is_given_up_is_ended_with_all_it_started(base: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pid")
    program = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    task = Task(TaskRecord(name="t", evaluator="opencompass", settings={"command": [sys.executable, "-c", program]}))
    evaluator = ProcessEvaluator(task, base, b"x", tmp_path / "scratch")

    async def give_up() -> int:
        grading = asyncio.create_task(evaluator.evaluate(Asked(base, "validation", 0)))
        started = os.pidfd_open(int(await asyncio.to_thread((tmp_path / "pid").read_text)))
        grading.cancel()
        await asyncio.gather(grading, return_exceptions=True)
        return started

    ended = asyncio.run(give_up())
    assert select.select([ended], [], [], 60)[0], "the command that the grading started lives on"
    os.close(ended)
    assert not list((tmp_path / "scratch").iterdir())


def test_a_grading_that_takes_too_long_is_an_error(base: Path, tmp_path: Path) -> None:
    evaluator = ProcessEvaluator(Task(BUILT_IN["arithmetic"]), base, b"x", tmp_path / "scratch", seconds=0.01)
    with pytest.raises(Refused, match="took more than"):
        grade(evaluator, base)


def test_a_grader_whose_task_was_changed_grades_no_more(tmp_path: Path, base: Path) -> None:
    record = {"name": "mine", "evaluator": "per_sample", "settings": {"eval": "eval.py", "samples": "s.jsonl"}}
    task = freeze(open_task(str(folder(tmp_path / "t", record, eval__py=EVAL, s__jsonl="{}\n"))), tmp_path / "own")
    evaluator = ProcessEvaluator(task, base, b"x", tmp_path / "scratch")
    (tmp_path / "own" / "eval.py").write_text("def score(s, o): return 1\n")
    with pytest.raises(Refused, match="was changed while the grader ran"):
        grade(evaluator, base)


def test_a_grading_process_has_no_key_and_no_proxy() -> None:
    kept = environment(("1",), {"PATH": "/bin", "OPENAI_API_KEY": "x", "HTTPS_PROXY": "y", "PYTHONSTARTUP": "z"})
    assert kept["CUDA_VISIBLE_DEVICES"] == "1" and not {"OPENAI_API_KEY", "HTTPS_PROXY", "PYTHONSTARTUP"} & kept.keys()


def test_the_tokenizer_is_the_bases_unless_the_vocabulary_grew(tmp_path: Path) -> None:
    import numpy

    embedding = {"model.embed_tokens.weight": numpy.ones((10, 4))}
    base = model(tmp_path / "base", embedding)
    same = model(tmp_path / "same", embedding, tokenizer__json=b"answers")
    grown = model(tmp_path / "grown", {"model.embed_tokens.weight": numpy.ones((12, 4))})
    assert tokenizer_for(same, base) == base and tokenizer_for(grown, base) == grown


def test_an_engine_that_is_not_here_says_what_to_do(base: Path) -> None:
    with pytest.raises(UsageError, match="kevtui\\[gpu\\]"):
        open_engine("vllm", base, base)
    with pytest.raises(UsageError, match="one of auto, transformers, vllm"):
        open_engine("magic", base, base)
