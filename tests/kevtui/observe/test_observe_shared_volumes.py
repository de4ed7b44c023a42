"""On a volume that another machine changes too, nothing is told of and the other end may be away for a while."""

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from kev.errors import UnreadFile
from kevtui.observe import mounts
from kevtui.observe.changes import Changes
from kevtui.observe.lister import CUT_OFF, GONE, Folder
from kevtui.observe.observer import Observer, leases_of
from kevtui.observe.sources import Sources
from kevtui.observe.target import resolve


def test_a_mount_point_of_odd_characters_is_found_in_the_kernels_table(tmp_path: Path) -> None:
    table = f"/dev/sda / ext4 rw 0 0\nhost:/x {tmp_path}/tab\\011and\\134hash\\043 fuse.sshfs rw 0 0\n"
    assert mounts.kind_of(tmp_path / "tab\tand\\hash#" / "runs", table) == "fuse.sshfs"
    assert mounts.kind_of(tmp_path / "tab", table) == "ext4"


def test_a_link_is_followed_to_the_volume_that_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "far" / "runs").mkdir(parents=True)
    (tmp_path / "runs").symlink_to(tmp_path / "far" / "runs")
    assert mounts.kind_of(tmp_path / "runs", f"host:/x {tmp_path}/far fuse.sshfs rw 0 0\n") == "fuse.sshfs"


def test_a_shared_volume_is_polled_from_the_start_and_its_folders_are_not_watched(tmp_path: Path) -> None:
    near, far = tmp_path / "near", tmp_path / "far"
    near.mkdir()
    far.mkdir()
    changes = Changes([near, far], shared_kind=lambda folder: "fuse.sshfs" if folder == far else "")
    assert changes.polling == "polling: fuse.sshfs"
    assert not changes.wait(0.5)  # the watcher starts
    (far / "unseen").touch()
    assert not changes.wait(0.5)
    for number in range(100):
        (near / f"seen-{number}").touch()
        if changes.wait(0.5):
            break
    assert {Path(path).parent for path in changes.take()} == {near}
    assert changes.polling == "polling: fuse.sshfs", "also while what is near is watched"
    changes.close()


def test_what_went_with_its_volume_is_shown_as_it_was_and_told_in_one_line(
    checkout: Any, watching: Any, clock: Any
) -> None:
    checkout.spawn("r9-a")
    checkout.state("night")
    checkout.log("r9-a", "ep0 step 10/100 loss 2.000 kl 0.000")
    checkout.write("experiments/rounds/notes.json", {})
    checkout.lease("r9-a", heartbeat=clock.now().timestamp())
    before = watching("night").observe()
    away = checkout.root.with_name("away")
    away.mkdir()
    for folder in ("runs", "experiments", "volumes"):
        (checkout.root / folder).rename(away / folder)
    without = watching("night").observe()
    assert [(finding.path, finding.reason) for finding in without.findings] == [("runs", GONE)]
    assert without.studies == before.studies and without.money.authorization == before.money.authorization
    assert watching("night").observe().findings == without.findings
    for folder in ("runs", "experiments", "volumes"):
        (away / folder).rename(checkout.root / folder)
    after = watching("night").observe()
    assert after.findings == () and after.studies == before.studies


def test_a_checkout_that_never_had_a_folder_is_not_told_that_it_is_gone(checkout: Any, watching: Any) -> None:
    checkout.spawn("r9-a")
    assert watching().observe().findings == ()
    shutil.rmtree(checkout.runs / "r9-a", ignore_errors=True)
    assert watching().observe().findings == ()


def test_a_lost_connection_is_one_line_and_ends_by_itself(
    checkout: Any, watching: Any, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout.spawn("r9-a")
    checkout.log("r9-a", "ep0 step 10/100 loss 2.000 kl 0.000")
    before = watching().observe()
    stat, scandir = os.stat, os.scandir

    def cut_off(call: Any) -> Any:
        def fail(path: Any, *more: Any, **named: Any) -> Any:
            if str(path).startswith(str(checkout.root)):
                raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
            return call(path, *more, **named)

        return fail

    with monkeypatch.context() as cut:
        cut.setattr(os, "stat", cut_off(stat))
        cut.setattr(os, "scandir", cut_off(scandir))
        clock.pass_(5)
        during = watching().observe()
    assert [(finding.path, finding.reason) for finding in during.findings] == [("runs", CUT_OFF)]
    assert [study.name for study in during.studies] == [study.name for study in before.studies]
    clock.pass_(5)
    assert watching().observe().findings == ()


class Failing(Sources):
    """A disk on which one record cannot be read for a while, though nothing about it changes."""

    fails = True

    def load(self, path: Path, *, limit: int = 1 << 20) -> Any:
        if self.fails and path.name.endswith("-state.json"):
            raise UnreadFile(path, "cannot be read (Input/output error)")
        return super().load(path, limit=limit)


def test_a_record_that_could_not_be_read_is_read_later_though_nothing_moved(checkout: Any, clock: Any) -> None:
    checkout.state("night")
    target = resolve("night", root=checkout.root, cwd=checkout.root)
    sources = Failing(target, leases_of(checkout.root))
    observer = Observer(target, clock=clock, sources=sources)
    assert [finding.path for finding in observer.observe().findings] == ["runs/night-state.json"]
    sources.fails = False
    clock.pass_(3600)
    snapshot = observer.observe()
    assert snapshot.findings == () and snapshot.money.authorization == 200
    observer.close()


def test_files_that_are_only_numbered_anew_have_not_changed(checkout: Any, clock: Any) -> None:
    sources = Sources(resolve(".", root=checkout.root, cwd=checkout.root), leases_of(checkout.root))
    written = round((clock.now().timestamp() - 300) * 1e9)
    path = f"{checkout.runs}/r9-a/00-trial-0/train.log"

    def look(signature: tuple[int, int, int, int]) -> float | None:
        folder, _, name = path.rpartition("/")
        sources.lister.folders[folder] = Folder((), files={name: signature})
        sources.begin(now_unix=clock.now().timestamp(), monotonic=clock.monotonic())
        return sources.age_s(path)

    assert look((written, written, 10, 41)) == 300
    clock.pass_(60)
    assert look((written, written, 10, 42)) == 360
    clock.pass_(60)
    assert look((written, written, 11, 42)) == 0
