"""A test partition is read at a registered stage that may be read now, or by its owner's word."""

import pytest
from round_lab import RoundLab

from kev.benchmark import main as benchmark
from kev.errors import Refused
from kev.procedure import reading_tests
from kev.procedure.reading_tests import check_test_read
from kev.rounds.read_orders import wanted_directories
from kev.rounds.sides import candidate_side


def directory_of(lab: RoundLab, stage: str) -> str:
    """Where the stage's first test read of the first arm goes."""
    spec = lab.loaded.spec
    side = candidate_side(spec, next(iter(spec.arms)), spec.confirm[stage])
    return next(where for _, where in wanted_directories(spec, side, spec.confirm[stage]))


def test_a_directory_that_no_registered_round_names_is_refused_unless_the_owner_names_it(round_lab: RoundLab) -> None:
    with pytest.raises(Refused, match="no registered round reads a test into that directory"):
        check_test_read(round_lab.root, "runs/peek")
    with pytest.raises(Refused, match="--owner-allows peek"):
        check_test_read(round_lab.root, "runs/peek", owner_allows="other")
    check_test_read(round_lab.root, "runs/peek", owner_allows="other,peek")


def test_a_registered_stage_that_may_not_be_read_yet_is_refused_with_its_reasons(
    round_lab: RoundLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = directory_of(round_lab, next(iter(round_lab.loaded.spec.confirm)))
    with pytest.raises(Refused, match="no read-out yet"):
        check_test_read(round_lab.root, where)
    monkeypatch.setattr(reading_tests, "confirmation_problems", lambda *_: ["the choice is not committed"])
    with pytest.raises(Refused, match="the choice is not committed"):
        check_test_read(round_lab.root, where)
    monkeypatch.setattr(reading_tests, "confirmation_problems", lambda *_: [])
    check_test_read(round_lab.root, where)


def test_a_round_that_is_not_registered_permits_nothing(round_lab: RoundLab, monkeypatch: pytest.MonkeyPatch) -> None:
    where = directory_of(round_lab, next(iter(round_lab.loaded.spec.confirm)))
    monkeypatch.setattr(reading_tests, "confirmation_problems", lambda *_: [])
    import shutil

    shutil.rmtree(round_lab.root / ".git")
    with pytest.raises(Refused, match="no registered round"):
        check_test_read(round_lab.root, where)


def test_a_benchmark_of_a_test_on_this_machine_is_refused_in_one_line(
    round_lab: RoundLab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(round_lab.root)
    given = ["--run", "runs/p2b/checkpoint", "--suite", "evals/street-v1", "--out", "runs/peek", "--allow-test"]
    assert benchmark(given) == 1
    printed = capsys.readouterr()
    assert "runs/peek: a test is read at a registered stage alone" in printed.err and printed.err.count("\n") == 1
    assert not (round_lab.root / "runs/peek").exists()
