"""A bundle as bytes: a zip file that holds a manifest and plain texts. The same night gives the same bytes."""

import io
import zipfile
from collections import Counter
from dataclasses import dataclass
from stat import S_IFREG

from kev import files
from kev.errors import Refused
from kevtui.record.manifest import (
    FORMAT,
    MANIFEST,
    MAX_BYTES,
    MAX_FILE_BYTES,
    VERSION,
    BundleFile,
    Manifest,
    hash_of,
    is_place,
    problem_of,
)
from kevtui.record.normal import PRESENT_ONLY, learn, normal
from kevtui.record.redaction import Identity, Redactor
from kevtui.replay.night import HeldFile, Night

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The first moment a zip file can name: the bytes must not depend on when they were made."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A night that can be given away."""

    manifest: Manifest
    data: bytes


def pack(night: Night, identity: Identity) -> Bundle:
    """`night` as a bundle, without anything of `identity`. Raises Refused where it is too large to be opened again."""
    redactor = Redactor(identity)
    held = [each for each in night.files if is_place(each.path)]
    for each in held:
        redactor.learn(each.path)
        if each.data is not None and each.kind not in PRESENT_ONLY:
            learn(each.kind, each.data, redactor)
    contents: dict[str, bytes | None] = {}
    listed = []
    paths: dict[str, str] = {}
    for each in held:
        path = paths[each.path] = redactor.text(each.path)
        if path in contents:
            raise Refused(f"{each.path}: would have the name of another file once names of people are taken out of it")
        data = contents[path] = _content(each, redactor)
        size, digest = (None, None) if data is None else (len(data), hash_of(data))
        listed.append(BundleFile(path=path, kind=each.kind, changed_ns=each.stamp_ns, bytes=size, sha256=digest))
    title, session = redactor.text(night.target.title), night.target.session
    manifest = Manifest(
        format=FORMAT, version=VERSION, title=title, session=None if session is None else redactor.text(session),
        round=night.target.round, state=paths.get(night.state or ""), spec=paths.get(night.spec or ""),
        files=sorted(listed, key=lambda file: file.path), redacted=dict(sorted((+redactor.counts).items())),
        left_out=dict(sorted(_left_out(night).items())),
    )  # fmt: skip
    if why := problem_of(manifest):
        raise Refused(f"{night.target.title}: cannot be recorded: it {why}")
    return Bundle(manifest, _zipped(manifest, contents))


def _left_out(night: Night) -> Counter[str]:
    """Files that were met and are not in the bundle, or only by name, by why."""
    return Counter(
        {
            reason: number
            for reason, number in (
                ("contents of predictions and measurements, of which only the place is told",
                 sum(each.data is None or each.kind in PRESENT_ONLY for each in night.files)),
                ("files and folders that could not be read", len(night.unread)),
                ("links that lead out of the session", len(night.links_out)),
                ("files whose names no other machine may have",
                 sum(not is_place(each.path) for each in night.files)),
            )
            if number
        }
    )  # fmt: skip


def _content(held: HeldFile, redactor: Redactor) -> bytes | None:
    if held.data is None:
        return None
    if held.kind in PRESENT_ONLY:
        return _as_present(held.data)
    return normal(held.kind, held.data, redactor)[:MAX_FILE_BYTES]


def _as_present(data: bytes) -> bytes:
    """No more than whether it is an object: that is all the screen asks."""
    try:
        return b"{}\n" if isinstance(files.parse_json(data), dict) else b"[]\n"
    except (ValueError, RecursionError):
        return b""


def _zipped(manifest: Manifest, contents: dict[str, bytes | None]) -> bytes:
    total = sum(len(data) for data in contents.values() if data is not None)
    if total > MAX_BYTES:
        raise Refused(f"{manifest.title}: {total:,} bytes, more than the {MAX_BYTES:,} a recorded night may have")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        _add(archive, MANIFEST, files.dump_json(manifest.to_json()))
        for path, data in sorted(contents.items()):
            if data is not None:
                _add(archive, path, data)
    return buffer.getvalue()


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.create_system, entry.external_attr, entry.compress_type = 3, (S_IFREG | 0o644) << 16, zipfile.ZIP_DEFLATED
    archive.writestr(entry, data)
