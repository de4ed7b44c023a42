"""The newest resume point or snapshot is found by looking inside, and a run never starts again at 0 in silence."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kev.errors import Refused
from kev.train.points import find_continuation, list_resume_points, list_snapshots, step_name


def make_snapshot(directory: Path, name: str, step: int, content: str | None = None) -> None:
    checkpoint = directory / name / "checkpoint"
    checkpoint.mkdir(parents=True)
    text = json.dumps({"step": step, "steps": 5000}) if content is None else content
    (checkpoint / "snapshot.json").write_text(text)


def make_point(directory: Path, step: int, *ranks: bytes | None) -> None:
    point = directory / step_name(step)
    point.mkdir(parents=True)
    for rank, content in enumerate(ranks):
        if content is not None:
            (point / f"rank{rank}.pt").write_bytes(content)


def acknowledge(directory: Path, step: int, world: int) -> None:
    (directory / "latest.json").write_text(json.dumps({"dir": step_name(step), "step": step, "world": world}))


def test_snapshots_are_ordered_by_number_whatever_their_width(tmp_path: Path) -> None:
    for name, step in (("step-9", 9), ("step-0000010", 10), ("step-1000", 1000), ("step-00200", 200)):
        make_snapshot(tmp_path, name, step)
    assert [found.step for found in list_snapshots(tmp_path).complete] == [9, 10, 200, 1000]


def test_names_that_are_not_ours_are_listed_apart(tmp_path: Path) -> None:
    make_snapshot(tmp_path, "step-0000010", 10)
    strangers = ["best", "step-", "step-0000020-converted", "step-2e1", "step--5", "step-0000030.old", "step-٣"]
    for name in strangers:
        make_snapshot(tmp_path, name, 99)
    listing = list_snapshots(tmp_path)
    assert [found.step for found in listing.complete] == [10]
    assert sorted(listing.foreign) == sorted(strangers)


@pytest.mark.parametrize("content", ["", "{", "null", "[]", '{"step": "30"}', '{"step": 31, "steps": 40}', '{"st'])
def test_a_snapshot_whose_record_is_not_that_of_its_step_is_incomplete(tmp_path: Path, content: str) -> None:
    make_snapshot(tmp_path, "step-0000030", 30, content)
    (found,) = list_snapshots(tmp_path).incomplete
    assert found.step == 30
    assert "snapshot.json" in found.faults[0]


def test_of_two_directories_for_one_step_both_are_named_and_ours_is_taken(tmp_path: Path) -> None:
    make_snapshot(tmp_path, "step-70", 70)
    make_snapshot(tmp_path, "step-0000070", 70)
    listing = list_snapshots(tmp_path)
    assert listing.twins == (("step-0000070", "step-70"),)
    assert [found.path.name for found in listing.complete] == ["step-0000070"]


def test_of_two_directories_for_one_step_the_complete_one_is_taken(tmp_path: Path) -> None:
    make_snapshot(tmp_path, "step-70", 70)
    make_snapshot(tmp_path, "step-0000070", 70, "")
    assert [found.path.name for found in list_snapshots(tmp_path).complete] == ["step-70"]


@given(st.dictionaries(st.integers(0, 10**7), st.booleans(), max_size=8))
def test_the_newest_complete_snapshot_is_the_one_of_the_highest_number(
    tmp_path_factory: pytest.TempPathFactory, steps: dict[int, bool]
) -> None:
    directory = tmp_path_factory.mktemp("snapshots")
    for step, complete in steps.items():
        make_snapshot(directory, f"step-{step}", step, None if complete else "")
    complete = [step for step, whole in steps.items() if whole]
    assert [found.step for found in list_snapshots(directory).complete] == sorted(complete)


def test_a_run_that_never_kept_anything_has_nowhere_to_go_on_from(tmp_path: Path) -> None:
    assert find_continuation(tmp_path / "resume", world=1) is None


def test_the_point_that_was_acknowledged_comes_first(tmp_path: Path) -> None:
    make_point(tmp_path, 40, b"x", b"x")
    make_point(tmp_path, 60, b"x", b"x")
    make_point(tmp_path, 80, b"x", b"x")  # complete, and the kill came before latest.json
    acknowledge(tmp_path, 60, world=2)
    found = find_continuation(tmp_path, world=2)
    assert found is not None
    assert [candidate.step for candidate in found.candidates] == [60, 40]
    assert found.lost_before(found.candidates[0]) is None


def test_an_incomplete_point_is_named_and_what_going_back_costs_is_said(tmp_path: Path) -> None:
    make_point(tmp_path, 150, b"x", b"x", b"x")
    make_point(tmp_path, 210, b"x", b"", None)
    acknowledge(tmp_path, 210, world=3)
    found = find_continuation(tmp_path, world=3)
    assert found is not None
    assert found.notes == ("step 210 is incomplete (rank1.pt empty, rank2.pt absent)",)
    assert [candidate.step for candidate in found.candidates] == [150]
    assert found.lost_before(found.candidates[0]) == "going back to step 150: 60 steps are done again"


@pytest.mark.parametrize("latest", [None, "", '{"dir": "step-0000050", "step": 50, "world": 2}'])
def test_points_of_which_none_is_complete_are_refused_and_never_forgotten(tmp_path: Path, latest: str | None) -> None:
    make_point(tmp_path, 40, b"", b"x")
    make_point(tmp_path, 50, b"x", None)
    if latest is not None:
        (tmp_path / "latest.json").write_text(latest)
    with pytest.raises(Refused, match=r"no resume point is complete \(.*step 40 is incomplete"):
        find_continuation(tmp_path, world=2)


def test_a_point_that_latest_names_and_is_gone_is_refused(tmp_path: Path) -> None:
    tmp_path.mkdir(exist_ok=True)
    acknowledge(tmp_path, 90, world=1)
    with pytest.raises(Refused, match="names step 90, and step-0000090 is not there"):
        find_continuation(tmp_path, world=1)


def test_a_kill_inside_the_very_first_point_leaves_nothing_to_lose(tmp_path: Path) -> None:
    make_point(tmp_path, 10, b"x", None)
    found = find_continuation(tmp_path, world=2)
    assert found is not None
    assert found.candidates == ()
    assert found.notes == ("step 10 is incomplete (rank1.pt absent)",)


def test_a_damaged_latest_is_said_and_the_newest_complete_point_is_used(tmp_path: Path) -> None:
    make_point(tmp_path, 10, b"x")
    make_point(tmp_path, 30, b"x")
    (tmp_path / "latest.json").write_text('{"dir": "step-00')
    found = find_continuation(tmp_path, world=1)
    assert found is not None
    assert [candidate.step for candidate in found.candidates] == [30, 10]
    assert "latest.json" in found.notes[0]


def test_a_latest_that_contradicts_itself_is_said(tmp_path: Path) -> None:
    make_point(tmp_path, 20, b"x")
    (tmp_path / "latest.json").write_text(json.dumps({"dir": step_name(20), "step": 45, "world": 1}))
    found = find_continuation(tmp_path, world=1)
    assert found is not None and [candidate.step for candidate in found.candidates] == [20]
    assert found.notes == ("latest.json says step 45 and names step-0000020; what lies there counts",)


def test_points_of_another_number_of_ranks_are_refused(tmp_path: Path) -> None:
    make_point(tmp_path, 10, b"x", b"x")
    acknowledge(tmp_path, 10, world=2)
    with pytest.raises(Refused, match="those of 2 ranks; continue with as many, not 1"):
        find_continuation(tmp_path, world=1)


def test_a_directory_in_a_rank_files_place_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "step-0000005" / "rank0.pt").mkdir(parents=True)
    (found,) = list_resume_points(tmp_path, world=1).directories
    assert not found.complete
