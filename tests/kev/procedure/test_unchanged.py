"""A round rests on what it was registered with: frozen suites and the files that decide a score."""

import json
from pathlib import Path

import pytest
from checkouts import git
from round_lab import RoundLab

from kev.errors import Refused
from kev.procedure.unchanged import changed_suites
from kev.rounds.confirm import check_unchanged
from kev.rounds.launch import check_launchable, launch


@pytest.fixture
def with_evaluators(tmp_path: Path) -> RoundLab:
    """A round that was registered in a checkout with two evaluator files and one that is none."""
    root = tmp_path / "checkout"
    for name in ("kev/metrics/__init__.py", "kev/report.py", "kev/gate.py"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("A = 1\n")
    return RoundLab(root)


@pytest.mark.parametrize("name", ["kev/metrics/__init__.py", "kev/report.py"])
async def test_an_evaluator_file_that_changed_since_the_registration_refuses_launch_and_verdict(
    with_evaluators: RoundLab, name: str
) -> None:
    lab = with_evaluators
    check_launchable(lab.loaded)
    (lab.root / name).write_text("A = 2\n")
    git(lab.root, "commit", "-qam", "A better metric")
    with pytest.raises(Refused, match=rf"{name} decides scores and was changed since the round was registered"):
        await launch(lab.engine(), lab.loaded)
    with pytest.raises(Refused, match="decides scores"):
        check_unchanged(lab.spec_path, lab.root, lab.loaded.spec)
    assert lab.compute.calls == {}


def test_a_change_that_nobody_committed_is_one_and_other_files_may_change(with_evaluators: RoundLab) -> None:
    (with_evaluators.root / "kev/gate.py").write_text("A = 2\n")
    check_launchable(with_evaluators.loaded)
    (with_evaluators.root / "kev/report.py").unlink()
    with pytest.raises(Refused, match=r"kev/report\.py decides scores"):
        check_launchable(with_evaluators.loaded)


async def test_a_frozen_manifest_that_was_changed_refuses_a_launch_even_where_everything_agrees(
    round_lab: RoundLab,
) -> None:
    path = round_lab.root / "evals/street-v1/manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"remark": "better now"}, indent=2))
    with pytest.raises(Refused, match=r"evals/street-v1/manifest\.json was changed after it was frozen"):
        await launch(round_lab.engine(), round_lab.loaded)
    git(round_lab.root, "commit", "-qam", "Improve a suite")
    with pytest.raises(Refused, match="a frozen suite never changes"):
        await launch(round_lab.engine(), round_lab.loaded)
    assert round_lab.compute.calls == {}


async def test_a_partition_that_was_added_to_a_frozen_suite_refuses_a_launch(round_lab: RoundLab) -> None:
    (round_lab.root / "evals/street-v1/extra.jsonl").write_text("{}\n")
    with pytest.raises(Refused, match=r"evals/street-v1/extra\.jsonl is not in the manifest; nothing is added"):
        await launch(round_lab.engine(), round_lab.loaded)
    assert round_lab.compute.calls == {}


def test_a_suite_that_git_never_held_is_compared_with_nothing_but_its_manifest(round_lab: RoundLab) -> None:
    (round_lab.root / "evals/new-v1").mkdir()
    (round_lab.root / "evals/new-v1/manifest.json").write_text('{"files": {}}')
    assert changed_suites(round_lab.root, ["evals/new-v1", "evals/street-v1"]) == []


async def test_a_full_weight_study_without_snapshots_needs_its_owners_word(round_lab: RoundLab) -> None:
    plan = round_lab.root / "experiments/round201/full.json"
    plan.write_text(json.dumps([{**json.loads(plan.read_text())[0], "snapshot_fractions": "none"}]))
    git(round_lab.root, "commit", "-qam", "No snapshots")
    with pytest.raises(Refused, match=r"study r201-full: its plan keeps no snapshot .*--owner-allows r201-full"):
        await launch(round_lab.engine(), round_lab.loaded, stagger_s=0)
    assert round_lab.compute.calls == {}
    done = await launch(round_lab.engine(), round_lab.loaded, stagger_s=0, owner_allows=["r201-full"])
    assert len(done.calls) == 2
