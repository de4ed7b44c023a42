"""The time of registration is that of the commit which first held both the spec and its section of the plan."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from checkouts import git, good_spec, write_checkout, write_spec

from kev.errors import Refused
from kev.rounds.choice import names_candidate
from kev.rounds.registration import find_section, plan_document, registration
from kev.rounds.validate import validate

SECTION = "## Round 201 - lamps\n\nThe rule.\n"


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = write_spec(write_checkout(tmp_path), good_spec())
    git(tmp_path, "init", "-q", "-b", "main")
    return path


def commit(root: Path, day: int, *names: str) -> None:
    git(root, "add", *(names or ("-A",)))
    git(root, "commit", "-q", "-m", "x", at=f"2026-11-{day:02}T10:00:00+02:00")


def day(number: int) -> datetime:
    return datetime(2026, 11, number, 8, tzinfo=UTC)


def test_one_commit_with_both_registers_the_round(spec: Path, tmp_path: Path) -> None:
    (tmp_path / "PLAN.md").write_text(f"# Plan\n\n{SECTION}")
    commit(tmp_path, 1)
    found = registration(spec, tmp_path)
    assert found.at == day(1)
    assert found.section == "Round 201 - lamps"
    assert found.changes == ()
    assert git(tmp_path, "rev-parse", "HEAD").strip() == found.commit


@pytest.mark.parametrize("first", ["PLAN.md", "experiments"])
def test_of_two_commits_the_later_one_registers(spec: Path, tmp_path: Path, first: str) -> None:
    (tmp_path / "PLAN.md").write_text(SECTION)
    commit(tmp_path, 1, first)
    commit(tmp_path, 2)
    assert registration(spec, tmp_path).at == day(2)


def test_a_section_on_another_round_registers_nothing(spec: Path, tmp_path: Path) -> None:
    (tmp_path / "PLAN.md").write_text("## Round 2010\n\n## Round 20\n\nmentions round 201\n")
    commit(tmp_path, 1)
    with pytest.raises(Refused, match=r"not registered: no commit holds a section on round 201 in PLAN\.md"):
        registration(spec, tmp_path)


def test_a_spec_that_is_not_committed_is_not_registered(spec: Path, tmp_path: Path) -> None:
    (tmp_path / "PLAN.md").write_text(SECTION)
    commit(tmp_path, 1, "PLAN.md")
    with pytest.raises(Refused, match="not registered: no commit holds the spec"):
        registration(spec, tmp_path)


def test_outside_of_git_nothing_is_registered(tmp_path: Path) -> None:
    path = write_spec(write_checkout(tmp_path), good_spec())
    with pytest.raises(Refused, match="not registered"):
        registration(path, tmp_path)


def test_a_spec_outside_the_root_is_not_registered_there(spec: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.raises(Refused, match="lies outside"):
        registration(spec, tmp_path_factory.mktemp("elsewhere"))


def test_later_changes_are_told_with_the_time_of_the_last_one(spec: Path, tmp_path: Path) -> None:
    (tmp_path / "PLAN.md").write_text(SECTION)
    commit(tmp_path, 1)
    spec.write_text(spec.read_text().replace('"budget": 56', '"budget": 57'))
    commit(tmp_path, 2)
    (tmp_path / "PLAN.md").write_text(f"{SECTION}\nResult: 2b-full.\n\n## Round 202\n")
    commit(tmp_path, 3)
    (tmp_path / "PLAN.md").write_text(f"{SECTION}\nResult: 2b-full.\n\n## Round 202\n\nmore\n")
    commit(tmp_path, 4)
    found = registration(spec, tmp_path)
    assert found.at == day(1)
    assert [(change.what, change.at) for change in found.changes] == [("spec", day(2)), ("section", day(3))]
    warnings = [str(finding) for finding in validate(spec, tmp_path).findings if finding.code.startswith("changed")]
    assert len(warnings) == 2
    assert "the spec was changed after its registration on 2026-11-01 08:00 UTC: on 2026-11-02 08:00 UTC" in warnings[0]


def test_a_change_that_nobody_has_committed_is_told(spec: Path, tmp_path: Path) -> None:
    (tmp_path / "PLAN.md").write_text(SECTION)
    commit(tmp_path, 1)
    spec.write_text(spec.read_text().replace('"budget": 56', '"budget": 57'))
    (change,) = registration(spec, tmp_path).changes
    assert (change.what, change.at) == ("spec", None)


def test_a_checkout_inside_a_larger_repository_is_read_by_its_own_paths(tmp_path: Path) -> None:
    root = tmp_path / "inner"
    root.mkdir()
    path = write_spec(write_checkout(root), good_spec())
    (root / "PLAN.md").write_text(SECTION)
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path, 1)
    assert registration(path, root).at == day(1)


def test_a_section_ends_at_the_next_heading_of_its_level_and_not_inside_code() -> None:
    text = "# Plan\n## Round 7\na\n### Rule\nb\n```\n# comment\n```\nc\n## Round 8\nd\n"
    assert find_section(text, 7) == "## Round 7\na\n### Rule\nb\n```\n# comment\n```\nc"
    assert find_section(text, 8) == "## Round 8\nd"
    assert find_section(text, 9) is None


@pytest.mark.parametrize(
    ("registered", "name"),
    [("PLAN.md > Night 3 > Round 16", "PLAN.md"), ("docs/PLAN.md > Round 3", "docs/PLAN.md"), ("", "PLAN.md"),
     ("../../etc/x.md > Round 3", "PLAN.md")],
)  # fmt: skip
def test_the_plan_document_is_the_one_the_spec_names(registered: str, name: str) -> None:
    assert plan_document(registered) == name


def test_line_ends_that_a_checkout_converted_are_no_change_of_what_was_registered(spec: Path, tmp_path: Path) -> None:
    plan = tmp_path / "PLAN.md"
    plan.write_text(SECTION)
    commit(tmp_path, 1)
    for path in (spec, plan):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert registration(spec, tmp_path).changes == ()


def test_a_separator_within_a_line_of_the_plan_begins_no_line() -> None:
    text = "## Round 7\nquoted:\u2028## Round 8\x0b## Round 9\x85Candidate: b\nend\n"
    assert find_section(text, 7) == text.rstrip("\n")
    assert (find_section(text, 8), find_section(text, 9)) == (None, None)
    assert not names_candidate(text, "b", ())
    assert find_section("\ufeff# Round 7\r\nx\r\n", 7) == "# Round 7\nx"
