"""The report of a read: the blocks that the engine's readers expect, from the rows alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from kev.baseline import read, read_records
from kev.errors import BadRows
from kev.linear import fit
from kev.metrics import measure, rows_from_json, scored, tempered
from kev.records.report import Report
from kev.report import build_report
from kev.suite import open_suite

EVALS = Path(__file__).parents[2] / "evals"
COVERAGE = {"requested_records": 2, "evaluated_records": 2}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    out = tmp_path_factory.mktemp("read") / "out"
    model = fit(read_records(open_suite(EVALS / "decision-v1"), "train"))
    read(model, open_suite(EVALS / "transfer-v1"), "development", out)
    found: list[dict[str, Any]] = json.loads((out / "rows.json").read_text())
    return found


def test_the_objective_is_minus_the_mean_over_tasks_and_leaves_unknowable_questions_out(
    rows: list[dict[str, Any]],
) -> None:
    report = build_report(rows_from_json(rows), COVERAGE)
    assert not [task for task in report["tasks"] if task.startswith("unknowable_") and "control" not in task]
    losses = [block["nll"] for block in report["tasks"].values()]
    assert report["objective"] == pytest.approx(-sum(losses) / len(losses))
    assert report["clean"]["n"] == sum(block["n"] for block in report["tasks"].values())
    assert Report.model_validate(json.loads(json.dumps(report, allow_nan=False))).objective == report["objective"]


def test_the_quick_temperature_is_that_of_its_own_rows(rows: list[dict[str, Any]]) -> None:
    columns = rows_from_json(rows)
    report = build_report(columns, COVERAGE)
    served = measure(tempered(scored(columns), report["temperature"]))
    assert report["calibrated_clean"] == served
    assert report["calibration"] == {
        "inference_temperature": 1.0, "additional_temperature": report["temperature"], "logits_recorded": True,
    }  # fmt: skip


def test_rows_served_warm_without_logits_have_no_temperature_of_their_own(rows: list[dict[str, Any]]) -> None:
    warm = [{**row, "logits": None, "inference_temperature": 1.5} for row in rows]
    report = build_report(rows_from_json(warm), COVERAGE)
    assert report["temperature"] is None
    assert report["calibration"]["inference_temperature"] == 1.5
    assert report["clean"]["n"] > 0


def test_no_scored_row_is_refused_and_every_variant_is_measured(rows: list[dict[str, Any]]) -> None:
    variants = {row["variant"] for row in rows}
    assert build_report(rows_from_json(rows), COVERAGE)["variants"].keys() == variants
    with pytest.raises(BadRows):
        build_report(rows_from_json([row for row in rows if row["variant"] != "clean"]), COVERAGE)
