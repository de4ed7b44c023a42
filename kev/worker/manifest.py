"""`manifest.json` of what a container wrote: the SHA-256 of every file, by which a pull knows that it has the same."""

import hashlib
from pathlib import Path

from kev import files

MANIFEST = "manifest.json"
UNLISTED = {"resume"}
"""Directories whose files come and go while training runs."""


def write_with_manifest(directory: Path, last: str, data: bytes) -> None:
    """Write the file that makes `directory` complete, `last`, after a manifest of everything in it, itself included."""
    sums = _sums(directory)
    sums[last] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    _write(directory, sums)
    files.write_atomic(directory / last, data)


def write_manifest(directory: Path) -> None:
    """Write the manifest of a directory that is complete already."""
    _write(directory, _sums(directory))


def _write(directory: Path, sums: dict[str, dict[str, object]]) -> None:
    files.write_atomic(directory / MANIFEST, files.dump_json({"files": dict(sorted(sums.items()))}))


def _sums(directory: Path) -> dict[str, dict[str, object]]:
    return {path.relative_to(directory).as_posix(): _entry(path) for path in _listed(directory)}


def _listed(directory: Path) -> list[Path]:
    return [
        path
        for path in directory.rglob("*")
        if path.is_file()
        and path.name != MANIFEST
        and not path.name.endswith((".tmp", ".lock"))
        and not UNLISTED & set(path.relative_to(directory).parts)
    ]


def _entry(path: Path) -> dict[str, object]:
    with path.open("rb") as stream:
        return {"sha256": hashlib.file_digest(stream, "sha256").hexdigest(), "bytes": path.stat().st_size}
