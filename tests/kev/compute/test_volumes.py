"""Files home from a volume: whole, verified, resumable, and only what was asked for."""

import errno
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import modal
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kev.clock import SystemClock
from kev.compute.client import ModalClient
from kev.compute.errors import Unavailable
from kev.compute.lister import Directory, SharedLister
from kev.compute.protocol import Entry, EntryKind, PullProgress
from kev.compute.pull import is_weight, pull, within
from kev.compute.volumes import Volumes
from kev.errors import DamagedFile, KevError, NotFound, Refused

from .conftest import Place

VOLUME = "kev-contract"


async def commit(place: Place, files: dict[str, str], age_s: float = 0) -> None:
    state = await place.run("write_files", {"files": files, "age_s": age_s})
    assert state.result == {"written": len(files)}


def tree(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


async def test_a_tree_comes_home_without_weights_and_a_second_pull_fetches_only_what_may_have_changed(
    place: Place, tmp_path: Path
) -> None:
    study = {
        "s/00-trial-0/train.log": "step 1\n", "s/00-trial-0/empty": "",
        "s/00-trial-0/checkpoint/model.safetensors": "w" * 100, "s/00-trial-0/checkpoint/head.pt": "h",
        "s/00-trial-0/resume/step-5/rank0.pt": "r", "other/file": "no",
    }  # fmt: skip
    await commit(place, study, age_s=100)
    await commit(place, {"s/late": "l"})
    home, seen = tmp_path / "home", list[PullProgress]()
    report = await place.compute.pull(VOLUME, "/s", home, on_progress=seen.append)
    kept = {"00-trial-0/train.log": "step 1\n", "00-trial-0/empty": "", "00-trial-0/checkpoint/head.pt": "h"}
    assert tree(home) == kept | {"late": "l"}
    assert report.withheld == ("00-trial-0/checkpoint/model.safetensors", "00-trial-0/resume/step-5/rank0.pt")
    assert (report.bytes_fetched, seen[-1].bytes_done, seen[-1].bytes, seen[-1].files) == (9, 9, 9, 4)
    asked = place.asked("VolumeGetFile2")
    again = await place.compute.pull(VOLUME, "/s", home)
    # The youngest small file may have changed within its second, and is fetched to be sure.
    assert (again.fetched, again.kept, again.bytes_fetched) == (("late",), tuple(sorted(kept)), 1)
    assert place.asked("VolumeGetFile2") == asked + 1
    with_weights = await place.compute.pull(VOLUME, "/s", home, weights=True)
    assert with_weights.fetched == (*report.withheld, "late")


async def test_a_pull_that_broke_off_keeps_what_was_complete_and_goes_on_from_there(
    place: Place, tmp_path: Path
) -> None:
    await commit(place, {f"s/{number}.txt": f"text {number}" for number in range(6)}, age_s=100)
    await commit(place, {"s/late": "l"})
    place.fault(rpc=("VolumeGetFile2",), kind="unavailable", times=-1, skip=2)
    with pytest.raises(Unavailable):
        await place.compute.pull(VOLUME, "s", tmp_path / "home")
    assert not list((tmp_path / "home").glob("*.part"))
    complete = set(tree(tmp_path / "home"))
    place.plane.faults.clear()
    report = await place.compute.pull(VOLUME, "s", tmp_path / "home")
    assert set(report.kept) == complete
    assert complete and "late" not in complete
    assert set(report.fetched) == {f"{number}.txt" for number in range(6)} - complete | {"late"}
    assert tree(tmp_path / "home") == {f"{number}.txt": f"text {number}" for number in range(6)} | {"late": "l"}


async def test_a_throttle_is_waited_out(place: Place, tmp_path: Path) -> None:
    await commit(place, {"s/a.txt": "a"})
    place.fault(rpc=("VolumeGetFile2", "VolumeListFiles2"), kind="throttle", retry_after_s=0.01, times=3)
    report = await place.compute.pull(VOLUME, "s", tmp_path / "home")
    assert report.fetched == ("a.txt",)


async def test_what_is_left_of_a_killed_pull_is_neither_taken_for_a_file_nor_in_the_way(
    place: Place, tmp_path: Path
) -> None:
    await commit(place, {"s/a.txt": "whole"})
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "a.txt.part").write_text("half of something longer than the whole")
    await place.compute.pull(VOLUME, "s", tmp_path / "home")
    assert tree(tmp_path / "home") == {"a.txt": "whole"}


async def test_what_agrees_with_its_manifest_is_verified_and_what_does_not_is_not_put_in_place(
    place: Place, tmp_path: Path
) -> None:
    def manifest(text: str) -> str:
        return json.dumps({"files": {"rows.jsonl": {"sha256": hashlib.sha256(text.encode()).hexdigest(), "n": 1}}})

    await commit(place, {"s/eval/rows.jsonl": "{}\n", "s/eval/manifest.json": manifest("{}\n"), "s/x": "x"}, age_s=100)
    await commit(place, {"s/late": "l"})
    report = await place.compute.pull(VOLUME, "s", tmp_path / "home")
    assert report.verified == ("eval/rows.jsonl",)
    # Of the same size and time, and yet another file: only the sum tells.
    rows = tmp_path / "home" / "eval" / "rows.jsonl"
    status = rows.stat()
    rows.write_text("[]\n")

    os.utime(rows, (status.st_mtime, status.st_mtime))
    report = await place.compute.pull(VOLUME, "s", tmp_path / "home")
    assert report.fetched == ("eval/rows.jsonl", "late")
    await commit(place, {"s/eval/manifest.json": manifest("other")})
    with pytest.raises(DamagedFile, match="manifest"):
        await place.compute.pull(VOLUME, "s", tmp_path / "home")
    assert rows.read_text() == "{}\n"


