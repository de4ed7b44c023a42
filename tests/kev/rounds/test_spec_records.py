"""Specs and manifests as records: nothing is coerced, nothing is lost, and every known shape is read."""

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from checkouts import changed, good_spec, without, write_spec
from hypothesis import given
from hypothesis import strategies as st

from kev.errors import DamagedFile
from kev.records import spec as spec_records
from kev.records.base import parse_record, read_record, write_record
from kev.records.spec import ByLength, RoundSpec, size_of
from kev.records.suite import Manifest

SPEC = good_spec()


def test_reading_and_writing_a_spec_changes_nothing_in_it(tmp_path: Path) -> None:
    spec = changed(changed(SPEC, "later_key", to={"kept": [1]}), "arms", "2b-full", "colour", to="red")
    path = write_spec(tmp_path / "r201.json", spec)
    read = read_record(path, RoundSpec)
    write_record(path, read)
    assert json.loads(path.read_text()) == spec


def test_every_shape_of_a_key_that_has_several_is_read() -> None:
    read = RoundSpec.model_validate(SPEC)
    street, spare = read.rule.panels["street"], read.rule.panels["spare"]
    assert isinstance(street.by_length, ByLength)
    assert spare.by_length is True
    assert read.studies["r201-delta"].budget == Decimal("12.5")
    assert isinstance(read.arms["2b-blend"].reads, dict)
    assert "transfer_read" in read.arms["2b-delta"].model_fields_set
    assert "transfer_read" not in read.arms["2b-full"].model_fields_set


def test_a_round_without_studies_stages_or_ranks_is_read() -> None:
    spec = without(without(without(SPEC, "studies"), "confirm"), "rule", "rank")
    read = RoundSpec.model_validate(changed(spec, "rule", "criteria", to={}))
    assert (read.studies, read.confirm, read.rule.rank, read.rule.criteria) == ({}, {}, [], {})


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("round",), "201"),
        (("round",), True),
        (("studies", "r201-full", "budget"), "56"),
        (("studies", "r201-full", "budget"), True),
        (("studies", "r201-full", "timeout"), 7200.0),
        (("rule", "criteria", "1_street_lower_above_0", "right"), True),
        (("rule", "criteria", "1_street_lower_above_0", "left"), ["a.b.lower"]),
        (("rule", "panels", "street", "by_length"), 3),
        (("arms", "2b-full", "reads"), ["runs/x"]),
        (("confirm", "tests", "parent_reads"), {"street": 1}),
        (("drop_ids",), [7]),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_at_its_key(where: tuple[str, ...], value: Any) -> None:
    with pytest.raises(DamagedFile) as refusal:
        parse_record(Path("r201.json"), changed(SPEC, *where, to=value), RoundSpec)
    assert refusal.value.reason.startswith(".".join(where))


@given(st.text(min_size=1).filter(lambda text: "-" not in text), st.text())
def test_the_size_of_an_arm_is_what_stands_before_its_first_dash(size: str, label: str) -> None:
    assert size_of(f"{size}-{label}") == size


@pytest.mark.parametrize(
    ("manifest", "listed", "training", "is_corpus"),
    [
        ({"trainable_sources": ["a"], "eval_only_sources": ["b"], "holdout_sources": ["c"]}, "abc", "a", True),
        ({"trainable_sources": [], "eval_only_sources": ["b"]}, "b", "", False),
        ({"sources": ["a", "b"]}, "ab", "ab", False),
        ({"sources": {"a": {"trainable": True}, "b": {"trainable": False}}}, "ab", "a", True),
        ({"sources": {"a": {}, "b": 3}}, "ab", "ab", False),
        ({"version": "v2", "seed": "x", "concat_of": ["p"], "sha256": "f" * 64}, "", "", False),
    ],
)
def test_sources_are_read_from_manifests_of_every_maker(
    manifest: dict[str, Any], listed: str, training: str, is_corpus: bool
) -> None:
    read = Manifest.model_validate(manifest)
    assert read.listed_sources() == set(listed)
    assert read.training_sources() == set(training)
    assert read.is_training_corpus() is is_corpus
    assert read.to_json() == manifest


@pytest.mark.parametrize("inputs", [None, "prose", [], {"components": ["a"]}, {"components": None}])
def test_a_manifest_without_a_table_of_components_has_none(inputs: Any) -> None:
    assert Manifest.model_validate({"inputs": inputs}).components() == []


def test_the_documentation_names_every_key_that_a_spec_may_have() -> None:
    shapes = [shape for shape in vars(spec_records).values() if isinstance(shape, type)
              and issubclass(shape, spec_records.SpecRecord) and not issubclass(shape, spec_records.Note)]  # fmt: skip
    text = (Path(__file__).parents[3] / "docs" / "rounds.md").read_text()
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    named = set(re.findall(r"[a-z_0-9]+", " ".join(re.findall(r"`([^`]+)`", text))))
    assert {key for shape in shapes for key in shape.model_fields} <= named


@pytest.mark.parametrize("value", [None, 8, True, ["H200"], {"type": "H200", "{x}": 1}])
def test_a_card_that_is_no_name_is_refused_with_its_study_its_value_and_the_known_ones(value: Any) -> None:
    spec = changed(SPEC, "studies", "r201-full", "gpu", to=value)
    with pytest.raises(DamagedFile) as caught:
        parse_record(Path("r201.json"), spec, RoundSpec)
    message = str(caught.value)
    assert "studies.r201-full.gpu" in message and repr(value)[:10] in message
    assert "write B200, H100, H200, T4, or one of them with :2 to :8" in message
