"""The files of volumes: what is committed, what a container sees, and how one becomes the other.

Each container works on its own copy of a volume, as it was when the container started or last reloaded. A commit takes
what changed there since, writes it beside the committed files, and then renames file by file: readers see old or new
bytes, never half of a file. A commit that a kill interrupts is finished at the next start if it was acknowledged or
complete, and forgotten otherwise.

    <volume>/committed/      what everyone outside sees, and what containers start from
    <volume>/incoming/N/     a commit on its way: files, and manifest.json once it is complete
    <task>/volumes/<volume>/ a container's own copy
"""

import os
import shutil
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from kev import files
from kev.emulator.uploads import Upload
from kev.errors import KevError

MANIFEST = "manifest.json"
COPYING = ".kev-copying"
"""Ends the name of a file that is being copied."""

PINS_KEPT = 512
"""So many files that were being read are kept after they are replaced."""

Stamp = tuple[int, int, int]
"""Modification time in nanoseconds, size and inode: equal stamps are taken for equal contents."""


STAMP_RESOLUTION_NS = 20_000_000
"""Two writes closer than this may leave the same modification time; the coarsest kernel clock ticks every 10 ms."""


def stamp_of(path: Path) -> Stamp:
    status = path.lstat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def snapshot(directory: Path) -> dict[str, Stamp]:
    """The regular files under `directory` by relative path. Links, sockets and pipes are not kept in volumes."""
    found: dict[str, Stamp] = {}
    for parent, _, names in os.walk(directory):
        for name in names:
            path = Path(parent, name)
            with suppress(FileNotFoundError):  # removed while we looked
                if path.is_file() and not path.is_symlink() and not name.endswith(COPYING):
                    found[str(path.relative_to(directory))] = stamp_of(path)
    return found


def _let_age(stamps: list[Stamp]) -> None:
    """Wait until a further write to any of the files would give it another stamp."""
    youngest = max((stamp[0] for stamp in stamps), default=0)
    wait = youngest + STAMP_RESOLUTION_NS - time.time_ns()
    if 0 < wait <= STAMP_RESOLUTION_NS:
        time.sleep(wait / 1e9)


def copy_file(source: Path, target: Path) -> None:
    """Copy bytes and times; `target` appears whole."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}{COPYING}")
    try:
        shutil.copyfile(source, temporary)
        shutil.copystat(source, temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def remove(path: Path) -> None:
    """Remove a file, or a directory with all it holds."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


class Pins:
    """Files that stay readable, under a name of their own, after they are replaced.

    Committed files are never changed in place, so a second link to one holds what a reader began to read.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._names: dict[str, None] = {}
        shutil.rmtree(directory, ignore_errors=True)

    def add(self, name: str, path: Path) -> None:
        """Keep `path` as it is now under `name`; the oldest of many is given up."""
        self._directory.mkdir(exist_ok=True)
        os.link(path, self._directory / name)
        self._names[name] = None
        while len(self._names) > PINS_KEPT:
            oldest = next(iter(self._names))
            del self._names[oldest]
            remove(self._directory / oldest)

    def path(self, name: str) -> Path:
        """Raises KeyError if there is no such pin, or no longer."""
        if name not in self._names:
            raise KeyError(name)
        return self._directory / name


class VolumeFiles:
    """The committed files of one volume."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.committed = directory / "committed"
        self._incoming = directory / "incoming"
        self.committed.mkdir(parents=True, exist_ok=True)
        self._incoming.mkdir(exist_ok=True)
        self._next = 1 + max((int(each.name) for each in self._incoming.iterdir() if each.name.isdigit()), default=0)

    def path(self, name: str) -> Path:
        """The committed file or directory `name`. Raises ValueError if it would leave the volume."""
        path = self.committed / name.strip("/")
        if ".." in path.relative_to(self.committed).parts:
            raise ValueError(f"{name!r:.80} leaves the volume")
        return path

    def recover(self) -> None:
        """Finish the complete commits that a kill interrupted, in order, and forget the others."""
        for stage in sorted(self._incoming.iterdir(), key=lambda each: int(each.name)):
            if (stage / MANIFEST).exists():
                self.publish(stage)
            else:
                shutil.rmtree(stage)

    def new_stage(self) -> Path:
        stage = self._incoming / str(self._next)
        self._next += 1
        (stage / "files").mkdir(parents=True)
        return stage

    def seal(self, stage: Path, changed: list[str], removed: list[str]) -> None:
        """Mark a commit as complete: from here on a kill no longer loses it."""
        files.write_atomic(stage / MANIFEST, files.dump_json({"changed": changed, "removed": removed}))

    def publish(self, stage: Path) -> None:
        """Make a complete commit visible. Can be repeated after an interruption."""
        try:
            manifest = files.read_json(stage / MANIFEST)
        except KevError:
            return
        for name in manifest["changed"]:
            source, target = stage / "files" / name, self.committed / name
            if source.exists():
                make_room(target)
                source.replace(target)
        for name in manifest["removed"]:
            target = self.committed / name
            target.unlink(missing_ok=True)
            prune(target.parent, self.committed)
        shutil.rmtree(stage)

    def put(self, uploads: Mapping[str, Upload]) -> None:
        """Commit files from outside, all or none. Raises ValueError if one is not whole, or is in the way of others."""
        names = [str(self.path(name).relative_to(self.committed)) for name in uploads]
        for name in names:
            path = self.committed / name
            if path.is_dir():
                raise ValueError(f"{name}: is a directory")
            if (blocking := next((each for each in path.parents if each.is_file()), None)) is not None:
                raise ValueError(f"{name}: {blocking.relative_to(self.committed)} is a file")
        stage = self.new_stage()
        try:
            for name, upload in zip(names, uploads.values(), strict=True):
                upload.write(stage / "files" / name)
            self.seal(stage, names, [])
        except BaseException:
            shutil.rmtree(stage)
            raise
        self.publish(stage)


