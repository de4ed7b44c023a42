"""Suites stay what they were when they were frozen, and say why they are refused when they are not."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from checkouts import record, write_suite
from hypothesis import given
from hypothesis import strategies as st

from kev import suite as suites
from kev.errors import DamagedFile, DamagedLine, NotFound, Refused, UsageError
from kev.records.suite import Manifest
from kev.suite import REMOVED_SUITES, Suite, check_suite, explain_difference, find_removed, open_suite


@pytest.fixture
def frozen(tmp_path: Path) -> Suite:
    records = [record("lamps", number, "lanes") for number in range(4)]
    odd = "a\u2028b\u2029c\u0085d\ufeff"
    partitions = {"train": records, "development": [record("lamps", 9, "lanes", odd)], "test": records[:1]}
    write_suite(tmp_path / "lamps-v1", partitions, trainable=["lanes"], eval_only=[])
    return open_suite(tmp_path / "lamps-v1")


def test_partitions_are_read_whole_and_line_separators_in_strings_are_text(frozen: Suite) -> None:
    assert len(frozen.read_partition("train")) == 4
    assert frozen.read_partition("development")[0]["state"] == "a\u2028b\u2029c\u0085d\ufeff"
    assert check_suite(frozen) == []


def test_the_test_split_is_unreadable_without_the_word_for_it(frozen: Suite) -> None:
    with pytest.raises(Refused, match="test split"):
        frozen.read_partition("test")
    assert len(frozen.read_partition("test", allow_test=True)) == 1
    with pytest.raises(UsageError):
        frozen.read_partition("tset", allow_test=True)


@pytest.mark.parametrize(
    "make",
    [
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data.rstrip(b"\n") + b"\r\n",
        lambda data: data.replace(b"\n", b"\r"),
        lambda data: b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"),
    ],
)
def test_converted_line_endings_are_refused_by_that_name_and_no_rewriting_is_offered(frozen: Suite, make: Any) -> None:
    path = frozen.partition_path("train")
    path.write_bytes(make(path.read_bytes()))
    with pytest.raises(DamagedFile) as refusal:
        frozen.read_partition("train")
    message = str(refusal.value)
    assert "line endings" in message
    assert "autocrlf" in message
    assert "manifest" not in message


@given(st.integers(0, 200), st.integers(1, 255))
def test_any_other_change_is_refused_without_that_remark(tmp_path_factory: Any, place: int, other: int) -> None:
    directory = tmp_path_factory.mktemp("suite") / "lamps-v1"
    write_suite(directory, {"train": [record("lamps", 1, "lanes")]}, trainable=["lanes"], eval_only=[])
    path = directory / "train.jsonl"
    data = bytearray(path.read_bytes())
    place %= len(data) - 1
    data[place] ^= other
    if bytes(data).replace(b"\r", b"") == path.read_bytes():
        return
    path.write_bytes(data)
    with pytest.raises(DamagedFile) as refusal:
        open_suite(directory).read_partition("train")
    assert "line endings" not in str(refusal.value)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda data: data.decode().encode("utf-16"), "its encoding, UTF-16;"),
        (lambda data: data.decode().replace("\n", "\r\n").encode("utf-16"), "UTF-16 and its line endings"),
        (lambda data: data.rstrip(b"\n"), "only in the newline at its end;"),
        (lambda data: data + b"\n", "only in the newline at its end;"),
        (lambda _: b"", "it is empty"),
        (lambda _: b"version https://git-lfs.github.com/spec/v1\noid sha256:0f\nsize 9\n", "a Git LFS pointer"),
        (lambda data: data + b"\n\n", "other bytes"),
        (lambda data: b"\xff\xfe" + data[:-1], "other bytes"),
    ],
)
def test_what_else_happens_to_a_file_on_its_way_is_named(frozen: Suite, make: Any, says: str) -> None:
    path = frozen.partition_path("train")
    path.write_bytes(make(path.read_bytes()))
    with pytest.raises(DamagedFile, match=says):
        frozen.read_partition("train")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"a\r\nb", "only in its line endings, which a checkout converted;"),
        (b"\xef\xbb\xbfa\nb", "only in a byte order mark that an editor put at its start;"),
        (b"a\nb\n", "only in the newline at its end;"),
        (b"a\r\nb\r\n", "line endings, which a checkout converted and the newline at its end;"),
    ],
)
def test_the_end_of_a_file_is_named_only_where_it_differs(data: bytes, says: str) -> None:
    assert says in explain_difference(data, hashlib.sha256(b"a\nb").hexdigest())


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda data: data.replace(b"\n", b"\r\n"), "line endings were converted"),
        (lambda data: b"\xef\xbb\xbf" + data, "begins with a byte order mark"),
    ],
)
def test_a_converted_manifest_is_no_longer_the_suite_that_reports_know(frozen: Suite, make: Any, says: str) -> None:
    path = frozen.directory / "manifest.json"
    path.write_bytes(make(path.read_bytes()))
    with pytest.raises(DamagedFile, match=f"{says}.*autocrlf"):
        open_suite(frozen.directory)


@pytest.mark.parametrize("key", ["eval_only", "trainable_sources"])
def test_a_manifest_that_says_something_twice_is_refused(frozen: Suite, key: str) -> None:
    manifest = frozen.directory / "manifest.json"
    manifest.write_text(manifest.read_text().rstrip()[:-1] + f', "{key}": []}}')
    with pytest.raises(DamagedFile, match=f"'{key}' is given twice"):
        open_suite(frozen.directory)


def test_a_byte_order_mark_is_named(frozen: Suite) -> None:
    path = frozen.partition_path("train")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    with pytest.raises(DamagedFile, match="byte order mark"):
        frozen.read_partition("train")


def refrozen(frozen: Suite, data: bytes, **counts: int) -> Suite:
    """`frozen` with another train partition that its manifest agrees with."""
    import hashlib

    frozen.partition_path("train").write_bytes(data)
    path = frozen.directory / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["files"]["train.jsonl"] = {"sha256": hashlib.sha256(data).hexdigest(), **counts}
    path.write_text(json.dumps(manifest))
    return open_suite(frozen.directory)


def test_counts_that_disagree_with_the_manifest_are_refused(frozen: Suite) -> None:
    data = frozen.partition_path("train").read_bytes()
    with pytest.raises(DamagedFile, match="holds 4 records; its manifest says 5"):
        refrozen(frozen, data, records=5).read_partition("train")
    with pytest.raises(DamagedFile, match="holds 4 questions; its manifest says 3"):
        refrozen(frozen, data, records=4, questions=3).read_partition("train")


def test_a_bad_line_is_named_by_its_number_and_blank_lines_are_harmless(frozen: Suite) -> None:
    good = json.dumps(record("lamps", 1, "lanes")).encode()
    assert len(refrozen(frozen, good + b"\r\n\r\n" + good + b"\r\n").read_partition("train")) == 2
    with pytest.raises(DamagedLine, match="line 3"):
        refrozen(frozen, good + b"\n\n" + good[:-3] + b"\n").read_partition("train")
    with pytest.raises(DamagedLine, match=r"line 2: a record is an object with questions"):
        refrozen(frozen, good + b"\n[1]\n").read_partition("train")


def test_an_absent_partition_says_where_it_comes_from_and_how_to_fetch_it(frozen: Suite) -> None:
    frozen.partition_path("train").unlink()
    with pytest.raises(NotFound) as absent:
        frozen.read_partition("train")
    assert f"{suites.PUBLIC_DATASET} at {suites.PUBLIC_REVISION[:12]}" in str(absent.value)
    assert "python -m kev.suite fetch" in str(absent.value)
    mirror = {"dataset": "lamps/private", "revision": "abc"}
    private = Suite(frozen.directory, Manifest.model_validate({"mirror": mirror}), "")
    assert "the private dataset lamps/private at abc" in private.how_to_fetch()
    assert "token" in private.how_to_fetch()


def test_a_file_that_the_manifest_does_not_name_is_a_difference(frozen: Suite) -> None:
    (frozen.directory / "extra.jsonl").write_text("{}\n")
    assert any("extra.jsonl: not in the manifest" in line for line in check_suite(frozen))


@pytest.mark.parametrize("name", sorted(REMOVED_SUITES))
@pytest.mark.parametrize("form", ["{}", "./{}/", "/data/{}", "{}/manifest.json", "evals/../{}", "x//{}", "{}/../{}"])
def test_a_removed_suite_is_known_in_any_spelling_of_its_path(name: str, form: str) -> None:
    leaf = name.rpartition("/")[2]
    path = form.format(name, leaf) if form.count("{}") == 2 else form.format(name)
    assert find_removed(path) == name
    assert find_removed(path.upper()) == name
    with pytest.raises(Refused, match=REMOVED_SUITES[name]["removed"]):
        open_suite(Path(name))


@pytest.mark.parametrize("path", ["evals/external/wanli-v3", "evals/wanli-v2", "evals/external", ""])
def test_other_suites_are_not_removed(path: str) -> None:
    assert find_removed(path) is None


def test_the_command_exits_with_1_for_a_suite_that_differs(frozen: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    assert suites.main(["check", str(frozen.directory)]) == 0
    frozen.partition_path("train").write_text("")
    assert suites.main(["check", str(frozen.directory)]) == 1
    assert "train.jsonl" in capsys.readouterr().err


def test_fetching_without_the_hub_client_says_what_to_install(
    frozen: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    frozen.partition_path("train").unlink()
    code = suites.main(["fetch", str(frozen.directory), "--root", str(frozen.directory.parent)])
    words = capsys.readouterr().err
    assert code == 1
    assert "kevtui[hub]" in words or "could not be fetched" in words
