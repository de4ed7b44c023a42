"""What a bundle says of itself, and what the names and hashes in it must be."""

import hashlib
import re
from typing import Final

from kev.records.base import StrictRecord
from kevtui.replay.kinds import RUNS, SPECS, Kind, kind_of

FORMAT, VERSION = "kevtui night", 1
MANIFEST: Final = "manifest.json"

MAX_FILES = 50_000
MAX_FILE_BYTES = 32 * 1024 * 1024
MAX_BYTES = 256 * 1024 * 1024
"""Of all files together, unpacked."""
MAX_MANIFEST_BYTES = 16 * 1024 * 1024
MAX_ARCHIVE_BYTES = 256 * 1024 * 1024

_NAMED = re.compile(rf"(?:{RUNS}|{SPECS})/[^/]+")


class BundleFile(StrictRecord):
    """One file of the night."""

    path: str
    kind: str
    changed_ns: int
    """When it last changed, by the file system it came from; nanoseconds since 1970."""
    bytes: int | None = None
    """None, as its hash, where only that it was there is told."""
    sha256: str | None = None


class Manifest(StrictRecord):
    """`manifest.json`, the first file of a bundle."""

    format: str
    version: int
    title: str
    session: str | None
    round: int | None
    state: str | None
    spec: str | None
    files: list[BundleFile]
    redacted: dict[str, int]
    """How many stretches of text were taken out, by what they were."""
    left_out: dict[str, int]
    """How many files were there and are not here, by why."""


def hash_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def problem_of(manifest: Manifest) -> str:
    """Why `manifest` cannot be that of a bundle, or ""."""
    if manifest.format != FORMAT:
        return f"is no recorded night (its format is {manifest.format!r:.40})"
    if manifest.version != VERSION:
        return f"is a recorded night of version {manifest.version}; this program reads version {VERSION}"
    if len(manifest.files) > MAX_FILES:
        return f"lists {len(manifest.files):,} files, more than the {MAX_FILES:,} a night may have"
    seen: set[str] = set()
    for file in manifest.files:
        if file.path in seen:
            return f"lists {file.path!r:.200} twice"
        seen.add(file.path)
        if why := _problem_of_file(file, named=(manifest.state, manifest.spec)):
            return f"{file.path!r:.200}: {why}"
    if any(name is not None and name not in seen for name in (manifest.state, manifest.spec)):
        return "names a state file or spec that it does not list"
    if sum(file.bytes or 0 for file in manifest.files) > MAX_BYTES:
        return f"says to hold more than the {MAX_BYTES:,} bytes a night may have"
    return ""


def _problem_of_file(file: BundleFile, *, named: tuple[str | None, ...]) -> str:
    if (file.bytes is None) != (file.sha256 is None):
        return "has a length without a hash, or a hash without a length"
    if file.bytes is not None and not 0 <= file.bytes <= MAX_FILE_BYTES:
        return f"says to have {file.bytes:,} bytes; {MAX_FILE_BYTES:,} are allowed"
    if not 0 <= file.changed_ns < 2**63:
        return "has no time"
    if not is_place(file.path):
        return "is no place in a night"
    if file.path in named:
        fits = file.kind in (Kind.STATE, Kind.SPEC) and _NAMED.fullmatch(file.path) is not None
    else:
        fits = file.kind == kind_of(file.path)
    return "" if fits else f"is no {file.kind!r:.40} of a night"


def is_place(path: str) -> bool:
    """Whether `path` is a plain relative name, below a folder, that leads nowhere else on any machine."""
    parts = path.split("/")
    return (
        len(parts) > 1
        and len(path.encode(errors="replace")) <= 1024
        and not any(part in ("", ".", "..") or part.startswith(".") for part in parts)
        and "\\" not in path
        and ":" not in parts[0]
        and path.isprintable()
    )
