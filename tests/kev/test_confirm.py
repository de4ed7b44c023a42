"""Confirmation is guarded: for the candidate alone, in order, after the choice is committed, and once."""

import json
from pathlib import Path
from typing import Any

import pytest
from small_round import commit, edited, make_rows, parse_spec, write_round, write_rows, write_stage

from kev.errors import NotFound, Refused, UsageError
from kev.records.verdict import read_verdict
from kev.rounds.__main__ import main
from kev.rounds.choice import names_candidate
from kev.rounds.confirm import confirm
from kev.rounds.guards import candidate_of, confirmation_problems
from kev.rounds.places import readout_path
from kev.rounds.readout import readout, write_readout

PLAN = "# Plan\n\n## Round 41 - a joint delta\n\nArms 4b-a, 4b-b.\n\n- **Candidate (4b)**: `4b-a`\n\n## Round 42\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A round that is read out, its candidate committed, and the reads of the first stage there."""
    write_round(tmp_path)
    spec = parse_spec(edited())
    write_readout(readout_path(spec, tmp_path), readout(spec, tmp_path))
    commit(tmp_path, PLAN)
    write_stage(tmp_path)
    return tmp_path


def problems(root: Path, stage: str = "tests", arm: str = "4b-a") -> list[str]:
    return confirmation_problems(parse_spec(edited()), root, stage, arm)


def run_command(root: Path, *flags: str) -> int:
    path = root / "experiments/rounds/r41.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(edited()))
    return main(["confirm", str(path), "--root", str(root), *flags])


