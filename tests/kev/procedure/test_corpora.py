"""What a closed model wrote is not trained on, wherever a manifest says so."""

import json
from pathlib import Path
from typing import Any

import pytest
from round_lab import RoundLab

from kev.errors import Refused
from kev.procedure.corpora import check_corpus, closed_output
from kev.records.plan import TrialConfig
from kev.records.suite import Manifest
from kev.rounds.launch import launch
from kev.suite import open_suite
from kev.train.mix import trial_records


@pytest.mark.parametrize(
    "value",
    [
        {"closed_model_output": True},
        {"closed_model_output": ["essays"]},
        {"teacher": {"name": "x", "closed": True}},
        {"teachers": [{"name": "open"}, {"weights": "closed"}]},
        {"generator": {"closed": True}},
        {"sources": {"essays": {"trainable": True, "closed_model": True}}},
        {"trainable_sources": ["jev-labels"]},
        {"sources": ["jev"]},
    ],
)
def test_each_way_to_say_so_is_understood(value: dict[str, Any]) -> None:
    assert closed_output(Manifest.model_validate(value))


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"closed_model_output": False},
        {"closed_model_output": []},
        {"teacher": {"revision": None, "closed": False}},
        {"teacher": "a lamp"},
        {"sources": {"essays": {"trainable": True}}},
        {"trainable_sources": ["jevons"], "eval_only_sources": ["jev"]},
    ],
)
def test_what_says_nothing_of_the_kind_is_trained_on(value: dict[str, Any]) -> None:
    assert closed_output(Manifest.model_validate(value)) is None


def mark(root: Path, path: str, **more: Any) -> None:
    manifest = root / path / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | more))


def test_a_component_of_a_corpus_is_a_corpus(round_lab: RoundLab) -> None:
    root = round_lab.root
    mark(root, "evals/street-v1", closed_model_output=True)
    whole = Manifest.model_validate({"inputs": {"components": {"street-v1-train": {}}}})
    with pytest.raises(Refused, match="street-v1: is not trained on"):
        check_corpus(root, root / "evals/whole", whole)
    inside = Manifest.model_validate({"inputs": {"components": {"a": {"closed_model_output": True}}}})
    with pytest.raises(Refused, match="component a"):
        check_corpus(root, root / "evals/whole", inside)
    check_corpus(root, root / "evals/whole", Manifest.model_validate({"inputs": {"components": {"[*]-train": {}}}}))


async def test_a_round_that_would_train_on_it_is_refused_before_anything_is_asked(round_lab: RoundLab) -> None:
    mark(round_lab.root, "evals/lamps-v1", closed_model_output=True)
    with pytest.raises(Refused, match="evals/lamps-v1: is not trained on: its manifest says that it holds a closed"):
        await launch(round_lab.engine(), round_lab.loaded)
    assert round_lab.compute.calls == {}


def test_a_training_reads_no_record_of_it(round_lab: RoundLab) -> None:
    root = round_lab.root
    config = TrialConfig.model_validate({"base": "lamps/Base-2B", "data": "evals/street-v1/test.jsonl"})
    mark(root, "evals/street-v1", closed_model_output=True)
    with pytest.raises(Refused, match="street-v1: is not trained on"):
        trial_records(config, open_suite(root / "evals/lamps-v1"), root)
    mark(root, "evals/lamps-v1", teacher={"closed": True})
    with pytest.raises(Refused, match="lamps-v1: is not trained on"):
        trial_records(TrialConfig.model_validate({"base": "x"}), open_suite(root / "evals/lamps-v1"), root)
