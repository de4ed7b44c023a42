"""A plan says which records are trained on, and a suite which may be."""

import json
from pathlib import Path
from typing import Any

import pytest
from trainer_process import REPOSITORY

from kev.errors import Refused
from kev.records.plan import TrialConfig
from kev.suite import Suite, open_suite
from kev.train.mix import trial_records


@pytest.fixture(scope="module")
def suite() -> Suite:
    return open_suite(REPOSITORY / "evals" / "decision-v1")


def config_of(**changes: Any) -> TrialConfig:
    return TrialConfig.model_validate({"base": "org/base", **changes})


def write_data(root: Path, *records: dict[str, Any]) -> str:
    (root / "evals").mkdir(exist_ok=True)
    (root / "evals" / "own.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return "evals/own.jsonl"


def own_record(source: str = "mine", **meta: Any) -> dict[str, Any]:
    question = {"type": "noul", "instructions": "Is it?", "label": True, "src": "own"}
    identity = {"id": "own/1", "source": source, "group_id": "own/1", **meta}
    return {"state": "It is.", "questions": {"q": question}, "_meta": identity}


def test_a_plan_without_data_trains_on_the_suites_partition(suite: Suite) -> None:
    assert len(trial_records(config_of(), suite, REPOSITORY)) == len(suite.read_partition("train"))


def test_sources_that_are_named_are_kept_and_no_other(suite: Suite) -> None:
    records = trial_records(config_of(train_sources="dates,levels"), suite, REPOSITORY)
    assert {record.meta.source for record in records} == {"dates", "levels"}


def test_a_file_of_ones_own_is_trained_with_as_many_of_the_suites_as_are_replayed(suite: Suite, tmp_path: Path) -> None:
    path = write_data(tmp_path, own_record())
    records = trial_records(config_of(data=path, replay=30, seed=4), suite, tmp_path)
    again = trial_records(config_of(data=path, replay=30, seed=4), suite, tmp_path)
    other = trial_records(config_of(data=path, replay=30, seed=5), suite, tmp_path)
    assert len({record.meta.id for record in records}) == 31
    assert records == again != other


@pytest.mark.parametrize("source", ["policies_held_out", "unknowable"])
def test_what_a_suite_holds_out_is_never_trained_on(suite: Suite, tmp_path: Path, source: str) -> None:
    path = write_data(tmp_path, own_record(source))
    with pytest.raises(Refused, match=f"does not let {source} be trained on"):
        trial_records(config_of(data=path), suite, tmp_path)


def test_generated_records_are_repeated_under_ids_of_their_own(suite: Suite, tmp_path: Path) -> None:
    path = write_data(tmp_path, own_record(facts={"x": 1}), own_record(id="own/2"))
    records = trial_records(config_of(data=path, synthetic_repeat=3), suite, tmp_path)
    assert [record.meta.id for record in records] == ["own/1", "own/1#2", "own/1#3", "own/2"]


def test_a_share_of_the_other_records_is_kept(suite: Suite, tmp_path: Path) -> None:
    path = write_data(tmp_path, *(own_record(id=f"own/{number}") for number in range(400)))
    kept = trial_records(config_of(data=path, public_frac=0.25), suite, tmp_path)
    assert 60 < len(kept) < 140
    assert kept == trial_records(config_of(data=path, public_frac=0.25), suite, tmp_path)
