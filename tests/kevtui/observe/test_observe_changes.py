"""What moves on the disk is noticed, with events and without, by whoever may read it and when they may again."""

import ctypes
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kevtui.observe.changes import NO_WATCHER, Changes
from kevtui.observe.lister import Lister, want_run_file, want_run_folder
from kevtui.observe.observer import Observer
from kevtui.observe.target import resolve

ORDINARY_USER = 64_991
SPARE_USER = 64_992


def lister_of(runs: Path) -> Lister:
    return Lister({runs: (want_run_file, want_run_folder)})


@contextmanager
def acting_as(user: int) -> Iterator[None]:
    """Without the superuser's right to read everything, where the tests run as the superuser."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="observe-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def make_study(root: Path, name: str) -> Path:
    trial = root / "runs" / name / "00-trial-0"
    trial.mkdir(parents=True)
    (trial / "train.log").write_text("ep0 step 10/100 loss 2.000 kl 0.000\n")
    for path in [root, *root.rglob("*")]:
        path.chmod(0o755)
    return trial


def test_a_sweep_lists_what_the_screen_reads_and_nothing_else(tmp_path: Path) -> None:
    trial = make_study(tmp_path, "r9-a")
    for name in ("checkpoint/model-00001.safetensors", "checkpoint/resume/latest.json", "result.json",
                 "snapshots/step-10/checkpoint/snapshot.json",
                 "snapshots/by-hand/checkpoint/snapshot.json"):  # fmt: skip
        (trial / name).parent.mkdir(parents=True, exist_ok=True)
        (trial / name).touch()
    (tmp_path / "runs" / ".r9-a.spawn.json.tmp").touch()
    (tmp_path / "runs" / "r9-a.spawn.json").touch()
    lister = lister_of(tmp_path / "runs")
    assert lister.sweep()
    prefix = f"{tmp_path}/runs"
    listed = {f"{folder}/{name}".removeprefix(f"{prefix}/") for folder in lister.folders
              for name in lister.files(folder)}  # fmt: skip
    assert listed == {"r9-a.spawn.json", "r9-a/00-trial-0/train.log", "r9-a/00-trial-0/result.json",
                      "r9-a/00-trial-0/checkpoint/resume/latest.json",
                      "r9-a/00-trial-0/snapshots/step-10/checkpoint/snapshot.json"}  # fmt: skip
    assert not lister.sweep()


def test_a_change_that_restores_size_and_time_is_still_a_change(tmp_path: Path) -> None:
    trial = make_study(tmp_path, "r9-a")
    log = trial / "train.log"
    lister = lister_of(tmp_path / "runs")
    lister.sweep()
    lister.take_changed()
    before = log.stat()
    log.write_text("ep0 step 20/100 loss 1.000 kl 0.000\n")
    os.utime(log, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert log.stat().st_size == before.st_size
    assert lister.sweep() and lister.take_changed() == {str(trial)}


def test_what_goes_is_forgotten(tmp_path: Path) -> None:
    trial = make_study(tmp_path, "r9-a")
    lister = lister_of(tmp_path / "runs")
    lister.sweep()
    shutil.rmtree(trial.parent)
    assert lister.sweep()
    assert str(trial) not in lister.folders and lister.files(str(trial)) == {}


def test_folders_that_rest_are_not_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        trial = make_study(tmp_path, f"r9-{number}")
        for folder in (trial, trial.parent, trial.parent.parent):
            os.utime(folder, (1e9, 1e9))
    lister = lister_of(tmp_path / "runs")
    lister.sweep()
    listed: list[str] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: listed.append(path) or scandir(path))
    assert not lister.sweep()
    assert listed == []
    (tmp_path / "runs" / "r9-7" / "01-trial-1").mkdir()
    assert lister.sweep()
    assert set(listed) == {f"{tmp_path}/runs/r9-7", f"{tmp_path}/runs/r9-7/01-trial-1"}


def test_what_may_not_be_read_is_named_and_seen_as_soon_as_it_may(open_folder: Path) -> None:
    shut = [make_study(open_folder, "r9-a"), open_folder / "runs" / "r9-b.spawn.json"]
    make_study(open_folder, "r9-b")
    shut[1].write_text('{"name": "r9-b", "calls": {"trial-0": "fc-1"}, "bound_usd": 3}')
    for path in shut:
        path.chmod(0)
    observer = Observer(resolve(".", root=open_folder, cwd=open_folder))
    with acting_as(ORDINARY_USER):
        snapshot = observer.observe()
        assert {trial.id: trial.step for trial in snapshot.trials} == {"r9-a/trial-0": None, "r9-b/trial-0": 10}
        assert [finding.path for finding in snapshot.findings] == ["runs/r9-a/00-trial-0", "runs/r9-b.spawn.json"]
        assert not snapshot.money.committed_complete
        assert observer.observe().findings == snapshot.findings, "named once, on every pass the same"
    for path in shut:
        path.chmod(0o755)
    with acting_as(ORDINARY_USER):
        snapshot = observer.observe()
    assert {trial.id: trial.step for trial in snapshot.trials} == {"r9-a/trial-0": 10, "r9-b/trial-0": 10}
    assert snapshot.findings == () and snapshot.money.committed_complete


def test_a_change_ends_a_wait_and_is_in_the_next_snapshot(tmp_path: Path) -> None:
    trial = make_study(tmp_path, "r9-a")
    observer = Observer(resolve(".", root=tmp_path, cwd=tmp_path))
    assert observer.observe().trials[0].step == 10
    with (trial / "train.log").open("a") as stream:
        stream.write("ep0 step 20/100 loss 1.9 kl 0.000\n")
    assert observer.wait(30)
    assert observer.observe().trials[0].step == 20
    observer.close()


def test_a_poll_alone_finds_the_change(tmp_path: Path) -> None:
    trial = make_study(tmp_path, "r9-a")
    observer = Observer(resolve(".", root=tmp_path, cwd=tmp_path), poll=True)
    assert observer.observe().polling == "polling, as asked"
    with (trial / "train.log").open("a") as stream:
        stream.write("ep0 step 20/100 loss 1.9 kl 0.000\n")
    assert observer.wait(30)
    assert observer.observe().trials[0].step == 20
    observer.close()


def test_nothing_ends_a_wait_but_its_timeout(tmp_path: Path) -> None:
    make_study(tmp_path, "r9-a")
    observer = Observer(resolve(".", root=tmp_path, cwd=tmp_path))
    observer.observe()
    assert not observer.wait(0.2)
    observer.close()


def test_close_ends_a_wait_at_once_from_another_thread(tmp_path: Path) -> None:
    make_study(tmp_path, "r9-a")
    observer = Observer(resolve(".", root=tmp_path, cwd=tmp_path))
    observer.observe()
    answers: list[bool] = []
    waiting = threading.Thread(target=lambda: answers.append(observer.wait(3600)))
    waiting.start()
    observer.close()
    waiting.join(20)
    assert answers == [False]
    assert observer.wait(3600) is False, "a closed observer waits no more"


def test_waiting_costs_next_to_nothing(tmp_path: Path) -> None:
    make_study(tmp_path, "r9-a")
    observer = Observer(resolve(".", root=tmp_path, cwd=tmp_path))
    observer.observe()
    observer.wait(0.5)  # imports the watcher
    before = time.process_time()
    assert not observer.wait(4)
    assert time.process_time() - before < 0.08
    observer.close()


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="takes every watcher of a user that is spare")
def test_without_a_watcher_left_polling_takes_over_and_ends_by_itself(open_folder: Path) -> None:
    make_study(open_folder, "r9-a")
    log = open_folder / "runs" / "r9-a" / "00-trial-0" / "train.log"
    log.chmod(0o666)
    libc = ctypes.CDLL(None, use_errno=True)
    held: list[int] = []
    with acting_as(SPARE_USER):
        while len(held) < 5000 and (descriptor := libc.inotify_init1(0o2000000)) >= 0:
            held.append(descriptor)
        changes = Changes([open_folder / "runs"], retry_s=0.05)
        observer = Observer(resolve(".", root=open_folder, cwd=open_folder))
        observer._changes = changes
        try:
            observer.observe()
            assert not changes.wait(0.5)
            assert changes.polling == NO_WATCHER and "disk" not in changes.polling
            with log.open("a") as stream:
                stream.write("ep0 step 20/100 loss 1.9 kl 0.000\n")
            assert observer.wait(30)
            snapshot = observer.observe()
            assert (snapshot.trials[0].step, snapshot.polling) == (20, NO_WATCHER)
        finally:
            for descriptor in held:
                os.close(descriptor)
        for _ in range(100):
            if changes.polling == "":
                break
            changes.wait(0.1)
        assert changes.polling == ""
        observer.close()
