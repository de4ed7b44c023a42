"""Files made of the blocks that a client sends, from which the zeros at the end of each are left out."""

import io
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from modal.exception import InvalidError

from kev.emulator.blobs import BLOCK
from kev.emulator.uploads import Upload
from kev.emulator.volume_files import VolumeFiles

from .conftest import Night

SMALL = 4
"""Bytes of a block in the tests that need no client."""


def upload(directory: Path, content: bytes, size: int | None = None) -> Upload:
    """`content` as the client sends it."""
    blocks = []
    for start in range(0, len(content), SMALL):
        blocks.append(directory / f"block-{start}")
        blocks[-1].write_bytes(content[start : start + SMALL].rstrip(b"\0"))
    return Upload(len(content) if size is None else size, SMALL, blocks)


@settings(deadline=None)
@given(st.binary(max_size=5 * SMALL) | st.text("\0a", max_size=5 * SMALL).map(str.encode))
@example(b"")
@example(bytes(3 * SMALL))
@example(b"aa\0\0bbbbcc\0\0")
@example(b"aaaa" + bytes(2 * SMALL) + b"b")
def test_every_content_is_put_together_byte_by_byte(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    root = tmp_path_factory.mktemp("volume")
    volume = VolumeFiles(root / "volume")
    volume.put({"deep/name": upload(root, content)})

    assert (volume.committed / "deep/name").read_bytes() == content


@pytest.mark.parametrize("size", [0, 7, 8, 13])
def test_blocks_of_another_size_than_declared_are_refused_and_leave_nothing(tmp_path: Path, size: int) -> None:
    volume = VolumeFiles(tmp_path / "volume")
    with pytest.raises(ValueError, match="block"):
        volume.put({"good": upload(tmp_path, b""), "bad": upload(tmp_path, b"aaaabbbbc", size)})

    assert not list(volume.committed.iterdir())
    assert not list((volume.directory / "incoming").iterdir())


@pytest.mark.parametrize("name", ["kept", "kept/file/below"])
def test_an_upload_takes_no_other_files_away(tmp_path: Path, name: str) -> None:
    volume = VolumeFiles(tmp_path / "volume")
    volume.put({"kept/file": upload(tmp_path, b"text")})
    with pytest.raises(ValueError, match="is a"):
        volume.put({name: upload(tmp_path, b"other")})

    assert (volume.committed / "kept/file").read_bytes() == b"text"


CONTENTS = {
    "empty": b"",
    "zeros": bytes(2 * BLOCK + 5),
    "zeros-of-whole-blocks": bytes(2 * BLOCK),
    "one-block": b"x" * BLOCK,
    "zeros-inside": b"a" * (BLOCK - 2) + bytes(2) + b"b" * (2 * BLOCK),
    "zeros-at-the-end": b"c" * (BLOCK + 1) + bytes(7),
    "hole": b"d" + bytes(2 * BLOCK) + b"e",
}


async def test_files_with_zeros_anywhere_come_back_whole_through_the_real_client(night: Night) -> None:
    volume = night.volume()
    async with volume.batch_upload.aio() as batch:
        for name, content in CONTENTS.items():
            batch.put_file(io.BytesIO(content), f"/{name}")

    assert {entry.path: entry.size for entry in await volume.listdir.aio("/")} == {
        name: len(content) for name, content in CONTENTS.items()
    }
    for name, content in CONTENTS.items():
        received = io.BytesIO()
        await volume.read_file_into_fileobj.aio(name, received)
        assert received.getvalue() == content, name


async def test_an_upload_in_the_place_of_a_directory_is_refused_by_name(night: Night) -> None:
    volume = night.volume()
    async with volume.batch_upload.aio() as batch:
        batch.put_file(io.BytesIO(b"text"), "/kept/file")
    with pytest.raises(InvalidError, match="kept: is a directory"):
        async with volume.batch_upload.aio(force=True) as batch:
            batch.put_file(io.BytesIO(b"other"), "/kept")

    assert await night.volume_names() == ["kept", "kept/file"]


async def test_an_uploaded_file_keeps_its_permissions_and_its_owner_may_always_write_it(
    night: Night, tmp_path: Path
) -> None:
    for name, mode in (("run", 0o755), ("read", 0o444)):
        (tmp_path / name).write_text(name)
        (tmp_path / name).chmod(mode)
    async with night.volume().batch_upload.aio() as batch:
        for name in ("run", "read"):
            batch.put_file(tmp_path / name, f"/{name}")

    committed = night.plane.root / "volumes" / night.volume_id("night-runs") / "committed"
    assert {path.name: path.stat().st_mode & 0o777 for path in committed.iterdir()} == {"run": 0o755, "read": 0o644}
