"""The sha256 sums that a tree carries for its own files."""

import re
from pathlib import Path, PurePosixPath
from typing import Any

from kev import files
from kev.errors import DamagedFile, NotFound

MANIFEST = "manifest.json"
MAX_MANIFEST_BYTES = 16 * 1024 * 1024
_SUM = re.compile("[0-9a-f]{64}")


def is_manifest(name: str) -> bool:
    """Whether a file of this name may hold sums for its neighbours."""
    return PurePosixPath(name).name == MANIFEST


def sums_in(root: Path, name: str) -> dict[str, str]:
    """Path under `root` to sha256, from the `files` of the manifest `name`; empty if it holds none.

    `files` maps a path beside the manifest to `{"sha256": ...}` or to the sum itself. A manifest that cannot be read
    promises nothing.
    """
    try:
        value = files.read_json(root / name, limit=MAX_MANIFEST_BYTES)
    except (DamagedFile, NotFound):
        return {}
    table = value.get("files") if isinstance(value, dict) else None
    if not isinstance(table, dict):
        return {}
    directory = PurePosixPath(name).parent
    return {str(directory / path): found for path, entry in table.items() if (found := _sum_of(entry))}


def _sum_of(entry: Any) -> str | None:
    value = entry.get("sha256") if isinstance(entry, dict) else entry
    return value if isinstance(value, str) and _SUM.fullmatch(value) else None
