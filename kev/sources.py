"""Which code this is: the hash of every file that decides what runs, for comparing a checkout with a deployment."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from kev import files

SINGLE_FILES = ("constraints.txt", "modal_app.py", "pyproject.toml", "uv.lock")
"""Those beside the package; one that a checkout lacks is left out."""

NAMED = 3
"""Differing files that a message names."""


def source_hashes(root: Path) -> dict[str, str]:
    """The SHA-256 of every module of kev and of what pins its dependencies, by path under `root`."""
    paths = [*(root / "kev").rglob("*.py"), *(root / name for name in SINGLE_FILES if (root / name).is_file())]
    return {path.relative_to(root).as_posix(): hashlib.sha256(files.read_bytes(path)).hexdigest()
            for path in sorted(paths)}  # fmt: skip


def digest(hashes: Mapping[str, str]) -> str:
    """One hash that is equal exactly where all of `hashes` are."""
    lines = "".join(f"{sha256}  {path}\n" for path, sha256 in sorted(hashes.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def differing(ours: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """The files that are not the same on both sides, or are on one side only."""
    return sorted(path for path in ours.keys() | theirs.keys() if ours.get(path) != theirs.get(path))


def describe(paths: list[str]) -> str:
    """Some of `paths`, and how many more there are."""
    more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
    return ", ".join(paths[:NAMED]) + more
