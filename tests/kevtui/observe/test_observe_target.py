import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kev.errors import NotFound, UsageError
from kevtui.observe.target import find_root, resolve


@pytest.fixture
def root(tmp_path: Path) -> Path:
    rounds = tmp_path / "experiments" / "rounds"
    rounds.mkdir(parents=True)
    for number in (27, 41):
        spec = {"round": number, "arms": {}, "rule": {}, "studies": {f"r{number}-a": {}}}
        (rounds / f"r{number}.json").write_text(json.dumps(spec))
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "dusk-state.json").write_text(json.dumps({"session": "dusk", "studies": {"r41-a": {}}}))
    (runs / "dawn-state.json").write_text(json.dumps({"session": "dawn", "studies": {}}))
    (runs / "dawn2-state.json").write_text("")
    (runs / "r41-a.spawn.json").write_text("{}")
    return tmp_path


@pytest.mark.parametrize("argument", ["r27.json", "r27", "27", "027", "experiments/rounds/r27.json"])
def test_a_round_is_meant_by_its_file_its_name_or_its_number(root: Path, argument: str) -> None:
    target = resolve(argument, root=root, cwd=root)
    assert (target.round, target.spec, target.title) == (27, root / "experiments/rounds/r27.json", "r27")


@pytest.mark.parametrize("argument", ["dusk", "dusk-state.json", "runs/dusk-state.json"])
def test_a_session_is_meant_by_its_name_or_its_state_file(root: Path, argument: str) -> None:
    target = resolve(argument, root=None, cwd=root)
    assert (target.session, target.state, target.round) == ("dusk", root / "runs/dusk-state.json", None)


def test_a_round_takes_the_money_of_the_one_session_that_lists_its_studies(root: Path) -> None:
    target = resolve("r41", root=root, cwd=root)
    assert (target.session, target.title) == ("dusk", "r41 · dusk")


def test_a_round_takes_the_money_of_the_session_that_was_opened_for_it_before_anything_is_launched(root: Path) -> None:
    opened = {"session": "night", "studies": {}, "rounds": ["experiments/rounds/r27.json"]}
    (root / "runs" / "night-state.json").write_text(json.dumps(opened))
    assert resolve("r27", root=root, cwd=root).session == "night"
    (root / "runs" / "noon-state.json").write_text(json.dumps({**opened, "session": "noon"}))
    assert resolve("r27", root=root, cwd=root).session is None, "which of two pays cannot be guessed"


@pytest.mark.parametrize("argument", [".", "runs", "experiments"])
def test_a_folder_means_everything_in_its_checkout(root: Path, argument: str) -> None:
    target = resolve(argument, root=None, cwd=root)
    assert (target.root, target.session, target.round, target.state) == (root, None, None, None)


def test_the_root_is_the_checkout_around_the_working_directory(root: Path) -> None:
    inside = root / "runs" / "r41-a" / "00-trial-0"
    inside.mkdir(parents=True)
    assert find_root(inside) == root
    assert resolve("r27", root=None, cwd=inside).root == root


def test_a_beginning_that_fits_several_sessions_names_them(root: Path) -> None:
    with pytest.raises(UsageError, match="daw may be any of the sessions dawn and dawn2"):
        resolve("daw", root=root, cwd=root)


def test_a_name_that_fits_one_session_exactly_is_that_session(root: Path) -> None:
    assert resolve("dawn", root=root, cwd=root).session == "dawn"


def test_what_is_not_there_is_answered_with_what_is_near(root: Path) -> None:
    with pytest.raises(NotFound, match=r"no r28\.json in .*rounds.* did you mean r27"):
        resolve("r28.json", root=root, cwd=root)
    with pytest.raises(NotFound, match=r"no session duks .*did you mean dusk"):
        resolve("duks", root=root, cwd=root)
    with pytest.raises(UsageError, match="r41-a is a study"):
        resolve("r41-a", root=root, cwd=root)


def test_a_file_of_another_kind_is_refused(root: Path) -> None:
    with pytest.raises(UsageError, match="neither a round spec nor a session state"):
        resolve("runs/r41-a.spawn.json", root=root, cwd=root)


@given(argument=st.text(max_size=300))
def test_whatever_is_typed_is_answered_by_a_target_or_one_line(tmp_path_factory: pytest.TempPathFactory,
                                                               argument: str) -> None:  # fmt: skip
    folder = tmp_path_factory.getbasetemp()
    try:
        resolve(argument, root=folder, cwd=folder)
    except (NotFound, UsageError) as error:
        assert "\n" not in str(error) and "\x1b" not in str(error)


def test_a_folder_that_cannot_be_listed_is_not_taken_for_an_empty_one(root: Path) -> None:
    (root / "runs").rename(root / "away")
    (root / "runs").symlink_to("runs")
    with pytest.raises(NotFound, match=r"no session dawn .* seen: .*runs: a loop of symbolic links; put that right"):
        resolve("dawn", root=root, cwd=root)


def test_a_file_that_could_not_be_read_says_why_it_is_neither_kind(root: Path) -> None:
    path = root / "spec-of-mine.json"
    path.write_bytes((root / "experiments/rounds/r27.json").read_text().encode("utf-16"))
    with pytest.raises(UsageError, match=r"neither a round spec nor .* \(UTF-16 or UTF-32 text; save it as UTF-8\)"):
        resolve(str(path), root=root, cwd=root)
