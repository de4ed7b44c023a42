"""Volumes through the real client: what is committed, what is seen by whom, and what is lost."""

import io
from pathlib import Path

import modal
import pytest
from modal.exception import NotFoundError

from kev.clock import SystemClock
from kev.emulator.blobs import Blobs
from kev.emulator.contents import ContentStore
from kev.emulator.dispatch import Caller
from kev.emulator.entities import Volume
from kev.emulator.journal import Journal
from kev.emulator.limits import Limits
from kev.emulator.plan import LimitPlan
from kev.emulator.store import Store
from kev.emulator.uploads import Upload
from kev.emulator.volume_views import VolumeViews
from kev.emulator.volumes import Volumes
from kev.emulator.wire import pb

from .conftest import Begin, Night, Pipe


async def test_what_a_container_commits_can_be_listed_and_read_from_outside(night: Night) -> None:
    await night.call("write", "r1/metrics.jsonl", '{"step": 1}\n')

    assert await night.volume_names() == ["r1", "r1/metrics.jsonl"]
    [entry] = await night.volume().listdir.aio("/r1")
    assert (entry.path, entry.type.name, entry.size) == ("r1/metrics.jsonl", "FILE", 12)
    assert await night.volume_text("r1/metrics.jsonl") == '{"step": 1}\n'


async def test_what_is_not_committed_is_seen_after_a_while_by_the_background_commit(night: Night, pipe: Pipe) -> None:
    await night.spawn("write_then_hold", "late", "text", pipe.path)
    await night.printed("holding")
    while await night.volume_names() != ["late"]:
        pass  # each listing is a request that lets the emulator work


async def test_what_a_killed_container_had_not_committed_is_lost(begin: Begin, tmp_path: Path) -> None:
    from .conftest import QUICK

    night = await begin(timings=QUICK.__class__(background_commit=3600))
    pipe = Pipe(tmp_path / "pipe")
    call = await night.spawn("write_then_hold", "early", "text", pipe.path)
    await night.printed("holding")
    await call.cancel.aio(terminate_containers=True)
    await night.no_containers()

    assert await night.volume_names() == []


async def test_a_container_that_ends_in_order_commits_what_it_has(begin: Begin) -> None:
    from .conftest import QUICK

    night = await begin(timings=QUICK.__class__(background_commit=3600, keep_warm=0.1))
    await night.call("write", "at-exit", "text", False)
    await night.no_containers()

    assert await night.volume_text("at-exit") == "text"


async def test_a_container_sees_others_commits_only_after_a_reload(night: Night, pipe: Pipe) -> None:
    await night.call("write", "shared", "one")
    reader = await night.spawn("read", "shared", pipe.path)
    await night.printed("holding")
    await night.call("write", "shared", "two")
    pipe.release()

    assert await reader.get.aio(timeout=60) == ["one", "two"]


async def test_a_removed_file_is_gone_for_everyone_after_the_commit(night: Night) -> None:
    await night.call("write", "a/b/old", "text")
    await night.call("remove", "a/b/old")

    assert await night.volume_names() == []


async def test_a_read_only_mount_commits_nothing(night: Night) -> None:
    await night.call("write_read_only", "forbidden")

    assert await night.volume_names() == []


async def test_a_stale_volume_shows_a_commit_only_after_the_delay(begin: Begin) -> None:
    night = await begin({"volumes": {"stale_s": 0.5}})
    await night.call("write", "slow", "text")

    assert await night.volume_names() == []
    while await night.volume_names() != ["slow"]:
        pass


async def test_files_go_up_and_down_whole(night: Night, tmp_path: Path) -> None:
    content = bytes(range(256)) * 70_000  # 17 MB: three blocks, the last one short
    volume = night.volume()
    async with volume.batch_upload.aio() as batch:
        batch.put_file(io.BytesIO(content), "/deep/big.bin")
        batch.put_file(io.BytesIO(b""), "/empty")

    received = io.BytesIO()
    await volume.read_file_into_fileobj.aio("deep/big.bin", received)
    assert received.getvalue() == content
    assert await night.volume_text("empty") == ""


