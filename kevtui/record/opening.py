"""Opening a bundle that a stranger may have made: in memory, within bounds, and nothing in it is taken on trust."""

import io
import struct
import zipfile
import zlib
from pathlib import Path
from stat import S_IFMT, S_IFREG

from kev import files
from kev.errors import DamagedFile
from kev.records.base import parse_record
from kevtui.observe.target import Target
from kevtui.record.manifest import (
    MANIFEST,
    MAX_ARCHIVE_BYTES,
    MAX_FILES,
    MAX_MANIFEST_BYTES,
    BundleFile,
    Manifest,
    hash_of,
    problem_of,
)
from kevtui.record.target import SIGNATURE
from kevtui.replay.kinds import Kind
from kevtui.replay.night import HeldFile, Night

_END = struct.Struct("<4sHHHHIIH")
_END_SIGNATURE, _LOCATOR_SIGNATURE, _LOCATOR_BYTES = b"PK\x05\x06", b"PK\x06\x07", 20
_MAX_DIRECTORY_BYTES = 16 * 1024 * 1024
"""50,000 entries with names of 200 bytes need 12 MB; zipfile holds about ten times that in memory."""

_BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, RuntimeError,
           NotImplementedError, OverflowError, KeyError, IndexError)  # fmt: skip
"""What zipfile raises for one archive or another that somebody has bent."""


def open_bundle(path: Path) -> Night:
    """The night in the bundle `path`. Raises NotFound, or DamagedFile with the reason."""
    data = files.read_bytes(path, limit=MAX_ARCHIVE_BYTES)
    if why := _problem_of_end(data):
        raise DamagedFile(path, why)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = _entries(path, archive)
            manifest = _read_manifest(path, archive, entries)
            held = tuple(_held(path, archive, entries, file) for file in manifest.files)
    except _BROKEN as error:
        raise DamagedFile(path, f"is no whole bundle ({str(error) or type(error).__name__})") from None
    target = Target(
        root=path, title=manifest.title, spec=_below(path, manifest.spec), state=_below(path, manifest.state),
        session=manifest.session, round=manifest.round,
    )  # fmt: skip
    return Night(target, held, manifest.state, manifest.spec)


def _below(path: Path, name: str | None) -> Path | None:
    return None if name is None else path / name


def _problem_of_end(data: bytes) -> str:
    """Why the archive's end is none that we write: its directory is bounded before anything reads it."""
    if not data.startswith(SIGNATURE) or len(data) < _END.size:
        return "is no bundle"
    signature, disk, first, here, entries, size, offset, comment = _END.unpack(data[-_END.size :])
    if signature != _END_SIGNATURE or comment or disk or first or here != entries:
        return "is cut short, or has something behind its end"
    locator = data[-_END.size - _LOCATOR_BYTES : -_END.size]
    if locator.startswith(_LOCATOR_SIGNATURE) or offset + size != len(data) - _END.size:
        return "has no directory where it says"
    if entries > MAX_FILES + 1 or size > _MAX_DIRECTORY_BYTES:
        return f"has {entries:,} entries, more than the {MAX_FILES:,} a night may have"
    return ""


def _entries(path: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    found: dict[str, zipfile.ZipInfo] = {}
    for entry in archive.infolist():
        name = entry.orig_filename
        mode = entry.external_attr >> 16
        if name in found or entry.filename != name:
            raise DamagedFile(path, f"has {name!r:.200} twice, or under a name of two meanings")
        if entry.is_dir() or S_IFMT(mode) not in (0, S_IFREG):
            raise DamagedFile(path, f"{name!r:.200} is a link, a folder or a device; only files may be in a bundle")
        if entry.flag_bits & 0x1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise DamagedFile(path, f"{name!r:.200} is encrypted, or packed in a way that no bundle is")
        found[name] = entry
    return found


def _read_manifest(path: Path, archive: zipfile.ZipFile, entries: dict[str, zipfile.ZipInfo]) -> Manifest:
    if MANIFEST not in entries:
        raise DamagedFile(path, f"has no {MANIFEST}: it is no recorded night")
    inside = path / MANIFEST
    try:
        value = files.parse_json(_unpacked(path, archive, entries[MANIFEST], MAX_MANIFEST_BYTES))
    except (ValueError, RecursionError) as error:
        raise DamagedFile(inside, str(error)) from None
    manifest = parse_record(inside, value, Manifest)
    if why := problem_of(manifest):
        raise DamagedFile(inside, why)
    listed = {file.path for file in manifest.files if file.bytes is not None} | {MANIFEST}
    if listed != entries.keys():
        name = min(listed ^ entries.keys())
        raise DamagedFile(path, f"{name!r:.200} is in it or in its manifest, and not in both")
    return manifest


def _held(
    path: Path, archive: zipfile.ZipFile, entries: dict[str, zipfile.ZipInfo], file: BundleFile
) -> HeldFile:  # fmt: skip
    data = None
    if file.bytes is not None:
        data = _unpacked(path, archive, entries[file.path], file.bytes)
        if len(data) != file.bytes or hash_of(data) != file.sha256:
            raise DamagedFile(path, f"{file.path!r:.200} is not what the manifest's hash says; the copy is damaged")
    return HeldFile(file.path, Kind(file.kind), file.changed_ns, data)


def _unpacked(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo, limit: int) -> bytes:
    """No more than `limit` bytes are ever unpacked, whatever the entry says of its size."""
    with archive.open(entry) as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise DamagedFile(path, f"{entry.orig_filename!r:.200} unpacks to more than the {limit:,} bytes it may have")
    return data
