"""Directories and names of a round: none is another's, in these letters or in others."""

from pathlib import Path

import pytest
from checkouts import Check, changed, good_spec, write_checkout, write_spec
from test_validate_rules import found

from kev.rounds.problems import Severity
from kev.rounds.validate import validate

SPEC = good_spec()


@pytest.mark.parametrize("template", ["runs/r201c-{size}-cand-{tag}", "runs/R201C-{size}-Cand-{tag}"])
def test_a_stage_reads_its_two_sides_into_directories_of_their_own(check: Check, template: str) -> None:
    codes = found(check(changed(SPEC, "confirm", "tests", "parent_reads", to=template)))
    assert set(codes) == {("shared-directory", "confirm.tests.parent_reads")}


def test_a_stage_may_read_where_the_rule_would_have_read_the_same_test_if_it_read_tests(check: Check) -> None:
    assert check(changed(SPEC, "confirm", "tests", "candidate_reads", to="runs/r201-2b-full-{tag}")).ok


@pytest.mark.parametrize("study", ["r201-delta", "R201-Delta"])
def test_no_read_goes_to_the_directory_of_a_study(check: Check, study: str) -> None:
    spec = changed(SPEC, "arms", "2b-blend", "reads", "far", to=f"runs/{study}")
    (problem,) = check(spec).of(Severity.PROBLEM)
    assert (
        problem.message == f"runs/{study} holds the read far of 2b-blend, and is also that of the study runs/r201-delta"
    )


def test_candidates_of_two_sizes_do_not_share_the_directory_of_a_stage(check: Check) -> None:
    spec = changed(SPEC, "arms", "9b-delta", to={**SPEC["arms"]["2b-delta"]})
    spec = changed(spec, "arms", "2b-delta", "trial", to="runs/r201-full/00-trial-0")
    assert "shared-directory" not in [code for code, _ in found(check(spec))]
    spec = changed(spec, "confirm", "tests", "candidate_reads", to="runs/r201c-cand-{tag}")
    assert ("shared-directory", "confirm.tests.candidate_reads") in found(check(spec))


def test_names_of_an_earlier_round_are_not_used_again(tmp_path: Path) -> None:
    path = write_checkout(tmp_path)
    earlier = changed(SPEC, "round", to=190)
    earlier = changed(earlier, "confirm", to={"locked": SPEC["confirm"]["locked"]})
    earlier = changed(earlier, "studies", to={"r201-delta": SPEC["studies"]["r201-delta"]})
    write_spec(path.with_name("r190.json"), earlier)
    write_spec(path.with_name("r300.json"), changed(SPEC, "round", to=300))
    path.with_name("r9.json").write_text("[")
    codes = found(validate(write_spec(path, SPEC), tmp_path))
    assert codes == [("used-name", "studies.r201-delta"), ("used-name", "confirm.locked.candidate_reads")]
    (problem, _) = validate(path, tmp_path).of(Severity.PROBLEM)
    assert "round 190" in problem.message


def test_a_name_of_an_earlier_round_in_other_letters_is_used_as_well(tmp_path: Path) -> None:
    path = write_checkout(tmp_path)
    earlier = changed(SPEC, "round", to=190)
    earlier = changed(earlier, "studies", to={"R201-Delta": SPEC["studies"]["r201-delta"]})
    earlier = changed(earlier, "confirm", "tests", "candidate_reads", to="runs/R201c-{size}-CAND-{tag}")
    write_spec(path.with_name("r190.json"), changed(earlier, "confirm", to={"tests": earlier["confirm"]["tests"]}))
    problems = validate(write_spec(path, SPEC), tmp_path).of(Severity.PROBLEM)
    assert {(problem.code, problem.where[0]) for problem in problems} == {
        ("used-name", "studies"),
        ("used-name", "confirm"),
    }
    assert "a study named 'R201-Delta', the same on some file systems (r190.json)" in problems[0].message
