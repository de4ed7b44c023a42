"""`manifest.json` of what a container wrote: the SHA-256 of every file, by which a pull knows that it has the same."""

import hashlib
from pathlib import Path

from kev import files

MANIFEST = "manifest.json"
UNLISTED = {"resume"}
"""Directories whose files come and go while training runs."""


def write_with_manifest(directory: Path, last: str, data: bytes) -> None:
    """Write the file that makes `directory` complete, `last`, after a manifest of everything in it, itself included."""
    sums = {path.relative_to(directory).as_posix(): _entry(path) for path in _listed(directory)}
    sums[last] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    files.write_atomic(directory / MANIFEST, files.dump_json({"files": dict(sorted(sums.items()))}))
    files.write_atomic(directory / last, data)


def _listed(directory: Path) -> list[Path]:
    return [
        path
        for path in directory.rglob("*")
        if path.is_file()
        and path.name != MANIFEST
        and not path.name.endswith(".tmp")
        and not UNLISTED & set(path.relative_to(directory).parts)
    ]


def _entry(path: Path) -> dict[str, object]:
    with path.open("rb") as stream:
        return {"sha256": hashlib.file_digest(stream, "sha256").hexdigest(), "bytes": path.stat().st_size}