@dataclass(frozen=True, slots=True)
class Stage:
    """A complete commit on its way: its directory, and the files it changes or removes, as the container names them."""

    directory: Path
    names: frozenset[str]


@dataclass
class View:
    """A container's copy of a volume, and what both sides were like when they last agreed."""

    volume: VolumeFiles
    directory: Path
    read_only: bool = False
    sub_path: str = ""
    _mine: dict[str, Stamp] = field(default_factory=dict)
    _theirs: dict[str, Stamp] = field(default_factory=dict)
    _under_way: Counter[str] = field(default_factory=Counter)
    """Files in commits that are not visible yet: what is visible of them is older than what is here."""

    @property
    def _source(self) -> Path:
        return self.volume.path(self.sub_path)

    def reload(self) -> None:
        """Take over what others have committed; files that this container has changed since stay as they are."""
        self.directory.mkdir(parents=True, exist_ok=True)
        theirs, mine = snapshot(self._source), snapshot(self.directory)
        for name in theirs.keys() | self._theirs.keys():
            is_news = theirs.get(name) != self._theirs.get(name)
            if not is_news or self._under_way[name] or mine.get(name) != self._mine.get(name):
                continue
            target = self.directory / name
            if name in theirs:
                try:
                    make_room(target)
                    copy_file(self._source / name, target)
                    self._mine[name] = stamp_of(target)
                except (FileNotFoundError, NotADirectoryError):
                    # The program removed the file, or its directory, as we brought it: that is its change to make.
                    if (self._source / name).is_file():
                        self._mine[name] = theirs[name]
            else:
                target.unlink(missing_ok=True)
                prune(target.parent, self.directory)
                self._mine.pop(name, None)
        self._theirs = theirs

    def stage(self) -> Stage | None:
        """Copy what changed here into a complete commit, or None if nothing did."""
        if self.read_only:
            return None
        mine = snapshot(self.directory)
        changed = [name for name in mine if mine[name] != self._mine.get(name)]
        # A listing may miss a file that is replaced meanwhile: only what is not there when looked for itself is gone.
        removed = [name for name in self._mine if name not in mine and not (self.directory / name).is_file()]
        if not changed and not removed:
            return None
        _let_age([mine[name] for name in changed])
        prefix = Path(self.sub_path.strip("/"))
        directory = self.volume.new_stage()
        kept = []
        for name in changed:
            try:
                copy_file(self.directory / name, directory / "files" / prefix / name)
            except FileNotFoundError:
                continue  # a temporary file of the program, already renamed
            kept.append(name)
        self.volume.seal(directory, [str(prefix / name) for name in kept], [str(prefix / name) for name in removed])
        # A file that was written to during the copy has another stamp by now and goes into the next commit.
        self._mine = mine
        stage = Stage(directory, frozenset(kept) | frozenset(removed))
        self._under_way.update(stage.names)
        return stage

    def published(self, stage: Stage) -> None:
        """Note that a commit of ours is visible now, so that it is not taken for news from others."""
        for name in stage.names:
            self._under_way[name] -= 1
            path = self._source / name
            if path.is_file():
                self._theirs[name] = stamp_of(path)
            else:
                self._theirs.pop(name, None)


def make_room(target: Path) -> None:
    """Let a file take the place of a directory, or of a file on the way to it."""
    if target.is_dir() and not target.is_symlink():
        shutil.rmtree(target)
    for parent in reversed(target.parents):
        if parent.is_file():
            parent.unlink()
            break
    target.parent.mkdir(parents=True, exist_ok=True)


def prune(directory: Path, top: Path) -> None:
    """Remove `directory` and those it lies in, up to `top`, as far as they are empty."""
    with suppress(OSError):  # one is not empty, or somebody else was quicker
        while directory != top:
            directory.rmdir()
            directory = directory.parent
