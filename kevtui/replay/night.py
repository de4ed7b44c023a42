"""Everything that is replayed, read once: the files of a target with their times."""

import re
from dataclasses import dataclass
from pathlib import Path

from kev import files
from kev.errors import KevError
from kevtui.observe.sources import MAX_SMALL_BYTES, Sources
from kevtui.observe.target import Target
from kevtui.replay.kinds import LEASES, LINES, LOGS, RUNS, SPECS, WITHOUT_CONTENT, Kind, kind_of

LOG_BYTES = 128 * 1024
"""Of a log without times only its end is shown, whole, once it is complete."""

_LINE_END = re.compile(rb"[\r\n]")


@dataclass(frozen=True, slots=True)
class HeldFile:
    """One file. `path` is relative to the night; `data` is None where its being there is all that counts."""

    path: str
    kind: Kind
    stamp_ns: int
    """When it last changed, by the file system."""
    data: bytes | None = None


@dataclass(frozen=True, slots=True)
class Night:
    """The files of `target`. `state` and `spec` are its two named files as paths of the night."""

    target: Target
    files: tuple[HeldFile, ...]
    state: str | None = None
    spec: str | None = None
    links_out: tuple[str, ...] = ()
    """Files that were left out, since only a link leads to them and they lie elsewhere."""
    unread: tuple[str, ...] = ()
    """Files and folders that could not be read."""

    @property
    def leases(self) -> Path:
        return self.target.root / LEASES


def load_night(target: Target, leases: Path, *, only_inside: bool = False) -> Night:
    """What `target` has on the disk at present, and nothing is written or locked. Never raises for bad files.

    `only_inside` leaves out what links name and what lies outside the session's own folders.
    """
    sources = Sources(target, leases)
    sources.lister.sweep()
    tops = {sources.leases: LEASES, sources.runs: RUNS, sources.specs: SPECS}
    named = {str(path): place for path, place in ((target.state, RUNS), (target.spec, SPECS)) if path is not None}
    held: dict[str, HeldFile] = {}
    places: dict[str, str] = {}
    links_out = []
    unread = [place for full in sources.lister.unreadable if (place := _place(f"{full}/", tops)) is not None]
    for folder, known in sources.lister.folders.items():
        for name, signature in known.files.items():
            full = f"{folder}/{name}"
            path = _place(full, tops) or (f"{named[full]}/{name}" if full in named else None)
            kind = _kind(full, path, target)
            if path is None or kind is None:
                continue
            top = next((top for top in tops if full.startswith(f"{top}/")), folder)
            if only_inside and not _is_inside(Path(full), Path(top)):
                links_out.append(path)
                continue
            places[full] = path
            try:
                data = _content(Path(full), kind)
            except KevError:
                # It may have gone meanwhile; an empty record is shown as damage, which it is to us.
                data = b""
                unread.append(path)
            held[path] = HeldFile(path, kind, signature[0], data)
    state, spec = (places.get(str(path)) if path else None for path in (target.state, target.spec))
    return Night(target, tuple(held[path] for path in sorted(held)), state, spec, tuple(links_out), tuple(unread))


def _is_inside(path: Path, top: Path) -> bool:
    try:
        return path.resolve(strict=True).is_relative_to(top.resolve(strict=True))
    except (OSError, RuntimeError):
        return False


def _kind(full: str, path: str | None, target: Target) -> Kind | None:
    if path is None:
        return None
    # A named file may have any name.
    if target.state is not None and full == str(target.state):
        return Kind.STATE
    if target.spec is not None and full == str(target.spec):
        return Kind.SPEC
    return kind_of(path)


def _place(full: str, tops: dict[str, str]) -> str | None:
    return next((place + full[len(top) :] for top, place in tops.items() if full.startswith(f"{top}/")), None)


def _content(path: Path, kind: Kind) -> bytes | None:
    """What the night is told from of a file; None where its place is enough. Raises KevError."""
    if kind in WITHOUT_CONTENT:
        return None
    if kind in LOGS:
        return _end_of(path, LOG_BYTES)
    if kind in LINES:
        return _end_of(path, MAX_SMALL_BYTES)
    return files.read_bytes(path, limit=MAX_SMALL_BYTES)


def _end_of(path: Path, limit: int) -> bytes:
    """The last lines of a file. What is left of one that is cut is not kept: half a token looks like none."""
    data = files.read_end(path, limit)
    if len(data) < limit:
        return data
    end = _LINE_END.search(data)
    return data[end.end() :] if end else b""
