"""The baseline really reads what it answers, writes rows that every reader accepts, and never replaces a read."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kev.baseline import answer, main, read, read_records
from kev.data.record import DataRecord, Question
from kev.errors import Refused
from kev.linear import FEATURES, LinearModel, fit, option_features, overlap, words
from kev.metrics import measure, rows_from_json, scored
from kev.predictors.distribution import answer_of_logits
from kev.records.report import Report
from kev.records.rows import read_rows
from kev.suite import open_suite

EVALS = Path(__file__).parents[2] / "evals"


def train(*names: str) -> LinearModel:
    return fit(record for name in names for record in read_records(open_suite(EVALS / name), "train"))


def accuracy(model: LinearModel, suite: str) -> float:
    records = [r for r in read_records(open_suite(EVALS / suite), "development") if r.meta.variant == "clean"]
    return float(measure(rows_from_json([row for record in records for row in answer(model, record)]))["acc"])


def test_a_read_writes_rows_and_a_report_in_the_shapes_of_the_engine(tmp_path: Path) -> None:
    suite = open_suite(EVALS / "transfer-v1")
    read(train("decision-v1"), suite, "development", tmp_path / "out")
    rows = read_rows(tmp_path / "out" / "rows.json")
    assert len(rows) == suite.entry("development").questions
    report = Report.model_validate_json((tmp_path / "out" / "report.json").read_bytes())
    columns = rows_from_json(json.loads((tmp_path / "out" / "rows.json").read_text()))
    assert report.clean == json.loads(json.dumps(measure(scored(columns))))
    assert (report.suite_sha256, report.split) == (suite.sha256, "development")
    assert report.run is not None and "baseline" in report.run
    assert report.paired_flip is not None and report.paired_flip["pairs"] == 40
    assert report.unknowable is not None and report.unknowable["n"] == 40


def test_what_it_is_trained_on_is_what_it_learns() -> None:
    before, after = train("decision-v1"), train("decision-v1", "skills-v1")
    assert accuracy(before, "decision-v1") > accuracy(fit([]), "decision-v1") + 0.1
    assert accuracy(after, "skills-v1") > accuracy(before, "skills-v1") + 0.1


def test_counted_labels_alone_carry_an_uneven_task() -> None:
    question: dict[str, Any] = {"type": "noul", "instructions": "?", "label": True, "src": "t"}
    records = [DataRecord.build(f"state {n}", {"q": {**question, "label": n > 0}}, id=f"r{n}", source="s")
               for n in range(9)]  # fmt: skip
    [row] = answer(fit(records), DataRecord.build("another", {"q": question}, id="r9", source="s"))
    assert row["p"][1] > 0.7


def test_without_training_every_option_is_as_likely() -> None:
    for record in read_records(open_suite(EVALS / "decision-v1"), "calibration")[:40]:
        for row in answer(fit([]), record):
            assert row["p"] == pytest.approx([1 / len(row["keys"])] * len(row["keys"]))


def test_the_fit_is_at_the_least_loss_of_its_examples() -> None:
    model = train("decision-v1")
    records = read_records(open_suite(EVALS / "decision-v1"), "train")

    def loss(weights: Any) -> float:
        moved = LinearModel(weights, model.priors)
        found = [answer_of_logits(moved.logits(r, q)).p[q.label_index] for r in records for q in r.questions.values()]
        return float(-np.mean(np.log(found)))

    here = loss(model.weights)
    assert here < loss(np.zeros(len(FEATURES))) - 0.1
    for feature in np.eye(len(FEATURES)):
        assert min(loss(model.weights + move * feature) for move in (-0.3, 0.3)) > here - 1e-3


def test_a_read_that_is_there_is_never_replaced(tmp_path: Path) -> None:
    suite = open_suite(EVALS / "heldout-stock-v1")
    read(fit([]), suite, "calibration", tmp_path / "out")
    before = (tmp_path / "out" / "rows.json").read_bytes()
    with pytest.raises(Refused, match="never replaces"):
        read(train("decision-v1"), suite, "calibration", tmp_path / "out")
    assert (tmp_path / "out" / "rows.json").read_bytes() == before


def test_the_test_partition_is_read_only_when_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--suite", str(EVALS / "heldout-stock-v1"), "--out", str(tmp_path / "out")]
    assert main([*given, "--split", "test"]) == 1
    assert main([*given, "--allow-test", "--owner-allows", "out"]) == 0
    assert json.loads((tmp_path / "out" / "report.json").read_text())["split"] == "test"
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    "value",
    [
        {"state": "x", "questions": {"q": {"type": "noul", "label": 3, "src": "t"}}},
        {"state": "x", "questions": {"q": {"type": "choice", "criteria": None, "label": "a", "src": "t"}}},
        {"state": "x", "questions": {"q": {"type": "score", "criteria": 7, "label": 1, "src": "t"}}},
        {"questions": {}},
        {"state": json.loads("[" * 200 + "]" * 200), "questions": {"q": {"type": "noul", "label": True, "src": "t"}}},
    ],
)
def test_a_record_that_cannot_be_answered_is_one_line(
    tmp_path: Path, value: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    data = json.dumps({**value, "_meta": {"id": "r", "source": "s", "group_id": "g"}}).encode() + b"\n"
    (tmp_path / "development.jsonl").write_bytes(data)
    entry = {"sha256": hashlib.sha256(data).hexdigest(), "records": 1}
    (tmp_path / "manifest.json").write_text(json.dumps({"files": {"development.jsonl": entry}}))
    assert main(["--suite", str(tmp_path), "--out", str(tmp_path / "out")]) == 1
    assert "record 1: " in (line := capsys.readouterr().err) and line.count("\n") == 1
    assert not (tmp_path / "out").exists()


@given(st.text(), st.lists(st.text(min_size=1), min_size=1, max_size=6, unique=True))
def test_any_text_has_finite_features(state: str, names: list[str]) -> None:
    question = Question(type="choice", criteria=dict.fromkeys(names), label=names[0], src="t")
    features = option_features(state, question, {})
    assert features.shape == (len(names), len(FEATURES))
    assert np.isfinite(features).all()


@given(st.lists(st.floats(-700, 700), min_size=1, max_size=9))
def test_probabilities_sum_to_one(logits: list[float]) -> None:
    assert sum(answer_of_logits(logits).p) == pytest.approx(1.0)


def test_the_share_of_words_is_of_the_option() -> None:
    assert overlap(words("Late parcels and LOST keys"), words("the keys were lost")) == 2 / 5
    assert overlap(set(), {"a"}) == 0
