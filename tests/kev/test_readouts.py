"""Read-outs and verdicts of every age come out in one shape, in which criterion paths resolve."""

from pathlib import Path
from typing import Any

import pytest
from record_examples import CURRENT, DOCUMENTS, OLD_DOCS, OLD_LOCKED, OLD_TESTS, SKILLS, interval

from kev import files
from kev.errors import DamagedFile
from kev.records.readout import parse_readout, read_readout
from kev.records.verdict import parse_verdict, read_verdict

PLACE = Path("runs/r70-readout/round70.json")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("primary.acc.lower", 0.5), ("primary.acc.delta", 1), ("hard.acc.candidate", 0.75), ("hard.acc.parent", 0.5),
        ("hard.acc.upper", 2.5), ("hard.ece.candidate", 0.1), ("hard.ece.parent", 0.2), ("hard.ece.upper", 9.5),
        ("devtools.acc.lower", 2.5), ("docs.acc.delta", 4), ("short.brier.upper", 6.5), ("semif.acc.lower", 6.5),
        ("pooled_external.acc.lower", 7.5), ("unknowable.candidate", 0.0625), ("unknowable.parent", None),
        ("primary.acc.candidate", None), ("nowhere.acc.lower", None), ("hard.acc", None), ("", None),
        ("hard.acc.model_dump", None), ("unknowable.model_dump", None),
    ],
)  # fmt: skip
def test_a_criterion_path_resolves_in_the_skills_shape(path: str, value: float | None) -> None:
    stored = parse_readout(PLACE, SKILLS)
    assert stored.shape == "skills"
    assert stored.readout.arms["2b-a"].resolve(path) == value


def test_an_arm_that_is_a_bare_remark_is_an_arm_not_read_yet() -> None:
    arm = parse_readout(PLACE, SKILLS).readout.arms["9b-a"]
    assert (arm.missing, arm.complete, arm.passed, arm.panels) == (["not read yet"], False, None, {})


def test_the_older_shapes_give_round_candidates_and_dropped_ids() -> None:
    readout = parse_readout(PLACE, SKILLS).readout
    assert (readout.round, readout.drop_ids) == (70, ["x/1"])
    assert readout.candidates == {"2b": None, "9b": "9b-a"}
    assert parse_readout(PLACE, SKILLS | {"round": 14}).readout.round == 14
    assert parse_readout(Path("elsewhere.json"), SKILLS).readout.round is None


@pytest.mark.parametrize(
    ("path", "value"),
    [("docs.acc.lower", 0.5), ("docs.acc.candidate", 0.9), ("docs.acc.parent", 0.7), ("short.acc.upper", 3.5),
     ("wanli2.acc.delta", 4), ("pooled_external.acc.upper", 5.5), ("unknowable.candidate", 0)],
)  # fmt: skip
def test_a_criterion_path_resolves_in_the_documents_shape(path: str, value: float) -> None:
    stored = parse_readout(PLACE, DOCUMENTS)
    assert stored.shape == "documents"
    assert stored.readout.arms["2b-d"].resolve(path) == value


def test_the_documents_shape_keeps_its_reference_and_the_size_of_its_panels() -> None:
    panels = parse_readout(PLACE, DOCUMENTS).readout.arms["2b-d"].panels
    assert panels["docs"].versus == {"jev": {"acc": {"reference": 0.875, **interval(2)}}}
    assert panels["wanli2"].n == 60 and list(panels["wanli2"].metrics()) == ["acc"]


def test_the_current_shape_resolves_and_tells_metrics_from_remarks() -> None:
    stored = parse_readout(PLACE, CURRENT)
    arm = stored.readout.arms["2b-read"]
    assert stored.shape == "current" and stored.readout.round == 72
    assert list(arm.panels["hard"].metrics()) == ["acc", "ece", "acc_8k_plus"]
    assert arm.resolve("hard.acc.lower") == 0.125
    assert arm.resolve("hard.ece.delta") is None and arm.resolve("hard.ece.lower") is None
    assert arm.resolve("hard.acc_8k_plus.candidate") is None
    assert arm.temperature_ci is not None and arm.temperature_ci.upper == 1.75
    assert stored.readout.arms["2b-absent"].complete is False


@pytest.mark.parametrize("value", [SKILLS, DOCUMENTS, CURRENT])
def test_a_read_out_keeps_the_value_of_its_file(value: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "round72.json"
    files.write_atomic(path, files.dump_json(value))
    stored = read_readout(path)
    assert stored.original == value
    if stored.shape == "current":
        assert stored.readout.to_json() == value


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ([], "no object of arms"),
        ({}, "no object of arms"),
        ({"arms": []}, "no object of arms"),
        ({**SKILLS, "arms": {"2b-a": 3}}, r"arms\.2b-a"),
        ({**SKILLS, "arms": {"2b-a": {**SKILLS["arms"]["2b-a"], "hard_acc": "high"}}}, r"arms\.2b-a\.hard_acc"),
        ({**SKILLS, "arms": {"2b-a": {**SKILLS["arms"]["2b-a"], "primary": [1]}}}, r"arms\.2b-a\.primary"),
        ({**SKILLS, "arms": {"2b-a": {**SKILLS["arms"]["2b-a"], "hard_delta": {"delta": "x"}}}}, r"panels\.hard\.acc"),
        ({**CURRENT, "arms": {"a": {"panels": {"hard": {"acc": {"ci95": [1]}}}}}}, r"panels\.hard\.acc.*ci95"),
        ({**CURRENT, "arms": {"a": {"panels": None}}}, r"arms\.a\.panels"),
    ],
)
def test_a_read_out_that_cannot_be_believed_names_the_place(value: Any, named: str) -> None:
    with pytest.raises(DamagedFile, match=named):
        parse_readout(PLACE, value)


@pytest.mark.parametrize(
    ("value", "path", "found"),
    [
        (OLD_DOCS, "docs1test.acc.candidate", 0.8), (OLD_DOCS, "docs1test.acc.lower", 0.5),
        (OLD_DOCS, "docs1test.brier.upper", 2.5), (OLD_LOCKED, "locked.acc.candidate", 0.7),
        (OLD_LOCKED, "locked.brier.parent", 0.5), (OLD_LOCKED, "locked.acc.upper", 1.5),
        (OLD_TESTS, "pooled.acc.lower", 0.5), (OLD_TESTS, "hardtest.acc.parent", 0.6),
        (OLD_TESTS, "hardtest.acc.delta", 2),
    ],
)  # fmt: skip
def test_a_criterion_path_resolves_in_an_old_verdict(value: dict[str, Any], path: str, found: float) -> None:
    stored = parse_verdict(PLACE, value)
    assert stored.shape == "old"
    assert stored.verdict.resolve(path) == found
    assert (stored.verdict.temperature, stored.verdict.parent_temperature) == (2.5, 1.5)


def test_a_current_verdict_is_a_comparison_with_its_stage(tmp_path: Path) -> None:
    value = {"round": 72, "stage": "tests", "arm": "2b-read", **CURRENT["arms"]["2b-read"]}
    path = tmp_path / "2b-tests.json"
    files.write_atomic(path, files.dump_json(value))
    stored = read_verdict(path)
    assert (stored.shape, stored.verdict.stage, stored.verdict.arm) == ("current", "tests", "2b-read")
    assert stored.verdict.to_json() == value == stored.original


@pytest.mark.parametrize("value", [[], {}, {"stage": 4}, {**OLD_DOCS, "acc": {"cand": "high"}}])
def test_what_is_no_verdict_is_damaged(value: Any) -> None:
    with pytest.raises(DamagedFile):
        parse_verdict(PLACE, value)
