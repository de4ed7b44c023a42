"""Volumes: named file trees that containers commit to and everyone else reads."""

import os
import stat
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kev.clock import Clock
from kev.emulator.blobs import BLOCK, Blobs
from kev.emulator.contents import ContentStore
from kev.emulator.dispatch import Caller
from kev.emulator.entities import Volume
from kev.emulator.identity import DEFAULT_ENVIRONMENT
from kev.emulator.limits import Limits
from kev.emulator.store import Store
from kev.emulator.uploads import Upload
from kev.emulator.volume_files import VolumeFiles, copy_file, remove
from kev.emulator.volume_views import VolumeViews
from kev.emulator.wire import GRPCError, Status, invalid, new_id, not_found, pb

LIST_BATCH = 500


class Volumes:
    """Answers the volume procedures. Commits and reloads go to the views of the container that asks."""

    def __init__(
        self, store: Store, clock: Clock, limits: Limits, blobs: Blobs, contents: ContentStore, views: VolumeViews
    ) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits
        self._blobs = blobs
        self._contents = contents
        self._views = views

    async def volume_get_or_create(self, request: Any, _caller: Caller) -> pb.VolumeGetOrCreateResponse:
        environment = request.environment_name or DEFAULT_ENVIRONMENT
        name, creation = request.deployment_name, request.object_creation_type
        volume = self._named(name, environment)
        if volume and creation == pb.OBJECT_CREATION_TYPE_CREATE_FAIL_IF_EXISTS:
            raise GRPCError(Status.ALREADY_EXISTS, f"Volume '{name}' already exists.")
        if volume is None:
            if creation == pb.OBJECT_CREATION_TYPE_UNSPECIFIED:
                raise not_found(f"Volume '{name}' not found in environment '{environment}'.")
            version = request.version or pb.VOLUME_FS_VERSION_V2
            now = self._clock.now().timestamp()
            volume = Volume(id=new_id("vo"), name=name, environment=environment, version=version, created=now)
            self._store.save(volume)
        return pb.VolumeGetOrCreateResponse(
            volume_id=volume.id,
            version=volume.version,  # type: ignore[arg-type]
            metadata=metadata(volume),
        )

    async def volume_get_by_id(self, request: Any, _caller: Caller) -> pb.VolumeGetByIdResponse:
        volume = self._store.volume(request.volume_id)
        return pb.VolumeGetByIdResponse(volume_id=volume.id, metadata=metadata(volume))

    async def volume_heartbeat(self, request: Any, _caller: Caller) -> None:
        self._store.volume(request.volume_id)

    async def volume_list(self, request: Any, _caller: Caller) -> pb.VolumeListResponse:
        environment = request.environment_name or DEFAULT_ENVIRONMENT
        listed = [volume for volume in self._store.volumes.values() if volume.environment == environment]
        return pb.VolumeListResponse(
            items=[
                pb.VolumeListItem(label=each.name, volume_id=each.id, created_at=each.created, metadata=metadata(each))
                for each in listed
            ],
            environment_name=environment,
        )

    async def volume_rename(self, request: Any, _caller: Caller) -> None:
        volume = self._store.volume(request.volume_id)
        if self._named(request.name, volume.environment):
            raise GRPCError(Status.ALREADY_EXISTS, f"Volume '{request.name}' already exists.")
        volume.name = request.name
        self._store.save(volume)

    async def volume_delete(self, request: Any, _caller: Caller) -> None:
        volume = self._store.volume(request.volume_id)
        self._store.remove(volume)
        self._views.forget(volume.id)

    # Containers.

    async def volume_commit(self, request: Any, caller: Caller) -> pb.VolumeCommitResponse:
        self._store.volume(request.volume_id)
        await self._views.commit(caller.task_id, request.volume_id)
        return pb.VolumeCommitResponse(skip_reload=True)

    async def volume_reload(self, request: Any, caller: Caller) -> None:
        self._store.volume(request.volume_id)
        await self._views.reload(caller.task_id, request.volume_id)

    # Listing and reading.

    async def volume_list_files2(self, request: Any, _caller: Caller) -> AsyncIterator[pb.VolumeListFiles2Response]:
        self._limits.admit("listing")
        entries = list(self._entries(request.volume_id, request.path, request.recursive))
        for start in range(0, max(len(entries), 1), LIST_BATCH):
            yield pb.VolumeListFiles2Response(entries=entries[start : start + LIST_BATCH])

    async def volume_list_files(self, request: Any, _caller: Caller) -> AsyncIterator[pb.VolumeListFilesResponse]:
        self._limits.admit("listing")
        yield pb.VolumeListFilesResponse(entries=self._entries(request.volume_id, request.path, request.recursive))

    async def volume_get_file2(self, request: Any, _caller: Caller) -> pb.VolumeGetFile2Response:
        path = self._existing(request.volume_id, request.path)
        if not path.is_file():
            raise not_found(f"File not found: {request.path}")
        # Size and contents of one file, though another may take its place at any moment.
        token = self._views.pin(path)
        size = self._views.pinned(request.volume_id, token).stat().st_size
        start = min(request.start, size)
        end = min(start + request.len, size) if request.len else size
        urls = []
        for block in range(start // BLOCK * BLOCK, end, BLOCK):
            first, last = max(block, start), min(block + BLOCK, end)
            urls.append(self._blobs.block_url(request.volume_id, quote(token), first, last - first))
        return pb.VolumeGetFile2Response(get_urls=urls, size=size, start=start, len=end - start)

    # Writing from outside.

    async def volume_put_files2(
        self, request: pb.VolumePutFiles2Request, _caller: Caller
    ) -> pb.VolumePutFiles2Response:
        self._store.volume(request.volume_id)
        missing = [
            pb.VolumePutFiles2Response.MissingBlock(
                file_index=at, block_index=number, put_url=self._blobs.content_url(block.contents_sha256.hex())
            )
            for at, each in enumerate(request.files)
            for number, block in enumerate(each.blocks)
            if not self._contents.has(block.contents_sha256.hex())
        ]
        if missing:
            return pb.VolumePutFiles2Response(missing_blocks=missing)
        uploads = {
            each.path: Upload(
                each.size, BLOCK, [self._contents.path(block.contents_sha256.hex()) for block in each.blocks], each.mode
            )
            for each in request.files
        }
        await self._put(request, uploads)
        return pb.VolumePutFiles2Response()

    async def volume_put_files(self, request: Any, _caller: Caller) -> None:
        uploads = {
            each.filename: Upload.of_one_piece(self._contents.path(each.sha256_hex), each.mode)
            for each in request.files
        }
        await self._put(request, uploads)

    async def _put(self, request: Any, uploads: dict[str, Upload]) -> None:
        files = self._files(request.volume_id)

        def put() -> None:
            if request.disallow_overwrite_existing_files:
                for name in uploads:
                    if self._path(files, name).exists():
                        raise GRPCError(Status.ALREADY_EXISTS, f"{name}: already exists")
            files.put(uploads)

        try:
            await self._views.change(request.volume_id, put)
        except ValueError as error:
            raise invalid(str(error)) from None

    async def volume_remove_file2(self, request: Any, _caller: Caller) -> None:
        path = self._existing(request.volume_id, request.path)
        if path.is_dir() and not request.recursive:
            raise invalid(f"{request.path}: is a directory; ask for a recursive removal")
        if path == self._files(request.volume_id).committed:
            raise invalid("the top of a volume cannot be removed; delete the volume")
        await self._views.change(request.volume_id, lambda: remove(path))

    async def volume_remove_file(self, request: Any, caller: Caller) -> None:
        await self.volume_remove_file2(request, caller)

    async def volume_copy_files2(self, request: Any, _caller: Caller) -> None:
        files = self._files(request.volume_id)
        target = self._path(files, request.dst_path)
        sources = [self._existing(request.volume_id, each) for each in request.src_paths]
        into = target.is_dir() or request.dst_path.endswith("/") or len(sources) > 1
        copies: list[tuple[Path, Path]] = []
        for source in sources:
            if source.is_dir() and not request.recursive:
                raise invalid(f"{source.name}: is a directory; ask for a recursive copy")
            place = target / source.name if into else target
            if source.is_file():
                copies.append((source, place))
            else:
                found = [each for each in paths_under(source, recursive=True) if each.is_file()]
                copies += [(each, place / each.relative_to(source)) for each in found]

        def copy() -> None:
            for source, place in copies:
                copy_file(source, place)

        await self._views.change(request.volume_id, copy)

    async def volume_copy_files(self, request: Any, caller: Caller) -> None:
        await self.volume_copy_files2(request, caller)

    def _named(self, name: str, environment: str) -> Volume | None:
        for volume in self._store.volumes.values():
            if name and (volume.name, volume.environment) == (name, environment):
                return volume
        return None

    def _files(self, volume_id: str) -> VolumeFiles:
        return self._views.files(self._store.volume(volume_id).id)

    @staticmethod
    def _path(files: VolumeFiles, name: str) -> Path:
        try:
            return files.path(name)
        except ValueError as error:
            raise invalid(str(error)) from None

    def _existing(self, volume_id: str, name: str) -> Path:
        path = self._path(self._files(volume_id), name)
        if not path.exists():
            raise not_found(f"No such file or directory: {name}")
        return path

    def _entries(self, volume_id: str, name: str, recursive: bool) -> Iterator[pb.FileEntry]:
        base, top = self._existing(volume_id, name), self._files(volume_id).committed
        for path in [base] if base.is_file() else paths_under(base, recursive=recursive):
            try:
                status = path.stat()
            except (FileNotFoundError, NotADirectoryError):
                continue
            is_directory = stat.S_ISDIR(status.st_mode)
            kind = pb.FileEntry.DIRECTORY if is_directory else pb.FileEntry.FILE
            size = 0 if is_directory else status.st_size
            yield pb.FileEntry(path=str(path.relative_to(top)), type=kind, mtime=int(status.st_mtime), size=size)


def paths_under(directory: Path, *, recursive: bool) -> list[Path]:
    """What is in a directory, in order. What is removed while we look is left out."""
    found: list[Path] = []
    for parent, directories, names in os.walk(directory):
        found += [Path(parent, name) for name in (*directories, *names)]
        if not recursive:
            break
    return sorted(found)


def metadata(volume: Volume) -> pb.VolumeMetadata:
    return pb.VolumeMetadata(
        version=volume.version,  # type: ignore[arg-type]
        name=volume.name,
        creation_info=pb.CreationInfo(created_at=volume.created, created_by="emulator"),
    )