async def test_a_file_that_grew_since_it_was_listed_is_listed_again(place: Place, tmp_path: Path) -> None:
    await commit(place, {"s/train.log": "step 1\n"})
    client = ModalClient(place.settings)
    volumes = Volumes(client, SystemClock())
    old = await volumes.listdir(VOLUME, "s", recursive=True)
    await commit(place, {"s/train.log": "step 1\nstep 2\n"})
    fetch = volumes._fetch

    async def stale_at_first(directory: Directory) -> list[Entry]:
        return old if directory.recursive else await fetch(directory)

    volumes._lister = SharedLister(stale_at_first, SystemClock())
    report = await pull(volumes, VOLUME, "s", tmp_path / "home")
    assert tree(tmp_path / "home") == {"train.log": "step 1\nstep 2\n"}
    assert report.bytes_fetched == 14

    async def always_stale(_directory: Directory) -> list[Entry]:
        return old

    volumes._lister = SharedLister(always_stale, SystemClock())
    with pytest.raises(Unavailable, match="changes while it is read"):
        await pull(volumes, VOLUME, "s", tmp_path / "other")
    assert tree(tmp_path / "other") == {}
    await client.close()


async def test_what_cannot_be_written_here_is_one_line_that_says_so(place: Place, tmp_path: Path) -> None:
    await commit(place, {"s/a/b.txt": "b"})
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "a").write_text("a file where a directory belongs")
    with pytest.raises(KevError, match="cannot be written") as raised:
        await place.compute.pull(VOLUME, "s", tmp_path / "home")
    assert "\n" not in str(raised.value)


async def test_a_full_disk_is_told_from_a_broken_connection(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await commit(place, {"s/b.txt": "b"})

    def full(_descriptor: int, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("kev.files.incoming.write_all", full)
    with pytest.raises(KevError, match="No space left on device"):
        await place.compute.pull(VOLUME, "s", tmp_path / "home")
    monkeypatch.undo()
    assert list((tmp_path / "home").iterdir()) == []

    async def reset(*_: object, **__: object) -> int:
        raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")

    monkeypatch.setattr(modal.volume._Volume, "_read_file_into_fileobj", reset)
    with pytest.raises(Unavailable, match="Connection reset"):
        await place.compute.pull(VOLUME, "s", tmp_path / "home")


async def test_there_is_nothing_to_pull_of_a_study_that_never_committed(place: Place, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="nothing there"):
        await place.compute.pull(VOLUME, "never", tmp_path / "home")
    assert not (tmp_path / "home").exists()


async def test_reading_is_bounded(place: Place) -> None:
    await commit(place, {"a.txt": "x" * 100})
    assert await place.compute.read(VOLUME, "a.txt", limit=100) == b"x" * 100
    with pytest.raises(Refused, match="99 bytes"):
        await place.compute.read(VOLUME, "a.txt", limit=99)


async def test_what_is_not_committed_is_not_seen(place: Place) -> None:
    await commit(place, {"a.txt": "a"})
    entries = await place.compute.listdir(VOLUME, "/")
    assert [(entry.path, entry.kind, entry.size) for entry in entries] == [("a.txt", EntryKind.FILE, 1)]


@given(st.sampled_from(["", "s", "s/t"]), st.text(alphabet="s/t.\0a", max_size=12))
def test_no_name_on_a_volume_leads_out_of_the_destination(root: str, path: str) -> None:
    try:
        name = within(Entry(path, EntryKind.FILE, 1, 1), root)
    except Refused:
        return
    home = Path("/home/pull")
    assert home in Path(str(home / name)).resolve().parents
    assert "\0" not in name


@pytest.mark.parametrize(
    ("name", "weight"),
    [("t/checkpoint/model.safetensors", True), ("t/checkpoint/model-00001-of-2.safetensors", True),
     ("checkpoint/model.safetensors", True), ("t/checkpoint/head.pt", False),
     ("t/checkpoint/deep/model.safetensors", False),
     ("t/snapshots/model.safetensors", False), ("t/resume/step-1/rank0.pt", True), ("t/resume", False),
     ("t/checkpoint/adapter_model.safetensors", False)],
)  # fmt: skip
def test_weights_and_resume_points_are_told_from_the_rest(name: str, weight: bool) -> None:
    assert is_weight(name) is weight


def test_a_manifest_of_any_form_promises_only_what_it_says(tmp_path: Path) -> None:
    from kev.compute.manifests import sums_in

    good = "a" * 64
    forms: list[tuple[Any, dict[str, str]]] = [
        ({"files": {"x": good, "y": {"sha256": good}, "z": {"sha256": "short"}, "w": 5}}, {"d/x": good, "d/y": good}),
        ({"files": ["x"]}, {}), ([], {}), ({}, {}), (None, {}),
    ]  # fmt: skip
    (tmp_path / "d").mkdir()
    for value, expected in forms:
        (tmp_path / "d" / "manifest.json").write_text(json.dumps(value))
        assert sums_in(tmp_path, "d/manifest.json") == expected
    (tmp_path / "d" / "manifest.json").write_text("{")
    assert sums_in(tmp_path, "d/manifest.json") == {}
