"""A disk in memory under `kev.files`, on which writes tear, fail and die with the process that makes them."""

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kev import files
from kev.errors import LockHeld, NotFound
from kev.files import json_values


class Killed(BaseException):
    """The process was ended between two instructions; nothing it would have done afterwards happens."""


class MemoryDisk:
    """Files as bytes by path. `fate` is asked before each write, and says what becomes of it."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.names: dict[str, set[str]] = {}
        self.locks: dict[str, str] = {}
        self.process = ""
        """Whose turn it is."""
        self.dead: set[str] = set()
        self.fate: Callable[[str, str], str] = lambda _kind, _path: "ok"

    def install(self, patch: pytest.MonkeyPatch) -> None:
        for name in ("read_bytes", "write_atomic", "create_exclusive", "append", "locked", "list_names",
                     "find_recoverable"):  # fmt: skip
            patch.setattr(files, name, getattr(self, name))
        for name in ("read_bytes", "find_recoverable"):
            patch.setattr(json_values, name, getattr(self, name))
        # Indenting is done by the slow one of Python's two encoders, and nobody looks at these files.
        patch.setattr(files, "dump_json", files.dump_json_line)

    def kill(self, process: str) -> None:
        """End a process: the kernel lets go of its locks."""
        self.dead.add(process)
        self.locks = {path: holder for path, holder in self.locks.items() if holder != process}

    def read_bytes(self, path: Path, *, limit: int = 0) -> bytes:
        try:
            return self.files[str(path)]
        except KeyError:
            raise NotFound(f"{path}: no such file") from None

    def list_names(self, directory: Path) -> list[str]:
        return sorted(self.names.get(str(directory), ()))

    def find_recoverable(self, path: Path) -> Path | None:
        return None

    def write_atomic(self, path: Path, data: bytes) -> None:
        self._write("write", str(path), data)

    def create_exclusive(self, path: Path, data: bytes) -> None:
        self._alive()
        if str(path) in self.files:
            raise FileExistsError(errno.EEXIST, "there already", str(path))
        self._write("create", str(path), data)

    def append(self, path: Path, data: bytes, *, cut_torn: bool = False) -> None:
        self._alive()
        old = self.files.get(str(path), b"")
        if old and not old.endswith(b"\n"):
            old = old[: old.rfind(b"\n") + 1] if cut_torn else old + b"\n"
        self._write("append", str(path), old + data, torn=old + data[: len(data) * 2 // 3])

    @contextmanager
    def locked(self, path: Path, *, wait: bool = False) -> Iterator[None]:
        self._alive()
        name = str(path)
        if name in self.locks:
            raise LockHeld(path, self.locks[name])
        mine = self.locks[name] = self.process
        try:
            yield
        finally:
            if self.locks.get(name) == mine and mine not in self.dead:
                del self.locks[name]

    def put(self, name: str, data: bytes) -> None:
        """Write without any fate: what the world does, not the engine."""
        self.files[name] = data
        directory, _, base = name.rpartition("/")
        self.names.setdefault(directory, set()).add(base)

    def _write(self, kind: str, name: str, data: bytes, torn: bytes | None = None) -> None:
        self._alive()
        fate = self.fate(kind, name)
        if fate == "full":
            raise OSError(errno.ENOSPC, "No space left on device", name)
        if fate == "before":
            raise Killed
        if fate == "torn" and torn is not None:
            self.put(name, torn)
            raise Killed
        self.put(name, data)
        if fate == "after":
            raise Killed

    def _alive(self) -> None:
        if self.process in self.dead:
            raise Killed


def json_lines(data: bytes) -> list[Any]:
    return [line.value for line in files.parse_json_lines(data)]
