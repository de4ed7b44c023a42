"""A drafted round names its own directories, nothing that was removed, and overwrites nothing."""

import json
from pathlib import Path

import pytest
from checkouts import changed, git, good_spec, write_checkout, write_spec

from kev.errors import DamagedFile, Refused, UsageError
from kev.rounds.__main__ import main
from kev.rounds.problems import Severity
from kev.rounds.registration import find_section, registration
from kev.rounds.scaffold import draft_round, write_draft
from kev.rounds.validate import validate

SPEC = good_spec()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_spec(write_checkout(tmp_path), changed(SPEC, "archive", to="rounds/r201"))


def new(source: Path, number: int) -> int:
    return main(["new", str(number), "--from", str(source)])


def test_the_draft_validates_and_is_registered_by_committing_it(source: Path, tmp_path: Path) -> None:
    assert new(source, 202) == 0
    path = tmp_path / "experiments" / "rounds" / "r202.json"
    result = validate(path, tmp_path)
    # What panels leave out stays the same file, wherever it lies.
    assert result.of(Severity.PROBLEM) == []
    assert "other-round" not in {finding.code for finding in result.findings}
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "x", at="2026-11-01T10:00:00Z")
    assert registration(path, tmp_path).section == "Round 202"


def test_its_own_names_are_renumbered_and_those_of_others_are_not(source: Path, tmp_path: Path) -> None:
    new(source, 202)
    spec = json.loads((tmp_path / "experiments" / "rounds" / "r202.json").read_text())
    assert list(spec["studies"]) == ["r202-full", "r202-delta"]
    assert spec["studies"]["r202-full"]["plan"] == "experiments/round202/full.json"
    assert (tmp_path / "experiments" / "round202" / "full.json").read_bytes() == (
        tmp_path / "experiments" / "round201" / "full.json"
    ).read_bytes()
    assert spec["arms"]["2b-full"]["trial"] == "runs/r202-full/00-trial-0"
    assert spec["arms"]["2b-blend"]["checkpoint"] == "/runs/r202-blend/2b-w50/checkpoint"
    assert spec["confirm"]["tests"]["candidate_reads"] == "runs/r202c-{size}-cand-{tag}"
    assert spec["app"] == "lamps-r202"
    assert spec["parents"] == SPEC["parents"]
    assert spec["rule"] == SPEC["rule"]
    assert "r201" not in json.dumps({key: spec[key] for key in ("studies", "arms", "confirm", "construction")})


def test_what_belongs_to_the_old_round_alone_is_left_out(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new(source, 202)
    spec = json.loads((source.parent / "r202.json").read_text())
    words = capsys.readouterr().out
    for key in ("archive", "budget", "recovery"):
        assert key not in spec
        assert f"left out {key}: " in words


def test_a_removed_suite_takes_its_reads_panels_and_criteria_along(tmp_path: Path) -> None:
    spec = changed(SPEC, "reads", "far", "suite", to="evals/external/wanli-v2")
    spec = changed(spec, "rule", "rank", to=[{"by": "spare.acc.candidate"}, {"by": "street.acc.delta"}])
    spec = changed(spec, "rule", "criteria", "9_spare", to={"left": "spare.acc.candidate", "op": ">", "right": 0})
    draft = draft_round(202, spec)
    assert "far" not in draft.spec["reads"]
    assert "far" not in draft.spec["parents"]["base"]["reads"]
    assert "far" not in draft.spec["arms"]["2b-blend"]["reads"]
    assert "spare" not in draft.spec["rule"]["panels"]
    assert "9_spare" not in draft.spec["rule"]["criteria"]
    assert draft.spec["rule"]["rank"] == [{"by": "street.acc.delta"}]
    assert "unknowable" not in draft.spec["rule"]
    assert any("evals/external/wanli-v2 was removed on 2026-09-30" in note for note in draft.notes)


def test_a_panel_that_keeps_a_read_stays_without_the_removed_one() -> None:
    spec = changed(SPEC, "reads", "gone", to={"suite": "evals/external/typesafe-v1"})
    spec = changed(spec, "rule", "panels", "street", "reads", to=["street", "gone"])
    assert draft_round(202, spec).spec["rule"]["panels"]["street"]["reads"] == ["street"]


def test_the_section_lists_the_arms_and_the_whole_rule(source: Path, tmp_path: Path) -> None:
    (tmp_path / "PLAN.md").write_text("# Plan\n\n## Round 201\n\nDone.")
    new(source, 202)
    text = (tmp_path / "PLAN.md").read_text()
    assert text.startswith("# Plan\n\n## Round 201\n\nDone.\n")
    section = find_section(text, 202) or ""
    assert all(arm in section for arm in SPEC["arms"])
    assert all(name in section for name in SPEC["rule"]["criteria"])
    assert "`street.ece.candidate <= street.ece.parent + 0.01`" in section


def test_nothing_that_exists_is_overwritten(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert new(source, 202) == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert new(source, 202) == 1
    assert "already" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_an_existing_spec_or_section_alone_is_enough_to_refuse(tmp_path: Path) -> None:
    draft = draft_round(202, SPEC)
    (tmp_path / "PLAN.md").write_text("### Round 202 - taken\n")
    with pytest.raises(Refused, match="section on round 202"):
        write_draft(draft, tmp_path)
    assert not (tmp_path / "experiments").exists()
    (tmp_path / "PLAN.md").unlink()
    (tmp_path / "experiments" / "rounds").mkdir(parents=True)
    (tmp_path / "experiments" / "rounds" / "r202.json").write_text("mine")
    with pytest.raises(Refused, match="is there already"):
        write_draft(draft, tmp_path)
    assert not (tmp_path / "PLAN.md").exists()


@pytest.mark.parametrize("number", [201, 0, -3])
def test_a_number_that_is_taken_or_none_is_refused(number: int) -> None:
    with pytest.raises(UsageError):
        draft_round(number, SPEC)


def test_a_spec_that_cannot_be_read_is_no_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "r1.json"
    path.write_text('{"round": "one"}')
    assert main(["new", "2", "--from", str(path)]) == 1
    assert "round" in capsys.readouterr().err
    with pytest.raises(DamagedFile):
        from kev.rounds.specs import load_spec

        load_spec(path)
