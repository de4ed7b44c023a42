"""The records of a bench by path: read again when the file changed, the last good value kept while it is damaged."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from kevtui.observe.lister import Signature, sign
from kevtui.observe.records_cache import RecordsCache
from kevtui.observe.snapshot import Finding

Value = TypeVar("Value")


class FilesCache:
    """Looks at each file by name; `now` is monotonic seconds and set for each pass by `begin`."""

    def __init__(self) -> None:
        self._cache = RecordsCache()
        self._now = 0.0

    def begin(self, now: float) -> None:
        self._now = now

    def get(self, path: Path, read: Callable[[Path], Value]) -> Value | None:
        """What `read` makes of `path`, or made of it when it was last good. `read` may raise KevError or ValueError."""
        found: Value | None = self._cache.get(str(path), signature_of(path), read, now=self._now)
        return found

    def findings(self, top: Path) -> Iterator[Finding]:
        """Every damaged file, under its path from `top`."""
        for path, finding in self._cache.findings(now=self._now):
            place = Path(path)
            yield replace(finding, path=str(place.relative_to(top)) if place.is_relative_to(top) else path)


def signature_of(path: Path) -> Signature | None:
    """What moves whenever the file does; None where there is none."""
    try:
        return sign(str(path), path.stat)
    except (OSError, ValueError):  # a path that holds a NUL is no file here
        return None
