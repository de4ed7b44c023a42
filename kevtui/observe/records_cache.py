"""The last good value of every record, and what cannot be believed at present."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kev.errors import DamagedFile, KevError, NotFound, UnreadFile
from kevtui.observe.derive import coarse
from kevtui.observe.lister import LEADS_NOWHERE, Signature
from kevtui.observe.snapshot import Finding

RETRY_S = 10.0
"""A file that the system did not let be read is tried again this often: its signature need not move for that."""

Read = Callable[[Path], Any]


@dataclass(slots=True)
class _Entry:
    signature: Signature | None = None
    value: Any = None
    good_at: float | None = None
    damage: str | None = None
    retry_at: float | None = None


class RecordsCache:
    """Reads each file again only when its signature moved, and goes on giving the last value that could be read.

    A file that is absent has no value; one that is damaged keeps its last good one and becomes a finding.
    """

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    def get(self, path: str, signature: Signature | None, read: Read, *, now: float) -> Any:
        """The value of `path` under `read`, or None. `now` is monotonic; `signature` None means no such file."""
        if signature is None:
            self.forget(path)
            return None
        entry = self._entries.setdefault(path, _Entry())
        if entry.signature != signature or (entry.retry_at is not None and now >= entry.retry_at):
            entry.signature = signature
            self._load(path, entry, read, now)
        return entry.value

    def is_current(self, path: str, signature: Signature) -> bool:
        """Whether `get` has read the file that this is the signature of."""
        entry = self._entries.get(path)
        return entry is not None and entry.signature == signature

    def forget(self, path: str) -> None:
        self._entries.pop(path, None)

    def damaged(self, path: str) -> str | None:
        """Why `path` cannot be believed at present, or None."""
        entry = self._entries.get(path)
        return entry.damage if entry else None

    def findings(self, *, now: float) -> Iterator[tuple[str, Finding]]:
        """Every damaged file under its full path, with the age of the value still in use."""
        for path, entry in self._entries.items():
            if entry.damage is not None:
                age_s = None if entry.good_at is None else coarse(now - entry.good_at)
                yield path, Finding(path, entry.damage, age_s)

    def to_retry(self, *, now: float) -> set[str]:
        """The files that could not be read when they were last asked for, and may be by now."""
        return {path for path, entry in self._entries.items() if entry.retry_at is not None and now >= entry.retry_at}

    @staticmethod
    def _load(path: str, entry: _Entry, read: Read, now: float) -> None:
        entry.retry_at = None
        try:
            entry.value, entry.good_at, entry.damage = read(Path(path)), now, None
        except NotFound:
            if Path(path).is_symlink():
                entry.damage, entry.retry_at = LEADS_NOWHERE, now + RETRY_S
            else:
                # Gone between listing and reading; the next look will say.
                entry.signature = None
        except DamagedFile as error:
            entry.damage = reason_of(error)
            if isinstance(error, UnreadFile):
                entry.retry_at = now + RETRY_S
        except (KevError, RecursionError, ValueError, OverflowError) as error:
            entry.damage = str(error).partition("\n")[0] or type(error).__name__


def reason_of(error: DamagedFile) -> str:
    """The reason without the path, which a finding has beside it."""
    hint = f"; a complete copy is in {error.recoverable.name}" if error.recoverable else ""
    return f"{error.reason}{hint}"
