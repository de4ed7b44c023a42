"""A read is complete, honest about what it left out, and loses no answer however it dies."""

import json
import math
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from linear_scorer import EVALS, LinearScorer, trained_scorer

from kev.baseline import read as baseline_read
from kev.benchmark import main
from kev.errors import DamagedFile, DamagedLine, KevError, LockHeld, Refused
from kev.files import locked
from kev.linear import fit
from kev.metrics import measure, rows_from_json, scored
from kev.predictors.local import LocalPredictor
from kev.predictors.prediction import Outcome, Request, request_of
from kev.reads.attempt import Options, read
from kev.reads.read import RecordFailed
from kev.reads.records import Selection, select_file, select_partition
from kev.records.report import Report
from kev.records.rows import read_rows
from kev.suite import open_suite


def partition(name: str = "heldout-stock-v1", split: str = "development") -> Selection:
    return select_partition(open_suite(EVALS / name), split)


def load(path: Path) -> Any:
    return json.loads(path.read_text())


class Dying(LocalPredictor):
    """A predictor that dies after some batches."""

    def __init__(self, scorer: LinearScorer, batches: int, batch: int = 32) -> None:
        super().__init__(scorer, batch=batch)
        self.left = batches

    def predict(self, requests: Sequence[Request]) -> list[Outcome]:
        if not self.left:
            raise RuntimeError("the machine is gone")
        self.left -= 1
        return super().predict(requests)


def test_a_read_has_the_rows_and_the_figures_that_the_same_model_gave_before(tmp_path: Path) -> None:
    scorer = trained_scorer()
    said: list[str] = []
    report = read(LocalPredictor(scorer), partition("transfer-v1"), tmp_path / "read", said.append)
    baseline_read(scorer.model, open_suite(EVALS / "transfer-v1"), "development", tmp_path / "baseline")
    ours, theirs = load(tmp_path / "read" / "rows.json"), load(tmp_path / "baseline" / "rows.json")
    assert [row["logits"] for row in ours] == [row["logits"] for row in theirs]
    assert [(row["id"], row["keys"], row["label"]) for row in ours] == [
        (row["id"], row["keys"], row["label"]) for row in theirs
    ]
    assert report["clean"] == load(tmp_path / "baseline" / "report.json")["clean"]
    assert said[-1] == f"evaluated {len(partition('transfer-v1').records)}/{len(partition('transfer-v1').records)}"


def test_an_answer_that_is_no_number_is_named_by_record_and_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = trained_scorer()
    broken = [[[math.nan] * 9]] * 32
    monkeypatch.setattr(scorer, "score", lambda encoded: broken[: len(encoded)])
    chosen = partition()
    named = f"record {chosen.records[0].meta.id}, question {next(iter(chosen.records[0].questions))}: a logit is not"
    with pytest.raises(KevError, match=re.escape(named)):
        LocalPredictor(scorer).predict([request_of(chosen.records[0])])


def test_a_report_holds_every_block_that_readers_look_for(tmp_path: Path) -> None:
    report = read(LocalPredictor(trained_scorer()), partition("decision-v1"), tmp_path / "read", lambda _: None)
    wanted = {
        "objective", "paired_flip", "unknowable", "clean", "tasks", "variants", "heldout_tasks", "permutation",
        "temperature", "calibrated_clean", "metric_policy", "coverage", "latency_ms", "calibration", "suite_sha256",
        "data", "date_facts", "rotations", "run", "split", "calibration_applied", "environment", "remote",
    }  # fmt: skip
    assert wanted <= report.keys()
    Report.model_validate(load(tmp_path / "read" / "report.json"))
    columns = rows_from_json(load(tmp_path / "read" / "rows.json"))
    assert report["clean"] == measure(scored(columns))
    assert report["latency_ms"]["n"] == report["coverage"]["evaluated_records"] - 1, "the cold first record is apart"
    assert len(read_rows(tmp_path / "read" / "rows.json")) == report["coverage"]["evaluated_questions"]


