"""Commits, reloads and interruptions of volume files, without a client."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kev.emulator.uploads import Upload
from kev.emulator.volume_files import Pins, Stamp, View, VolumeFiles, copy_file, snapshot
from kev.emulator.volumes import paths_under

NAMES = ("a", "b", "d/c", "d/e/f")


def texts(directory: Path) -> dict[str, str]:
    return {str(p.relative_to(directory)): p.read_text() for p in directory.rglob("*") if p.is_file()}


def write(directory: Path, name: str, text: str) -> None:
    (directory / name).parent.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(text)


def view(volume: VolumeFiles, directory: Path, **options: object) -> View:
    made = View(volume, directory, **options)  # type: ignore[arg-type]
    made.reload()
    return made


def commit(each: View) -> None:
    if (stage := each.stage()) is not None:
        each.volume.publish(stage.directory)
        each.published(stage)


Step = tuple[str, int, str, str]
steps = st.lists(
    st.tuples(
        st.sampled_from(["write", "remove", "commit", "reload"]),
        st.integers(0, 1),
        st.sampled_from(NAMES),
        st.text("xyz"),
    ),
    max_size=25,
)


@settings(deadline=None, max_examples=40)
@given(steps)
def test_two_containers_agree_with_a_model_of_last_writer_wins(
    tmp_path_factory: pytest.TempPathFactory, given_steps: list[Step]
) -> None:
    root = tmp_path_factory.mktemp("volume")
    volume = VolumeFiles(root / "volume")
    views = [view(volume, root / "0"), view(volume, root / "1")]
    committed: dict[str, str] = {}
    seen: list[dict[str, str]] = [{}, {}]
    dirty: list[set[str]] = [set(), set()]
    known: list[set[str]] = [set(), set()]
    for action, who, name, text in given_steps:
        mine, each = seen[who], views[who]
        match action:
            case "write":
                write(each.directory, name, text)
                mine[name] = text
                dirty[who].add(name)
            case "remove" if name in mine:
                (each.directory / name).unlink()
                del mine[name]
                dirty[who].add(name)
            case "commit" | "reload":
                commit(each)
                for changed in dirty[who]:
                    if changed in mine:
                        committed[changed] = mine[changed]
                    elif changed in known[who]:  # made and removed between two commits, it never was
                        committed.pop(changed, None)
                dirty[who].clear()
                if action == "reload":
                    each.reload()
                    seen[who] = dict(committed)
                known[who] = set(seen[who])
        assert texts(each.directory) == seen[who]
        assert texts(volume.committed) == committed


def test_a_container_does_not_take_its_own_commit_for_news(tmp_path: Path) -> None:
    volume = VolumeFiles(tmp_path / "volume")
    one, two = view(volume, tmp_path / "1"), view(volume, tmp_path / "2")
    write(two.directory, "theirs", "x")
    commit(two)
    write(one.directory, "ours", "y")
    commit(one)

    one.reload()
    assert texts(one.directory) == {"theirs": "x", "ours": "y"}


def test_a_reload_does_not_bring_back_an_older_commit_of_ones_own(tmp_path: Path) -> None:
    volume = VolumeFiles(tmp_path / "volume")
    one = view(volume, tmp_path / "1")
    stages = []
    for text in ("first", "second"):
        write(one.directory, "name", text)
        stage = one.stage()
        assert stage is not None
        stages.append(stage)
    volume.publish(stages[0].directory)
    one.published(stages[0])

    one.reload()
    assert texts(one.directory) == {"name": "second"}


def test_a_change_that_leaves_time_and_size_as_they_were_is_still_committed(tmp_path: Path) -> None:
    volume = VolumeFiles(tmp_path / "volume")
    one = view(volume, tmp_path / "1")
    for round_number in range(50):
        write(one.directory, "name", f"{round_number:04}")
        commit(one)
        assert texts(volume.committed) == {"name": f"{round_number:04}"}


def test_a_file_that_a_listing_missed_is_not_taken_for_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    volume = VolumeFiles(tmp_path / "volume")
    one = view(volume, tmp_path / "1")
    for name in NAMES:
        write(one.directory, name, name)
    commit(one)

    def without_a(directory: Path) -> dict[str, Stamp]:
        return {name: stamp for name, stamp in snapshot(directory).items() if name != "a"}

    (one.directory / "b").unlink()
    with monkeypatch.context() as patch:
        patch.setattr("kev.emulator.volume_files.snapshot", without_a)
        commit(one)
    assert texts(volume.committed) == {name: name for name in NAMES if name != "b"}

    write(one.directory, "a", "again")
    commit(one)
    assert texts(volume.committed)["a"] == "again"


def test_a_complete_commit_survives_a_kill_and_an_incomplete_one_leaves_no_trace(tmp_path: Path) -> None:
    volume = VolumeFiles(tmp_path / "volume")
    one = view(volume, tmp_path / "1")
    write(one.directory, "kept", "x")
    assert one.stage() is not None
    write(volume.new_stage() / "files", "torn", "half")

    again = VolumeFiles(tmp_path / "volume")
    again.recover()
    assert texts(again.committed) == {"kept": "x"}
    assert list((tmp_path / "volume" / "incoming").iterdir()) == []


def test_a_commit_that_was_interrupted_between_two_files_is_finished(tmp_path: Path) -> None:
    volume = VolumeFiles(tmp_path / "volume")
    one = view(volume, tmp_path / "1")
    for name in NAMES:
        write(one.directory, name, name)
    stage = one.stage()
    assert stage is not None
    shutil.move(stage.directory / "files" / "a", volume.committed / "a")

    again = VolumeFiles(tmp_path / "volume")
    again.recover()
    assert texts(again.committed) == {name: name for name in NAMES}


def test_a_sub_path_is_all_that_its_container_sees_and_changes(tmp_path: Path) -> None:
    volume = VolumeFiles(tmp_path / "volume")
    volume.put({"left/a": Upload(0, 1, []), "right/b": Upload(0, 1, [])})
    one = view(volume, tmp_path / "1", sub_path="left")
    assert texts(one.directory) == {"a": ""}

    write(one.directory, "c", "new")
    (one.directory / "a").unlink()
    commit(one)
    assert texts(volume.committed) == {"left/c": "new", "right/b": ""}


def test_a_pin_is_given_up_when_there_are_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kev.emulator.volume_files.PINS_KEPT", 2)
    write(tmp_path, "file", "x")
    pins = Pins(tmp_path / "pins")
    for number in range(3):
        pins.add(f"pin-{number}", tmp_path / "file")

    with pytest.raises(KeyError):
        pins.path("pin-0")
    assert pins.path("pin-2").read_text() == "x"
    assert len(list((tmp_path / "pins").iterdir())) == 2


def test_what_the_program_removes_as_it_is_brought_is_the_programs_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    volume = VolumeFiles(tmp_path / "volume")
    first, second = view(volume, tmp_path / "0"), view(volume, tmp_path / "1")
    for name in ("d/c", "kept"):
        write(first.directory, name, "text")
    commit(first)

    def racing(source: Path, target: Path) -> None:
        copy_file(source, target)
        if target.name == "c":
            shutil.rmtree(target.parent)

    monkeypatch.setattr("kev.emulator.volume_files.copy_file", racing)
    second.reload()
    assert texts(second.directory) == {"kept": "text"}
    commit(second)
    assert texts(volume.committed) == {"kept": "text"}


def test_a_listing_leaves_out_what_is_removed_while_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a/x", "b/y", "c"):
        write(tmp_path, name, "text")
    look = os.scandir

    def racing(path: str) -> Any:
        shutil.rmtree(tmp_path / "a", ignore_errors=True)
        return look(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", lambda path: racing(path) if str(path).endswith("/a") else look(path))
        found = paths_under(tmp_path, recursive=True)
    assert [str(path.relative_to(tmp_path)) for path in found if path.exists()] == ["b", "b/y", "c"]
