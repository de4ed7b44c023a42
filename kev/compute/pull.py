"""Bringing a tree of a volume home: resumable, verified, and replacing nothing before it is whole.

The public API reads a file from its beginning and as a whole, so a pull that was interrupted goes on with the file
it was at; complete files are not fetched again.
"""

import asyncio
import hashlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

from kev import files
from kev.compute.errors import Throttled, Unavailable
from kev.compute.manifests import is_manifest, sums_in
from kev.compute.protocol import Entry, EntryKind, PullProgress, PullReport
from kev.compute.volumes import Volumes
from kev.errors import DamagedFile, KevError, NotFound, Refused

CONCURRENT_FILES = 4
PATIENCE_S = 300.0
"""How long a pull waits for a throttle to end."""

SMALL = 1024 * 1024
"""Up to this size a file as young as the youngest of its tree is fetched again: its stamp counts whole seconds."""

TRIES = 3
"""At a file that changes while it is read."""


async def pull(
    volumes: Volumes, volume: str, path: str, dest: Path, *, weights: bool = False,
    on_progress: Callable[[PullProgress], None] | None = None,
) -> PullReport:  # fmt: skip
    """See `Compute.pull`.

    Raises NotFound if there is nothing at `path`, Unavailable if a file kept changing (what is complete is kept),
    DamagedFile if what arrived is not what the manifest beside it promises, KevError if it cannot be written.
    """
    root = path.strip("/")
    listed = await volumes.list_patiently(volume, path, recursive=True, patience_s=PATIENCE_S)
    found = {within(entry, root): entry for entry in listed if entry.kind is EntryKind.FILE}
    if not found:
        raise NotFound(f"{volume}:{path}: nothing there to pull; check the name, or wait for the first commit")
    withheld = {} if weights else {name: entry for name, entry in found.items() if is_weight(name)}
    wanted = {name: entry for name, entry in found.items() if name not in withheld}
    work = _Pull(volumes, volume, dest, wanted, on_progress)
    await work.run()
    return PullReport(
        fetched=tuple(sorted(work.fetched)),
        kept=tuple(sorted(work.kept)),
        withheld=tuple(sorted(withheld)),
        verified=tuple(sorted(work.verified)),
        bytes_fetched=work.bytes_fetched,
    )