@pytest.mark.parametrize("batches", [0, 1, 3])
def test_a_read_that_died_goes_on_and_ends_in_the_same_bytes(tmp_path: Path, batches: int) -> None:
    scorer, chosen = trained_scorer(), partition()
    read(LocalPredictor(scorer), chosen, tmp_path / "whole", lambda _: None)
    with pytest.raises(RuntimeError):
        read(Dying(scorer, batches), chosen, tmp_path / "died", lambda _: None)
    failure = load(tmp_path / "died" / "failure.json")
    assert failure["coverage"]["evaluated_records"] == 32 * batches
    scorer.scored.clear()
    said: list[str] = []
    report = read(LocalPredictor(scorer), chosen, tmp_path / "died", said.append)
    assert sum(scorer.scored) == len(chosen.records) - 32 * batches, "what was answered is not asked again"
    assert said[0] == f"resumed: attempt 2, {32 * batches}/{len(chosen.records)} records read before"
    assert report["resumed"] == {"attempts": 2, "records_read_before": 32 * batches}
    assert (tmp_path / "died" / "rows.json").read_bytes() == (tmp_path / "whole" / "rows.json").read_bytes()
    assert not (tmp_path / "died" / "failure.json").exists()


def test_a_line_that_a_kill_cut_short_is_asked_again_and_nothing_else(tmp_path: Path) -> None:
    scorer, chosen = trained_scorer(), partition()
    read(LocalPredictor(scorer), chosen, tmp_path / "whole", lambda _: None)
    with pytest.raises(RuntimeError):
        read(Dying(scorer, 2), chosen, tmp_path / "died", lambda _: None)
    journal = tmp_path / "died" / "predictions.jsonl"
    journal.write_bytes(journal.read_bytes()[:-40])
    said: list[str] = []
    read(LocalPredictor(scorer), chosen, tmp_path / "died", said.append)
    assert said[0].endswith(f"63/{len(chosen.records)} records read before")
    assert "1 damaged lines" in said[1]
    assert (tmp_path / "died" / "rows.json").read_bytes() == (tmp_path / "whole" / "rows.json").read_bytes()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"scorer": {"temperature": 2.0}}, "temperature"),
        ({"split": "calibration"}, "split"),
        ({"options": Options(date_facts=True)}, "date_facts"),
        ({"options": Options(rotations=2)}, "rotations"),
        ({"batch": 8}, "batch"),
    ],
)
def test_an_unfinished_read_of_something_else_is_not_gone_on_with(
    tmp_path: Path, change: dict[str, Any], named: str
) -> None:
    with pytest.raises(RuntimeError):
        read(Dying(trained_scorer(), 1), partition(), tmp_path / "died", lambda _: None)
    before = (tmp_path / "died" / "predictions.jsonl").read_bytes()
    predictor = LocalPredictor(trained_scorer(**change.get("scorer", {})), batch=change.get("batch", 32))
    with pytest.raises(Refused, match=f"unfinished read of something else .*{named}"):
        read(predictor, partition(split=change.get("split", "development")), tmp_path / "died", lambda _: None,
             options=change.get("options"))  # fmt: skip
    assert (tmp_path / "died" / "predictions.jsonl").read_bytes() == before


def test_a_finished_read_and_a_stranger_s_directory_are_never_replaced(tmp_path: Path) -> None:
    predictor = LocalPredictor(trained_scorer())
    read(predictor, partition(), tmp_path / "read", lambda _: None)
    with pytest.raises(Refused, match="never replaces"):
        read(predictor, partition(), tmp_path / "read", lambda _: None)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("mine")
    with pytest.raises(Refused, match="holds no read"):
        read(predictor, partition(), tmp_path / "notes", lambda _: None)
    assert [path.name for path in (tmp_path / "notes").iterdir()] == ["mine.txt"]


def test_two_processes_never_write_one_read(tmp_path: Path) -> None:
    with locked(tmp_path / ".read-read.lock"), pytest.raises(LockHeld):
        read(LocalPredictor(trained_scorer()), partition(), tmp_path / "read", lambda _: None)


def long_file(tmp_path: Path) -> Path:
    question = {"type": "noul", "instructions": "?", "label": True}
    lines = [{"state": "word " * words, "questions": {"q": question}} for words in (3, 50, 4)]
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_record_that_is_too_long_is_counted_where_nothing_was_promised(tmp_path: Path) -> None:
    scorer = LinearScorer(fit([]), max_state=20)
    report = read(LocalPredictor(scorer), select_file(long_file(tmp_path)), tmp_path / "read", lambda _: None)
    assert report["coverage"] == {
        "requested_records": 3, "requested_questions": 3, "evaluated_records": 2, "evaluated_questions": 2,
        "rejected_records": 1, "truncated_records": 0,
    }  # fmt: skip
    [rejected] = load(tmp_path / "read" / "rejected.json")
    assert rejected["id"] == "custom/2" and "over the limit of 20" in rejected["error"]
    assert report["split"] == "custom" and report["data"] == str(tmp_path / "mine.jsonl")