async def test_an_upload_does_not_replace_a_file_unless_it_is_told_to(night: Night) -> None:
    volume = night.volume()
    for force in (False, True):
        async with volume.batch_upload.aio(force=force) as batch:
            batch.put_file(io.BytesIO(b"first" if not force else b"second"), "/name")
    with pytest.raises(FileExistsError):
        async with volume.batch_upload.aio() as batch:
            batch.put_file(io.BytesIO(b"third"), "/name")

    assert await night.volume_text("name") == "second"


async def test_a_reader_gets_the_file_it_began_to_read_although_it_is_replaced(night: Night) -> None:
    volume, old = night.volume(), b"o" * 20_000_000
    async with volume.batch_upload.aio() as batch:
        batch.put_file(io.BytesIO(old), "/name")
    parts = volume.read_file.aio("name")
    first = await anext(parts)
    async with volume.batch_upload.aio(force=True) as batch:
        batch.put_file(io.BytesIO(b"n" * 20_000_000), "/name")

    assert first + b"".join([part async for part in parts]) == old


async def test_a_file_that_is_replaced_while_it_is_opened_has_the_size_of_its_contents(tmp_path: Path) -> None:
    store, clock = Store(Journal(tmp_path / "journal")), SystemClock()
    store.save(Volume(id="vo-1", name="runs", environment="main", version=2, created=0))

    def upload(content: bytes) -> dict[str, Upload]:
        (tmp_path / "content").write_bytes(content)
        return {"name": Upload.of_one_piece(tmp_path / "content")}

    class BusyViews(VolumeViews):
        """Another commit arrives at the worst moment."""

        def pin(self, path: Path) -> str:
            self.files("vo-1").put(upload(b"a longer one"))
            return super().pin(path)

    views, contents = BusyViews(store, tmp_path, 0), ContentStore(tmp_path / "contents")
    views.files("vo-1").put(upload(b"short"))
    blobs = Blobs(ContentStore(tmp_path / "blobs"), contents, views.pinned)
    volumes = Volumes(store, clock, Limits(LimitPlan(), clock), blobs, contents, views)

    reply = await volumes.volume_get_file2(pb.VolumeGetFile2Request(volume_id="vo-1", path="name"), Caller())
    assert (reply.size, reply.len) == (12, 12)


async def test_the_top_of_a_volume_cannot_be_removed(night: Night) -> None:
    await night.call("write", "kept", "text")
    with pytest.raises(modal.exception.InvalidError, match="top of a volume"):
        await night.volume().remove_file.aio("/", recursive=True)

    assert await night.volume_names() == ["kept"]


async def test_files_can_be_copied_and_removed_from_outside(night: Night) -> None:
    volume = night.volume()
    async with volume.batch_upload.aio() as batch:
        batch.put_file(io.BytesIO(b"text"), "/a/one")
    await volume.copy_files.aio(["a/one"], "b/two")
    await volume.remove_file.aio("a", recursive=True)

    assert await night.volume_names() == ["b", "b/two"]


async def test_missing_files_and_volumes_fail_as_with_the_provider(night: Night) -> None:
    with pytest.raises(FileNotFoundError):
        await night.volume_text("nothing")
    with pytest.raises(NotFoundError):
        await night.volume().listdir.aio("/nothing")
    with pytest.raises(NotFoundError):
        await modal.Volume.from_name("other", client=night.client).listdir.aio("/")


@pytest.mark.parametrize("path", ["../../identity.json", "a/../../../journal.jsonl"])
async def test_no_path_leads_out_of_a_volume(night: Night, path: str) -> None:
    with pytest.raises((modal.exception.InvalidError, FileNotFoundError, NotFoundError)):
        await night.volume_text(path)