def test_the_candidate_of_a_read_out_is_confirmed_and_the_verdict_written(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert problems(root) == []
    assert run_command(root, "--stage", "tests") == 0
    stored = read_verdict(root / "runs/r41-verdict/4b-tests.json")
    assert stored.shape == "current"
    assert list(stored.original)[:3] == ["round", "stage", "arm"]
    assert (stored.verdict.arm, stored.verdict.passed) == ("4b-a", True)
    assert "gain" in capsys.readouterr().out


def test_json_is_the_verdict_itself(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_command(root, "--stage", "tests", "--json", "--arm", "4b-a", "--out", str(root / "verdicts"))
    assert capsys.readouterr().out == (root / "verdicts/4b-tests.json").read_text()


def test_a_verdict_is_never_replaced(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_command(root, "--stage", "tests")
    before = (root / "runs/r41-verdict/4b-tests.json").read_bytes()
    assert run_command(root, "--stage", "tests") == 1
    assert run_command(root, "--stage", "tests", "--out", str(root / "elsewhere")) == 1
    assert capsys.readouterr().err.count("never replaced") == 2
    assert (root / "runs/r41-verdict/4b-tests.json").read_bytes() == before


def test_stages_are_decided_in_order_and_only_after_a_pass(root: Path) -> None:
    write_stage(root, "docs")
    assert problems(root, "docs") == ["the earlier stage tests has no verdict"]
    run_command(root, "--stage", "tests")
    assert problems(root, "docs") == []
    path = root / "runs/r41-verdict/4b-tests.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "passed": None}))
    assert problems(root, "docs") == ["the earlier stage tests did not pass"]
    path.write_text(json.dumps({**json.loads(path.read_text()), "passed": True, "arm": "4b-b"}))
    assert problems(root, "docs") == ["the verdict of the earlier stage tests is about 4b-b"]


def test_only_the_candidate_may_be_confirmed(root: Path) -> None:
    found = problems(root, arm="4b-b")
    assert "4b-b is not the candidate of the read-out, which has 4b-a for 4b" in found
    with pytest.raises(UsageError, match="no arm '4b-c'; it has 4b-a, 4b-b"):
        problems(root, arm="4b-c")
    with pytest.raises(UsageError, match="no stage 'locked'; it has tests, docs"):
        problems(root, stage="locked")


def test_a_candidate_that_did_not_pass_is_refused(root: Path) -> None:
    path = readout_path(parse_spec(edited()), root)
    value: dict[str, Any] = json.loads(path.read_text())
    value["arms"]["4b-a"]["passed"] = None
    path.write_text(json.dumps(value))
    assert problems(root) == ["4b-a did not pass the rule"]


def test_without_a_read_out_nothing_is_confirmed(root: Path) -> None:
    readout_path(parse_spec(edited()), root).unlink()
    with pytest.raises(NotFound, match="no read-out yet"):
        problems(root)


@pytest.mark.parametrize("candidates", [{"4b": None}, {"4b": "4b-a", "9b": "9b-a"}])
def test_without_exactly_one_candidate_the_arm_must_be_named(root: Path, candidates: dict[str, str | None]) -> None:
    path = readout_path(parse_spec(edited()), root)
    path.write_text(json.dumps({**json.loads(path.read_text()), "candidates": candidates}))
    with pytest.raises(Refused, match="name the arm with --arm"):
        candidate_of(parse_spec(edited()), root)


def test_a_choice_that_is_not_committed_does_not_count(root: Path) -> None:
    commit(root, PLAN.replace("Candidate", "Considered"))
    (root / "PLAN.md").write_text(PLAN)
    (found,) = problems(root)
    assert found == (
        "PLAN.md at HEAD does not choose 4b-a; "
        "write the line 'Candidate: 4b-a' in the section of round 41 and commit it"
    )


def test_a_checkout_without_git_or_plan_says_what_to_write(root: Path, tmp_path: Path) -> None:
    (root / ".git").rename(root / "moved.git")
    (found,) = problems(root)
    assert found.startswith("PLAN.md is not in the commit at HEAD")
    assert "write the line 'Candidate: 4b-a'" in found


def test_the_choice_is_looked_for_in_the_rounds_own_section(root: Path) -> None:
    others = ["# Night 3", "## Round 4", "- Candidate: 4b-a", "## Round 41: y", "### Choice", "- none yet"]
    commit(root, "\n".join([*others, "## Round 410", "Candidate: 4b-a"]))
    (found,) = problems(root)
    assert found.startswith("PLAN.md at HEAD does not choose 4b-a")


@pytest.mark.parametrize(
    ("line", "chosen"),
    [
        ("Candidate: 9b-x", True),
        ("* **Candidates** - `9b-x` and `4b-y`", True),
        ("> candidate (9b) = 9b-x.", True),
        ("Candidate: 9b-x2", False),
        ("Candidate: pre-9b-x", False),
        ("Candidate: 9b-x-lr1", False),
        ("9b-x is no candidate", False),
        ("Candidates: one of 9b-x, 9b-z", False),
        ("The candidate will be 9b-x or 9b-y", False),
    ],
)
def test_a_choice_is_a_line_that_begins_with_candidate_and_names_the_arm(line: str, chosen: bool) -> None:
    assert names_candidate(line, "9b-x", ["9b-z", "9b-x2"]) is chosen


def test_a_test_read_before_under_another_name_is_refused(root: Path) -> None:
    report = json.loads((root / "runs/r41c-4b-cand-hardtest/report.json").read_text())
    write_rows(root, "runs/peek", make_rows(1, strength=1.0), report)
    assert problems(root) == ["4b-a was read on the test split of hardtest before, as runs/peek"]
    for key, other in (("split", "development"), ("run", "/runs/x/checkpoint"), ("suite_sha256", "other")):
        write_rows(root, "runs/peek", make_rows(1, strength=1.0), {**report, key: other})
        assert problems(root) == []


@pytest.mark.parametrize("place", ["runs/peek/report.json", "runs/locked/elder/summary.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"null", b'{"run": "a", "run": "b"}'])
def test_a_read_whose_record_cannot_be_read_may_have_been_of_this_test(root: Path, place: str, content: bytes) -> None:
    (root / place).parent.mkdir(parents=True)
    (root / place).write_bytes(content)
    (problem,) = problems(root)
    assert place in problem and "it may be an earlier read of this test" in problem
    assert run_command(root, "--stage", "tests") == 1
    (root / place).unlink()
    assert problems(root) == []


def test_a_second_locked_read_of_the_same_checkpoint_is_refused(root: Path) -> None:
    spec = edited()
    spec["reads"]["locked"] = {"entrypoint": "locked_test", "decision": "evals/decision"}
    spec["confirm"] = {
        "locked": {
            "candidate_reads": {"locked": "runs/locked/r41/transfer"},
            "parent_reads": {"locked": "runs/locked/p4/transfer"},
            "panels": {"locked": {"reads": ["locked"], "metrics": ["acc"]}},
            "criteria": {},
        }
    }
    summary = {"trial": "r41-4b/00-trial-0", "suites": {"transfer": {"suite_sha256": "t" * 64}}}
    for name in ("r41", "r41-again"):
        place = root / "runs/locked" / name
        place.mkdir(parents=True)
        (place / "summary.json").write_text(json.dumps(summary))
    (found,) = confirmation_problems(parse_spec(spec), root, "locked", "4b-a")
    assert found.startswith("4b-a was read on the test split of locked before, as runs/locked/r41-again")


def test_answers_of_another_checkpoint_are_refused(root: Path) -> None:
    path = root / "runs/r41c-4b-cand-hardtest/report.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "run": "/runs/r41-4b/01-trial-1/checkpoint"}))
    (found,) = problems(root)
    assert found.startswith("runs/r41c-4b-cand-hardtest holds answers of /runs/r41-4b/01-trial-1/checkpoint")


def test_a_stage_with_missing_rows_is_not_decided_and_leaves_no_verdict(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "runs/r41c-4b-parent-hardtest/rows.json").unlink()
    assert run_command(root, "--stage", "tests") == 1
    assert "no verdict while rows are missing: parent:runs/r41c-4b-parent-hardtest" in capsys.readouterr().err
    assert not (root / "runs/r41-verdict").exists()


def test_a_stage_keeps_the_temperature_of_the_rule_stage(root: Path) -> None:
    spec = parse_spec(edited())
    verdict = confirm(spec, root, "tests", "4b-a")
    stored = json.loads(readout_path(spec, root).read_text())["arms"]["4b-a"]
    for key in ("temperature", "parent_temperature", "temperature_fit", "temperature_ci"):
        assert verdict[key] == stored[key]


def test_every_rule_that_forbids_is_named_at_once(root: Path) -> None:
    commit(root, "# Plan\n")
    with pytest.raises(Refused) as caught:
        confirm(parse_spec(edited()), root, "docs", "4b-b")
    message = str(caught.value)
    assert "\n" not in message
    for part in ("not the candidate", "no section for round 41", "the earlier stage tests has no verdict"):
        assert part in message
