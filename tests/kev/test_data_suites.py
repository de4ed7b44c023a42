"""Freezing: the same bytes everywhere, nothing frozen is ever changed, and every fault is named."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kev import files
from kev.data.freeze import build, differences, freeze, shared_states
from kev.data.record import DataRecord, check_record
from kev.data.suites import SUITES, SuitePlan
from kev.errors import DamagedFile, Refused
from kev.suite import check_suite, open_suite

REPOSITORY = Path(__file__).parents[2]
SMALL = SUITES[-1]


@pytest.mark.parametrize("plan", SUITES, ids=lambda plan: plan.name)
def test_a_rebuild_gives_the_frozen_bytes(plan: SuitePlan) -> None:
    assert differences(REPOSITORY / "evals" / plan.name, build(plan)) == []


def test_an_interpreter_with_another_hash_seed_and_another_locale_gives_the_same_bytes() -> None:
    environment = os.environ | {"PYTHONHASHSEED": "12345", "LC_ALL": "C", "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, "scripts/build_suites.py", "--check"],
        cwd=REPOSITORY, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_no_two_suites_share_a_state() -> None:
    assert shared_states(SUITES) == []


@pytest.mark.parametrize("plan", SUITES, ids=lambda plan: plan.name)
def test_a_manifest_counts_and_hashes_what_lies_beside_it(plan: SuitePlan) -> None:
    directory = REPOSITORY / "evals" / plan.name
    manifest = json.loads((directory / "manifest.json").read_text())
    assert {path.name for path in directory.iterdir()} == {*manifest["files"], "manifest.json"}
    for name, entry in manifest["files"].items():
        data = (directory / name).read_bytes()
        records = [json.loads(line) for line in data.split(b"\n") if line]
        assert entry["sha256"] == hashlib.sha256(data).hexdigest()
        assert entry["records"] == len(records) == sum(entry["by_source"].values())
        assert entry["questions"] == sum(len(record["questions"]) for record in records)
        listed = {*manifest["trainable_sources"], *manifest["eval_only_sources"]}
        assert {record["_meta"]["source"] for record in records} <= listed
        if name == "train.jsonl":
            assert {record["_meta"]["source"] for record in records} <= {*manifest["trainable_sources"]}


def test_everything_that_git_holds_of_them_stays_small() -> None:
    frozen = [path for plan in SUITES for path in (REPOSITORY / "evals" / plan.name).iterdir()]
    assert sum(path.stat().st_size for path in frozen) < 3_000_000


def test_freezing_again_changes_nothing_and_a_missing_partition_is_put_back(tmp_path: Path) -> None:
    assert "frozen" in freeze(tmp_path, SMALL)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.json*")}
    stamps = {path: path.stat().st_mtime_ns for path in before}
    assert "unchanged" in freeze(tmp_path, SMALL)
    assert {path: path.stat().st_mtime_ns for path in before} == stamps
    lost = tmp_path / SMALL.name / "test.jsonl"
    lost.unlink()
    assert "restored test.jsonl" in freeze(tmp_path, SMALL)
    assert lost.read_bytes() == before[lost]


def test_a_frozen_suite_that_would_change_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    freeze(tmp_path, SMALL)
    changed = tmp_path / SMALL.name / "development.jsonl"
    changed.write_bytes(changed.read_bytes().replace(b"overdue", b"overrun", 1))
    kept = changed.read_bytes()
    with pytest.raises(Refused, match=r"development\.jsonl: not what the generators make; .* new name"):
        freeze(tmp_path, SMALL)
    assert changed.read_bytes() == kept


def test_a_partition_with_other_line_endings_is_said_to_differ_only_in_them(tmp_path: Path) -> None:
    freeze(tmp_path, SMALL)
    path = tmp_path / SMALL.name / "calibration.jsonl"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    [fault] = differences(tmp_path / SMALL.name, build(SMALL))
    assert "line endings" in fault


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe{"])
def test_a_damaged_manifest_is_named_and_never_overwritten(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / SMALL.name / "manifest.json"
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(Refused, match=r"manifest\.json"):
        freeze(tmp_path, SMALL)
    assert path.read_bytes() == content


def test_the_checkout_keeps_frozen_bytes_as_they_are() -> None:
    done = subprocess.run(
        ["git", "check-attr", "text", "evals/decision-v1/train.jsonl"], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert done.stdout.strip().endswith("text: unset")


@pytest.mark.parametrize("plan", SUITES, ids=lambda plan: plan.name)
def test_the_loader_finds_every_suite_as_it_was_frozen_and_every_record_of_the_schema(plan: SuitePlan) -> None:
    suite = open_suite(REPOSITORY / "evals" / plan.name)
    assert check_suite(suite) == []
    assert suite.manifest.training_sources() == set(plan.trainable)
    for split in plan.partitions:
        for value in suite.read_partition(split, allow_test=True):
            check_record(DataRecord.model_validate(value))


def test_the_loader_tells_turned_line_endings_from_a_change(tmp_path: Path) -> None:
    freeze(tmp_path, SMALL)
    path = tmp_path / SMALL.name / "development.jsonl"
    frozen = path.read_bytes()
    path.write_bytes(frozen.replace(b"\n", b"\r\n"))
    with pytest.raises(DamagedFile, match="line endings"):
        open_suite(tmp_path / SMALL.name).read_partition("development")
    path.write_bytes(frozen.replace(b"pump", b"lamp", 1))
    with pytest.raises(DamagedFile) as raised:
        open_suite(tmp_path / SMALL.name).read_partition("development")
    assert "line endings" not in str(raised.value)


def test_separators_inside_texts_are_kept_byte_for_byte_and_split_no_record(tmp_path: Path) -> None:
    states = ["one\u2028two", "one\u2029two", "one\x85two", "\ufeffone", "one\x0btwo\x1ctwo", "half \ud83d pair"]
    question = {"q": {"type": "noul", "instructions": "two?", "label": True, "src": "s"}}
    records = [DataRecord.build(state, question, id=f"r{n}", source="s") for n, state in enumerate(states)]
    data = b"".join(files.dump_json_line(record.to_json()) for record in records)
    path = tmp_path / "development.jsonl"
    path.write_bytes(data)
    manifest = {
        "version": 1,
        "files": {path.name: {"sha256": hashlib.sha256(data).hexdigest(), "records": len(states)}},
    }
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    back = [DataRecord.model_validate(value) for value in open_suite(tmp_path).read_partition("development")]
    assert [record.state for record in back] == states
    assert b"".join(files.dump_json_line(record.to_json()) for record in back) == data
