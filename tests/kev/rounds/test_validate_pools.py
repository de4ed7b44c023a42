"""A temperature pool must be held out: by the names of suites and sources, and by the texts themselves."""

import json
from pathlib import Path
from typing import Any

import pytest
from checkouts import changed, good_spec, record, without, write_checkout, write_spec, write_suite
from hypothesis import given
from hypothesis import strategies as st

from kev.document import format_path
from kev.rounds.checkout import Checkout
from kev.rounds.overlap import find_overlap, fingerprint
from kev.rounds.pools import PooledRead, Training, expand, pool_conflicts
from kev.rounds.problems import Severity
from kev.rounds.validate import validate

SPEC = good_spec()


def pool_findings(root: Path, spec: Any, **options: Any) -> list[tuple[str, str, Severity]]:
    path = write_spec(root / "experiments" / "rounds" / "r201.json", spec)
    found = validate(path, root, **options).findings
    return [(finding.code, finding.message, finding.severity) for finding in found if finding.code.startswith("pool-")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_checkout(tmp_path)
    return tmp_path


def messages(root: Path, spec: Any = SPEC, **options: Any) -> list[str]:
    return [f"{code}: {message}" for code, message, _ in pool_findings(root, spec, **options)]


def test_a_pool_apart_from_all_training_has_no_finding(root: Path) -> None:
    assert messages(root) == []


def test_a_suite_that_was_trained_on_is_no_pool(root: Path) -> None:
    spec = changed(SPEC, "arms", "2b-full", "trained_on", to=["evals/lamps-v1", "evals/./held-v1/"])
    assert "pool-conflict: evals/held-v1 was trained on" in messages(root, spec)


def test_a_copied_suite_is_no_pool_either(root: Path) -> None:
    (root / "evals" / "copy-v1").mkdir()
    for path in (root / "evals" / "held-v1").iterdir():
        (root / "evals" / "copy-v1" / path.name).write_bytes(path.read_bytes())
    spec = changed(SPEC, "arms", "2b-full", "trained_on", to=["evals/copy-v1"])
    assert "pool-conflict: evals/held-v1 was trained on" in messages(root, spec)


def test_a_shared_source_is_a_conflict_unless_the_allowlist_leaves_it_out(root: Path) -> None:
    records = {"calibration": [record("held", number, ["bridges", "lanes"][number % 2]) for number in range(6)]}
    write_suite(root / "evals" / "held-v1", records, trainable=[], eval_only=["bridges", "lanes"])
    assert messages(root) == []
    everything = without(SPEC, "temperature", "sources")
    assert messages(root, everything) == ["pool-conflict: sources of evals/held-v1 were trained on: lanes"]


def test_calibration_and_development_of_a_training_corpus_are_in_distribution(root: Path) -> None:
    records = {"calibration": [record("held", number, "bridges") for number in range(4)]}
    write_suite(root / "evals" / "held-v1", records, trainable=["other"], eval_only=["bridges"])
    (message,) = messages(root)
    assert "the calibration split of evals/held-v1 is in distribution" in message


def test_a_suite_without_sources_cannot_be_pooled(root: Path) -> None:
    records = {"calibration": [record("held", number, "bridges") for number in range(4)]}
    write_suite(root / "evals" / "held-v1", records, trainable=[], eval_only=[])
    (message,) = messages(root, without(SPEC, "temperature", "sources"))
    assert "lists no sources" in message


def test_training_without_listed_sources_is_a_problem_at_the_arm(root: Path) -> None:
    spec = changed(SPEC, "arms", "2b-full", "trained_on", to=["evals/bare-v1"])
    write_suite(root / "evals" / "bare-v1", {"train": []}, trainable=[], eval_only=[])
    (message,) = messages(root, spec)
    assert "evals/bare-v1, which it was trained on, lists no sources" in message


def test_what_a_trial_was_trained_on_is_its_study_and_the_data_of_its_plan(root: Path) -> None:
    spec = without(SPEC, "arms", "2b-delta", "select")
    plan = [{"base": "lamps/Base-2B", "data": "evals/held-v1/train.jsonl"}]
    (root / "experiments" / "round201" / "delta.json").write_text(json.dumps(plan))
    (root / "evals" / "held-v1" / "train.jsonl").write_text("")
    assert "pool-conflict: evals/held-v1 was trained on" in messages(root, spec)


def test_a_trial_of_another_round_is_placed_by_its_provenance(root: Path) -> None:
    spec = changed(SPEC, "arms", "2b-old", to={"trial": "runs/r190-old/00-trial-0", "parent": "base"})
    trial = root / "runs" / "r190-old" / "00-trial-0"
    trial.mkdir(parents=True)
    path = write_spec(root / "experiments" / "rounds" / "r201.json", spec)
    assert "unknown-training" in {finding.code for finding in validate(path, root).of(Severity.PROBLEM)}
    suite = Checkout(root).suite("evals/held-v1")
    assert suite is not None
    (trial / "provenance.json").write_text(json.dumps({"suite_sha256": suite.sha256, "config": {}}))
    assert "pool-conflict: evals/held-v1 was trained on" in messages(root, spec)


def test_bare_checkpoints_rest_on_the_other_arms_unless_there_are_none(root: Path) -> None:
    silent = without(SPEC, "arms", "2b-blend", "trained_on")
    path = root / "experiments" / "rounds" / "r201.json"
    assert validate(write_spec(path, silent), root).ok
    alone = changed(silent, "arms", to={"2b-blend": silent["arms"]["2b-blend"]})
    found = validate(write_spec(path, alone), root).of(Severity.PROBLEM)
    assert ("unknown-training", "arms.2b-blend") in {(finding.code, format_path(finding.where)) for finding in found}


def test_components_are_followed_by_name_wherever_they_lie(root: Path) -> None:
    write_suite(root / "evals" / "deep" / "one-v1", {}, trainable=["alleys"], eval_only=[])
    write_suite(root / "evals" / "all-v1", {}, trainable=["lanes"], eval_only=[])
    manifest = root / "evals" / "all-v1" / "manifest.json"
    value = json.loads(manifest.read_text()) | {"inputs": {"components": {"one-v1-train": {}, "nowhere-extra": {}}}}
    manifest.write_text(json.dumps(value))
    corpus = expand(Training(("evals/all-v1",), ("/home/x.jsonl",)), Checkout(root))
    assert corpus.suites == {"evals/all-v1", "evals/deep/one-v1"}
    assert corpus.sources == {"lanes", "alleys"}
    assert corpus.unlisted == ("/home/x.jsonl", "nowhere-extra")


def test_a_corpus_that_names_itself_ends(root: Path) -> None:
    manifest = root / "evals" / "lamps-v1" / "manifest.json"
    value = json.loads(manifest.read_text()) | {"inputs": {"components": {"lamps-v1": {}}}}
    manifest.write_text(json.dumps(value))
    assert expand(Training(("evals/lamps-v1",)), Checkout(root)).suites == {"evals/lamps-v1"}


def test_a_pooled_suite_that_is_not_here_cannot_be_cleared(tmp_path: Path) -> None:
    read = PooledRead("held", "evals/held-v1", "calibration")
    corpus = expand(Training(()), Checkout(tmp_path))
    assert len(pool_conflicts(read, corpus, Checkout(tmp_path))) == 1


# ------------------------------------------------------------------------------------------- the texts themselves


def disguised(entry: dict[str, Any], number: int) -> dict[str, Any]:
    """The same text under another id, source and group, with other spacing, case and Unicode form."""
    other = record("else", number, "alleys", "  " + entry["state"].upper().replace(" ", "\u00a0\n"))
    return other | {"_meta": other["_meta"] | {"id": f"renamed-{number}"}}


def test_the_same_texts_under_other_names_are_found(root: Path) -> None:
    held = [record("held", number, "bridges") for number in range(8, 11)]
    train = [record("lamps", number, "lanes") for number in range(8)] + [disguised(held[1], 77)]
    write_suite(root / "evals" / "lamps-v1", {"train": train, "calibration": [], "development": [], "test": []},
                trainable=["lanes", "alleys"], eval_only=[])  # fmt: skip
    ((code, message, severity),) = pool_findings(root, SPEC)
    assert (code, severity) == ("pool-overlap", Severity.PROBLEM)
    assert "1 of 3 pooled records" in message
    assert "held/9 is renamed-77 there" in message
    assert "evals/lamps-v1/train.jsonl" in message


def test_one_text_in_hundreds_may_be_chance_and_is_a_warning(root: Path) -> None:
    held = [record("held", number, "bridges") for number in range(200)]
    write_suite(root / "evals" / "held-v1", {"calibration": held}, trainable=[], eval_only=["bridges"])
    train = [disguised(held[5], 5), *(record("lamps", number, "lanes") for number in range(5))]
    write_suite(root / "evals" / "lamps-v1", {"train": train, "calibration": [], "development": [], "test": []},
                trainable=["lanes", "alleys"], eval_only=[])  # fmt: skip
    ((code, message, severity),) = pool_findings(root, SPEC)
    assert (code, severity) == ("pool-overlap", Severity.WARNING)
    assert "1 of 200" in message


def test_large_partitions_are_compared_only_when_asked(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kev.rounds.checks.pools.MAX_COMPARED_BYTES", 10)
    (message,) = messages(root)
    assert message.startswith("pool-not-compared")
    assert messages(root, partitions=True) == []


def test_training_data_beside_a_suite_is_compared_too(root: Path) -> None:
    held = record("held", 9, "bridges")
    directory = root / "evals" / "loose-v1"
    write_suite(directory, {}, trainable=["alleys"], eval_only=[])
    (directory / "train.jsonl").write_text(json.dumps(disguised(held, 1)) + "\n")
    plan = [{"base": "lamps/Base-2B", "data": "evals/loose-v1/train.jsonl"}]
    (root / "experiments" / "round201" / "delta.json").write_text(json.dumps(plan))
    (message,) = messages(root)
    assert "evals/loose-v1/train.jsonl" in message


TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=80)


@given(TEXTS, st.sampled_from([str.upper, str.lower, lambda text: f" {text}\n", lambda text: text.replace(" ", "\t ")]))
def test_a_fingerprint_ignores_ids_spacing_and_case(text: str, change: Any) -> None:
    # Not every letter comes back from upper case to itself; those two are one letter to no reader either.
    if change(text).casefold() != text.casefold() and change in (str.upper, str.lower):
        return
    assert fingerprint(record("a", 1, "x", text)) == fingerprint(record("b", 2, "y", change(text)))


@given(TEXTS, TEXTS)
def test_different_texts_have_different_fingerprints(first: str, second: str) -> None:
    import unicodedata

    def even(text: str) -> str:
        return " ".join(unicodedata.normalize("NFKC", text).casefold().split())

    if even(first) != even(second):
        assert fingerprint(record("a", 1, "x", first)) != fingerprint(record("a", 1, "x", second))


def test_short_states_are_told_apart_by_their_questions() -> None:
    first, second = record("a", 1, "x", "Hello."), record("b", 2, "y", "Hello.")
    second["questions"]["q"]["instructions"] = "Was it light?"
    assert fingerprint(first) != fingerprint(second)
    assert find_overlap([first], [second]) is None


def test_a_state_that_is_an_object_is_compared_by_its_content() -> None:
    first = record("a", 1, "x") | {"state": {"to": "the lamp lighters of the town", "text": "bring oil and wicks"}}
    second = record("b", 2, "y") | {"state": {"text": "bring oil and wicks", "to": "the lamp lighters of the town"}}
    assert fingerprint(first) == fingerprint(second)


@pytest.mark.parametrize("damaged", [{}, {"state": None}, {"state": [], "questions": [1]}, {"_meta": 3}])
def test_records_of_any_shape_have_a_fingerprint(damaged: dict[str, Any]) -> None:
    assert find_overlap([damaged], [damaged]) is not None
