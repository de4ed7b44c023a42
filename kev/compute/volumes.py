"""Files on a volume, as last committed: listing them, and reading one."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from kev import files
from kev.clock import Clock
from kev.compute import classify
from kev.compute.client import ModalClient, load_modal
from kev.compute.errors import RemoteError, Unavailable
from kev.compute.lister import Directory, SharedLister
from kev.compute.protocol import Entry, EntryKind
from kev.errors import Refused

KINDS = {"FILE": EntryKind.FILE, "DIRECTORY": EntryKind.DIRECTORY}


class Volumes:
    """The volumes of one environment."""

    def __init__(self, client: ModalClient, clock: Clock) -> None:
        self._client = client
        self._lister = SharedLister(self._fetch, clock)

    async def listdir(self, volume: str, path: str, *, recursive: bool = False) -> list[Entry]:
        return await self._lister.entries(Directory(volume, path, recursive))

    async def _handle(self, volume: str) -> Any:
        modal = load_modal()
        return modal.Volume.from_name(
            volume, environment_name=self._client.environment, client=await self._client.open()
        )

    async def _fetch(self, directory: Directory) -> list[Entry]:
        handle = await self._handle(directory.volume)
        question = handle.listdir.aio(directory.path or "/", recursive=directory.recursive)
        doing = f"list {directory.volume}:{directory.path}"
        try:
            found = await self._client.bounded(question, doing, deadline_s=self._client.deadlines.stream)
        except RemoteError:
            raise
        except Exception as error:
            if classify.is_missing(error):
                return []
            raise classify.error_of(error, doing) from error
        return [
            Entry(each.path.lstrip("/"), KINDS.get(each.type.name, EntryKind.OTHER), each.size, each.mtime)
            for each in found
        ]

    async def read(self, volume: str, path: str, *, limit: int) -> bytes | None:
        data = bytearray()
        try:
            async with aclosing(self._chunks(volume, path)) as chunks:
                async for chunk in chunks:
                    data += chunk
                    if len(data) > limit:
                        raise Refused(f"{volume}:{path}: more than the {limit:,} bytes that are read at once; pull it")
        except FileNotFoundError:
            return None
        return bytes(data)

    async def _chunks(self, volume: str, path: str) -> AsyncGenerator[bytes, None]:
        """The bytes of a file, a block at a time. Raises FileNotFoundError, or a RemoteError."""
        handle = await self._handle(volume)
        doing = f"read {volume}:{path}"
        chunks = handle.read_file.aio(path)
        try:
            while True:
                try:
                    chunk = await self._client.bounded(anext(chunks), doing, deadline_s=self._client.deadlines.stream)
                except StopAsyncIteration:
                    return
                except RemoteError:
                    raise
                except Exception as error:
                    if classify.is_missing(error):
                        raise FileNotFoundError(path) from None
                    raise classify.error_of(error, doing) from error
                yield chunk
        finally:
            await chunks.aclose()

    async def list_patiently(self, volume: str, path: str, *, recursive: bool, patience_s: float) -> list[Entry]:
        """The entries as they are now; a throttle is waited out, for `patience_s` in all."""
        return await self._lister.list_patiently(Directory(volume, path, recursive), patience_s=patience_s)

    async def read_into(
        self, volume: str, path: str, target: files.IncomingFile, on_bytes: Callable[[int], None]
    ) -> None:
        """Read a file into `target`, in blocks of any order and without holding more than a piece of each.

        Raises FileNotFoundError, OSError of `target`, or a RemoteError, Unavailable if nothing comes for a while.
        """
        handle = await self._handle(volume)
        doing, loop, moved = f"read {volume}:{path}", asyncio.get_running_loop(), False

        def note(size: int) -> None:
            nonlocal moved
            moved = True
            on_bytes(size)

        # The client calls back from a thread of its own.
        progress: Callable[..., Any] = lambda advance=0, **_: loop.call_soon_threadsafe(note, advance)  # noqa: E731
        task = asyncio.ensure_future(handle.read_file_into_fileobj.aio(path, target, progress_cb=progress))
        try:
            while not (await asyncio.wait({task}, timeout=self._client.deadlines.stream))[0]:
                if not moved:
                    raise Unavailable(f"{doing}: nothing came for {self._client.deadlines.stream:g} s")
                moved = False
            task.result()
        except RemoteError:
            raise
        except Exception as error:
            if target.trouble is not None:
                raise target.trouble from None
            if classify.is_missing(error):
                raise FileNotFoundError(path) from None
            raise classify.error_of(error, doing) from error
        finally:
            if not task.done():
                task.cancel()
                # It must have let go of `target` before anyone closes that.
                await asyncio.wait({task})
