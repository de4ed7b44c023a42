"""Bulk content under the root: bytes by name, and directories made of them.

Writes here need no flush to the device: what is lost with the power is sent again by the client that has it.
"""

import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

ID_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")


class ContentStore:
    """Bytes by name under one directory, appearing whole or not at all."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def path(self, name: str) -> Path:
        if not name or not set(name) <= ID_CHARACTERS:
            raise ValueError(f"{name!r:.60} is no content name")
        return self.directory / name

    def has(self, name: str) -> bool:
        return self.path(name).exists()

    def put(self, name: str, data: bytes) -> None:
        path = self.path(name)
        temporary = path.with_name(f"{name}.{secrets.token_hex(4)}.tmp")
        temporary.write_bytes(data)
        temporary.replace(path)

    def sweep(self) -> None:
        """Remove what an interrupted write left."""
        for left in self.directory.glob("*.tmp"):
            left.unlink()


def private_directory(path: Path) -> None:
    """Make `path` for this user alone: it will hold secrets and run code."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)


def lay_out(place: Path, entries: Mapping[str, Path]) -> None:
    """Make the directory `place` of copies of files, by their absolute paths in a container; whole or not at all.

    Raises ValueError for a path that would leave it.
    """
    building = place.with_name(f"{place.name}.{secrets.token_hex(4)}.tmp")
    try:
        building.mkdir(parents=True)
        for name, content in entries.items():
            target = building / name.lstrip("/")
            if ".." in target.parts:
                raise ValueError(f"mount path {name!r:.80} leaves its root")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(content, target)
        building.rename(place)
    finally:
        shutil.rmtree(building, ignore_errors=True)