def test_a_record_that_is_too_long_ends_the_read_of_a_training_suite(tmp_path: Path) -> None:
    scorer = trained_scorer(max_state=5)
    for _ in range(2):
        with pytest.raises(RecordFailed, match="over the limit"):
            read(LocalPredictor(scorer), partition("decision-v1"), tmp_path / "read", lambda _: None)
    failure = load(tmp_path / "read" / "failure.json")
    assert failure["error_type"] == "RecordFailed" and failure["record_id"]
    assert not (tmp_path / "read" / "report.json").exists()


def test_a_read_that_answers_nothing_is_no_read(tmp_path: Path) -> None:
    scorer = LinearScorer(fit([]), max_state=1)
    with pytest.raises(Refused, match="not one of 3 records"):
        read(LocalPredictor(scorer), select_file(long_file(tmp_path)), tmp_path / "read", lambda _: None)


def test_lines_of_a_file_end_at_newlines_and_nowhere_else(tmp_path: Path) -> None:
    odd = "one\u2028two\u2029three\x85four\ufefffive"
    question = {"type": "choice", "instructions": odd, "criteria": {odd: None, "b": None}, "label": odd}
    record = json.dumps({"state": odd, "questions": {"q": question}}, ensure_ascii=False).encode()
    path = tmp_path / "odd.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + record + b"\r\n\r\n" + record + b"\n   \n" + record)
    chosen = select_file(path)
    assert [record.meta.id for record in chosen.records] == ["custom/1", "custom/3", "custom/5"]
    assert {record.state for record in chosen.records} == {odd}
    read(LocalPredictor(LinearScorer(fit([]))), chosen, tmp_path / "read", lambda _: None)
    assert load(tmp_path / "read" / "rows.json")[0]["keys"] == [odd, "b"]
    assert odd.encode() in (tmp_path / "read" / "predictions.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'{"state": 1, "questions": {"q": {"type": "noul", "label": true}}}\n\n{"state": "cut\n', "line 3: "),
        ('{"state": 1}\n'.encode("utf-16"), "line 1: UTF-16"),
        (b'{"state": 1, "questions": {}}\n', "line 1: has no questions"),
        (b'{"state": 1, "questions": {"q": {"type": "choice", "criteria": {"a": null}, "label": "b"}}}\n', "line 1: "),
        (b'{"state": 1, "questions": {"q": {"type": "noul", "label": 2}}}\n', "line 1: question q: the label 2"),
        (b"[]\n", "line 1: "),
        (
            b'{"state": 1, "questions": {"q": {"type": "noul", "label": true}, '
            b'"\\u0071": {"type": "noul", "label": true}}}\n',
            "line 1: the key 'q' is given twice in one object",
        ),
        (
            b'\xef\xbb\xbf{"state": 1, "questions": {"q": {"type": "noul", "label": true}}, "_meta": {"id": "a"}}\n\n'
            b'{"state": 2, "questions": {"q": {"type": "noul", "label": true}}, "_meta": {"id": "a"}}\r\n',
            "line 3: the id 'a' is that of line 1; give each record its own",
        ),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_written(
    tmp_path: Path, data: bytes, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.jsonl").write_bytes(data)
    with pytest.raises(DamagedLine, match=says):
        select_file(tmp_path / "bad.jsonl")
    assert main(["--run", "nowhere", "--data", str(tmp_path / "bad.jsonl"), "--out", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_yes_or_no_question_is_read_whatever_stands_for_its_descriptions(tmp_path: Path) -> None:
    question = {"type": "noul", "instructions": "?", "label": False}
    lines = [{"state": "s", "questions": {"q": question | {"criteria": each}}} for each in (None, {}, "is it", ["x"])]
    (tmp_path / "odd.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    records = select_file(tmp_path / "odd.jsonl").records
    assert [record.questions["q"].options for record in records] == [["no", "yes"]] * 4


def test_ids_that_look_alike_are_two_records_and_are_named(tmp_path: Path) -> None:
    questions = {"q": {"type": "noul", "instructions": "?", "label": True}}
    lines = [
        {"state": "s", "questions": questions, "_meta": {"id": each}} for each in ("r\u00e9", "re\u0301", "r", "r ")
    ]
    (tmp_path / "alike.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    said: list[str] = []
    report = read(
        LocalPredictor(trained_scorer()), select_file(tmp_path / "alike.jsonl"), tmp_path / "read", said.append
    )
    assert report["coverage"]["evaluated_records"] == 4
    assert said[:2] == [
        "!!! ids 'r\\xe9' and 're\\u0301' look alike and are two records",
        "!!! ids 'r' and 'r ' look alike and are two records",
    ]


def test_an_empty_file_is_no_data(tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").write_bytes(b"\n\n")
    with pytest.raises(DamagedFile, match="no records"):
        select_file(tmp_path / "none.jsonl")


def test_a_sample_keeps_groups_whole_and_is_the_same_every_time() -> None:
    chosen = partition("decision-v1")
    small = chosen.sample(60)
    assert 60 <= len(small.records) < 75
    assert [record.meta.id for record in small.records] == [r.meta.id for r in chosen.sample(60).records]
    groups = {record.meta.group_id for record in small.records}
    assert [r.meta.id for r in chosen.records if r.meta.group_id in groups] == [r.meta.id for r in small.records]
    assert chosen.sample(None) is chosen and chosen.sample(10_000) is chosen


def test_rotations_average_the_orders_of_a_choice_and_leave_the_rest(tmp_path: Path) -> None:
    chosen = partition("decision-v1")
    read(LocalPredictor(trained_scorer()), chosen, tmp_path / "one", lambda _: None)
    scorer = trained_scorer()
    report = read(LocalPredictor(scorer), chosen, tmp_path / "four", lambda _: None, options=Options(rotations=4))
    assert report["rotations"] == 4
    assert sum(scorer.scored) > len(chosen.records), "each choice is asked in several orders"
    for one, four in zip(load(tmp_path / "one" / "rows.json"), load(tmp_path / "four" / "rows.json"), strict=True):
        # The linear model does not see the order of a choice, so averaging over orders changes nothing but rounding.
        assert four["p"] == pytest.approx(one["p"], abs=1e-12)
        assert four["keys"] == one["keys"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--run", "x", "--remote", "http://127.0.0.1:1", "--suite", "s", "--out", "o"],
        ["--run", "x", "--out", "o"],
        ["--run", "x", "--suite", "s", "--out", "o", "--split", "test"],
        ["--run", "x", "--suite", "s", "--out", "o", "--rotations", "0"],
        ["--run", "x", "--suite", "s", "--out", "o", "--budget", "1"],
        ["--remote", "http://h", "--suite", "s", "--out", "o", "--budget", "1"],
        ["--run", "x", "--data", "s", "--out", "o", "--allow-test"],
    ],
)
def test_command_lines_that_cannot_be_meant_are_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        main(arguments)
    assert refused.value.code == 2


SLOW_READ = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from linear_scorer import EVALS, trained_scorer
from kev.reads.attempt import read
from kev.predictors.local import LocalPredictor
from kev.reads.records import select_partition
from kev.suite import open_suite
chosen = select_partition(open_suite(EVALS / "decision-v1"), "train")
def say(line):
    print(line, flush=True)
    if line == "evaluated 96/1040" or line == "evaluated 100/1040":
        sys.stdin.readline()
read(LocalPredictor(trained_scorer(), batch=4), chosen, Path({out!r}), say)
"""


def test_a_read_survives_kill_9_between_any_two_answers(tmp_path: Path) -> None:
    script = SLOW_READ.format(tests=str(Path(__file__).parent), out=str(tmp_path / "killed"))
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        cwd=EVALS.parent, env=os.environ | {"PYTHONPATH": str(EVALS.parent)},
    )  # fmt: skip
    assert process.stdout is not None and process.stdin is not None
    with process:
        for line in process.stdout:
            if line.startswith("evaluated 100/"):
                process.send_signal(signal.SIGKILL)
                break
    assert process.returncode == -signal.SIGKILL
    chosen = partition("decision-v1", "train")
    said: list[str] = []
    scorer = trained_scorer()
    read(LocalPredictor(scorer, batch=4), chosen, tmp_path / "killed", said.append)
    assert said[0] == f"resumed: attempt 2, 100/{len(chosen.records)} records read before"
    assert sum(scorer.scored) == len(chosen.records) - 100
    read(LocalPredictor(trained_scorer(), batch=4), chosen, tmp_path / "whole", lambda _: None)
    assert (tmp_path / "killed" / "rows.json").read_bytes() == (tmp_path / "whole" / "rows.json").read_bytes()