class _Pull:
    """One pull under way."""

    def __init__(
        self, volumes: Volumes, volume: str, dest: Path, wanted: dict[str, Entry],
        on_progress: Callable[[PullProgress], None] | None,
    ) -> None:  # fmt: skip
        self._volumes, self._volume, self._dest, self._wanted = volumes, volume, dest, wanted
        self._on_progress = on_progress
        self._newest = max((entry.modified for entry in wanted.values()), default=0)
        self._total = sum(entry.size for entry in wanted.values())
        self._bytes_done = 0
        self._slots = asyncio.Semaphore(CONCURRENT_FILES)
        self._sums: dict[str, str] = {}
        self.fetched: list[str] = []
        self.kept: list[str] = []
        self.verified: list[str] = []
        self.bytes_fetched = 0

    async def run(self) -> None:
        # Manifests first: they say what the rest must be.
        manifests = [name for name in self._wanted if is_manifest(name)]
        await self._bring(manifests)
        for name in manifests:
            self._sums |= await asyncio.to_thread(sums_in, self._dest, name)
        await self._bring([name for name in self._wanted if name not in manifests])

    async def _bring(self, names: list[str]) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for name in names:
                    group.create_task(self._bring_one(name))
        except* KevError as errors:
            # One line is shown: the first that says something; the others have the same cause, or will be met again.
            raise next(_leaves(errors)) from None

    async def _bring_one(self, name: str) -> None:
        async with self._slots:
            entry = self._wanted[name]
            if await asyncio.to_thread(self._is_here, name, entry):
                self.kept.append(name)
                self._advance(name, entry.size)
            else:
                await self._fetch(name, entry)
                self.fetched.append(name)
            if name in self._sums:
                self.verified.append(name)

    def _is_here(self, name: str, entry: Entry) -> bool:
        path = self._dest / name
        try:
            status = path.stat()
        except OSError:
            return False
        if (status.st_size, int(status.st_mtime)) != (entry.size, entry.modified) or self._may_be_racing(entry):
            return False
        return name not in self._sums or sum_of(path) == self._sums[name]

    def _may_be_racing(self, entry: Entry) -> bool:
        """Whether `entry` could have been rewritten, at the same size, in the very second of its time stamp."""
        return entry.size <= SMALL and entry.modified >= self._newest - 1

    async def _fetch(self, name: str, entry: Entry) -> None:
        waited, tries = 0.0, 0
        while tries < TRIES:
            try:
                if await self._receive(name, entry):
                    return
            except Throttled as error:
                pause = error.retry_after_s or 2.0
                waited += pause
                if waited > PATIENCE_S:
                    raise
                await asyncio.sleep(pause)
                continue
            fresh = await self._relist(entry.path)
            if fresh is None:
                break
            entry, tries = fresh, tries + 1
        raise Unavailable(f"{self._volume}:{entry.path}: changes while it is read; pull again when it is at rest")

    async def _relist(self, path: str) -> Entry | None:
        """The one file at `path` as it is now."""
        entries = await self._volumes.list_patiently(self._volume, path, recursive=False, patience_s=PATIENCE_S)
        return next((entry for entry in entries if entry.path == path), None)

    async def _receive(self, name: str, entry: Entry) -> bool:
        """Fetch one file. False if what came is not what the listing said."""
        incoming, came = None, 0

        def advance(size: int) -> None:
            nonlocal came
            came += size
            self._advance(name, size)

        is_whole = False
        try:
            incoming = await asyncio.to_thread(files.IncomingFile, self._dest / name)
            await self._volumes.read_into(self._volume, entry.path, incoming, advance)
            if incoming.size == entry.size:
                await self._check_sum(name, incoming.part)
                await asyncio.to_thread(incoming.finish, modified=entry.modified)
                is_whole = True
                self.bytes_fetched += entry.size
        except FileNotFoundError:
            pass
        except OSError as error:
            raise KevError(f"{self._dest / name}: cannot be written ({error.strerror or error}); "
                           "make room and pull again, what is complete is kept") from None  # fmt: skip
        finally:
            if not is_whole:
                self._advance(name, -came)
            if incoming is not None:
                await asyncio.to_thread(incoming.abandon)
        return is_whole

    async def _check_sum(self, name: str, part: Path) -> None:
        promised = self._sums.get(name)
        if promised is not None and await asyncio.to_thread(sum_of, part) != promised:
            raise DamagedFile(self._dest / name, "is not what its manifest promises (sha256); nothing was replaced")

    def _advance(self, name: str, size: int) -> None:
        self._bytes_done += size
        if self._on_progress is not None:
            done = len(self.fetched) + len(self.kept)
            self._on_progress(PullProgress(name, done, len(self._wanted), self._bytes_done, self._total))


def within(entry: Entry, root: str) -> str:
    """The path of `entry` relative to `root`. Raises Refused for one that would leave the destination."""
    path = PurePosixPath(entry.path)
    name = path.name if entry.path == root else entry.path.removeprefix(f"{root}/" if root else "")
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\0" in name or (root and not _is_under(entry.path, root)):
        raise Refused(f"{entry.path!r}: a file of this name is not taken home")
    return "/".join(parts)


def is_weight(name: str) -> bool:
    """Whether a pull leaves `name` out unless weights are asked for: model weights, and whole resume points."""
    path = PurePosixPath(name)
    in_checkpoint = path.parent.name == "checkpoint" and path.match("model*.safetensors")
    return in_checkpoint or "resume" in path.parent.parts


def sum_of(path: Path) -> str:
    """The sha256 of a file, in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _is_under(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root}/")


def _leaves(group: BaseExceptionGroup[KevError]) -> Any:
    for each in group.exceptions:
        if isinstance(each, BaseExceptionGroup):
            yield from _leaves(each)
        else:
            yield each
