"""The one lister: which files a session has, and a signature of each that moves when the file does.

Only what the screen reads is listed, so that checkpoints and prediction dumps cost nothing. A folder's names are
listed again only when its own time stamp moved; the files in it are looked at on every sweep.
"""

import errno
import os
import re
import stat
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

Signature = tuple[int, int, int, int]
"""(mtime_ns, ctime_ns, size, inode). The change time also moves when only the access rights do.

The size is NO_FILE for what has the name of a file and is none: a directory, a pipe, a link that leads to no file.
"""

NO_FILE = -1

MAX_ENTRIES = 20_000
"""More names than this in one folder are not watched; the folder is reported."""

MAX_FOLDERS = 50_000

SETTLED_EVERY = 8
"""A folder of a trial that has ended is looked at on every eighth sweep."""

_TRUST_NS = 3_000_000_000
"""A folder's stamp vouches for its names only once it is this old: stamps are as coarse as 2 s on some volumes."""

RELIST_EVERY = 16

TRIAL_DIRECTORY = re.compile(r"\d{2,}-.+")
_STEP_DIRECTORY = re.compile(r"step-\d{1,12}")
_TRIAL_FILES = frozenset({"train.log", "metrics.jsonl", "result.json", "failed.json"})
_TOP_SUFFIXES = (".json", ".jsonl", ".log")
_ENDED = frozenset({"result.json", "failed.json"})

LEADS_NOWHERE = "a link to nothing: what it leads to is removed, or its volume is not mounted"

GONE = "is gone, removed or unmounted; shown as it was last seen"
CUT_OFF = "lost its connection, mount it again; shown as it was last seen"
_CUT_OFF = frozenset((errno.ENOTCONN, errno.ESTALE, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ETIMEDOUT))
"""What a volume whose other end is away says of everything on it."""

Rule = Callable[[tuple[str, ...], str], bool]
Listing = tuple[dict[str, Signature], tuple[str, ...]]
"""The wanted files of a folder, and the folders in it that are entered."""


@dataclass(slots=True)
class Folder:
    """What is known of one folder; `files` are the wanted ones only."""

    parts: tuple[str, ...]
    files: dict[str, Signature] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    stamp_ns: int = -1
    trusted: bool = False


class Lister:
    """Lists the wanted files under some trees, and says what changed since it was last asked.

    `trees` maps the top folder of each tree to its two rules: which files are wanted, which folders entered.
    Keys are paths as text: one sweep touches thousands, and Path objects would cost more than the system calls.
    """

    def __init__(self, trees: dict[Path, tuple[Rule, Rule]]) -> None:
        self._trees = {str(top): rules for top, rules in trees.items()}
        self.folders: dict[str, Folder] = {}
        self.unreadable: dict[str, str] = {}
        """Folder -> why it cannot be listed. What was known of it before stays known."""
        self._changed: set[str] = set()
        self._moves = 0
        self._sweeps = 0

    def sweep(self) -> bool:
        """Look at everything; true if anything changed."""
        self._sweeps += 1
        before = self._moves
        known_unreadable = dict(self.unreadable)
        for top in self._trees:
            self._visit(top, top, (), relist=self._sweeps % RELIST_EVERY == 0)
        return self._moves != before or known_unreadable != self.unreadable

    def look(self, paths: Iterable[str]) -> bool:
        """Look only at the folders that hold `paths`; true if anything changed."""
        before = self._moves
        for folder in {folder for path in paths for folder in (path, os.path.dirname(path))}:  # noqa: PTH120
            if (known := self.folders.get(folder)) is not None:
                self._visit(self._top_of(folder), folder, known.parts, relist=True, deep=False)
        return self._moves != before

    def take_changed(self) -> set[str]:
        """The folders in which a wanted file appeared, moved or went since this was last called."""
        changed, self._changed = self._changed, set()
        return changed

    def files(self, folder: str) -> dict[str, Signature]:
        known = self.folders.get(folder)
        return known.files if known else {}

    def children(self, folder: str) -> tuple[str, ...]:
        known = self.folders.get(folder)
        return known.folders if known else ()

    def _mark(self, folder: str) -> None:
        self._changed.add(folder)
        self._moves += 1

    def _top_of(self, folder: str) -> str:
        return max((top for top in self._trees if folder == top or folder.startswith(top + "/")), key=len)

    def _visit(self, top: str, path: str, parts: tuple[str, ...], *, relist: bool, deep: bool = True) -> None:
        if deep and self._is_settled(path, self._sweeps):
            return
        try:
            known = self._look_at(top, path, parts, relist=relist)
        except FileNotFoundError:
            if path != top and os.path.islink(path):  # noqa: PTH114
                self._mark_unreadable(path, parts, LEADS_NOWHERE)
                return
            # A whole tree does not go in a session's life, but the volume that it lies on may.
            if path != top or not self._holds_files(top):
                self._forget(path)
                return
            self._mark_unreadable(path, parts, GONE)
            return
        except OSError as error:
            self._mark_unreadable(path, parts, _reason(error))
            return
        if self.unreadable.pop(path, None) is not None:
            self._mark(path)
        for name in known.folders:
            child = f"{path}/{name}"
            if deep or child not in self.folders:
                self._visit(top, child, (*parts, name), relist=relist)

    def _is_settled(self, path: str, sweep: int) -> bool:
        """Whether a folder need not be looked at in the sweep of that number."""
        known = self.folders.get(path)
        return known is not None and bool(sweep % SETTLED_EVERY and known.files.keys() & _ENDED)

    def _keeps_names(self, path: str, stamp_ns: int, relist: bool) -> bool:
        """Whether a folder with that stamp need not be listed again."""
        known = self.folders.get(path)
        return known is not None and known.trusted and known.stamp_ns == stamp_ns and not relist

    def _stat(self, path: str) -> os.stat_result:
        return os.stat(path)  # noqa: PTH116

    def _look_at(self, top: str, path: str, parts: tuple[str, ...], *, relist: bool) -> Folder:
        known = self.folders.get(path)
        stamp_ns = self._stat(path).st_mtime_ns
        if known and self._keeps_names(path, stamp_ns, relist):
            files = {}
            for name in known.files:
                try:
                    files[name] = sign(f"{path}/{name}", partial(self._stat, f"{path}/{name}"))
                except FileNotFoundError:
                    known.trusted = False
        else:
            files, folders = self._list(top, path, parts)
            if known is None:
                known = self.folders[path] = Folder(parts)
                self._mark(path)
            for gone in set(known.folders) - set(folders):
                self._forget(f"{path}/{gone}")
            if known.folders != folders:
                self._mark(path)
            known.folders, known.stamp_ns = folders, stamp_ns
            known.trusted = time.time_ns() - stamp_ns - _TRUST_NS >= 0
        if files != known.files:
            known.files = files
            self._mark(path)
        return known

    def _list(self, top: str, path: str, parts: tuple[str, ...]) -> Listing:
        want_file, want_folder = self._trees[top]
        files: dict[str, Signature] = {}
        folders: list[str] = []
        with os.scandir(path) as entries:
            for count, entry in enumerate(entries):
                if count >= MAX_ENTRIES or len(self.folders) >= MAX_FOLDERS:
                    self.unreadable[path] = f"holds more than {MAX_ENTRIES:,} names; the rest is not watched"
                    break
                name = entry.name
                wanted = want_file(parts, name)
                if want_folder(parts, name) and _is_folder(entry, or_broken=not wanted):
                    folders.append(name)
                if wanted:
                    try:
                        files[name] = sign(entry.path, entry.stat)
                    except FileNotFoundError:
                        continue
        return dict(sorted(files.items())), tuple(sorted(folders))

    def _holds_files(self, top: str) -> bool:
        return any(known.files for path, known in self.folders.items() if path == top or path.startswith(top + "/"))

    def _mark_unreadable(self, path: str, parts: tuple[str, ...], reason: str) -> None:
        """Name it, keep what was known of it, and try again on every sweep: access may come back at any time."""
        self.unreadable[path] = reason
        self.folders.setdefault(path, Folder(parts)).trusted = False

    def _forget(self, path: str) -> None:
        inside = [known for known in self.folders if known == path or known.startswith(path + "/")]
        for known in inside:
            del self.folders[known]
            self.unreadable.pop(known, None)
            self._mark(known)


def want_run_file(parts: tuple[str, ...], name: str) -> bool:
    """Whether a file under runs/ is read: `parts` are the folders below runs/ that lead to it."""
    if name.startswith("."):
        return False
    match parts:
        case ():
            return name.endswith(_TOP_SUFFIXES)
        case (_, "checkpoint", "resume") | (_, _, "checkpoint", "resume"):
            return name == "latest.json"
        case (_, _, "checkpoint"):
            return False
        case (_, _, "snapshots", _, "checkpoint"):
            return name == "snapshot.json"
        case ("locked", _):
            return name == "summary.json"
        case (_, _, "transfer" | "development" | "decision"):
            return name == "rows.json"
        case (_, trial) if TRIAL_DIRECTORY.fullmatch(trial):
            return name in _TRIAL_FILES
        case (folder,):
            if folder.endswith(("-readout", "-verdict")):
                return name.endswith(".json")
            return name in ("rows.json", "usage.json", "failure.json")
    return False


def want_run_folder(parts: tuple[str, ...], name: str) -> bool:
    """Whether a folder under runs/ is entered."""
    if name.startswith("."):
        return False
    match parts:
        case ():
            return True
        case ("locked",) | ("locked", _):
            return len(parts) == 1 or name in ("decision", "transfer")
        case (_,):
            return TRIAL_DIRECTORY.fullmatch(name) is not None
        case (_, _):
            return name in ("checkpoint", "snapshots", "transfer", "development")
        case (_, _, "checkpoint"):
            return name == "resume"
        case (_, _, "snapshots"):
            return _STEP_DIRECTORY.fullmatch(name) is not None
        case (_, _, "snapshots", _):
            return name == "checkpoint"
    return False


def want_lease_file(parts: tuple[str, ...], name: str) -> bool:
    return len(parts) == 2 and name == "attempt.json"


def want_lease_folder(parts: tuple[str, ...], name: str) -> bool:
    return len(parts) < 2 and not name.startswith(".")


def only(*names: str) -> Rule:
    """A rule that wants these names in the top folder itself."""
    return lambda parts, name: not parts and name in names


def nowhere(parts: tuple[str, ...], name: str) -> bool:  # noqa: ARG001
    return False


def _is_folder(entry: os.DirEntry[str], *, or_broken: bool) -> bool:
    """Whether it is entered; with `or_broken` a link that leads to nothing is as well, and named for what it is."""
    try:
        if entry.is_dir():
            return True
        if not or_broken or not entry.is_symlink():
            return False
        entry.stat()
    except OSError:
        return or_broken
    return False


def sign(path: str, look: Callable[[], os.stat_result]) -> Signature:
    """The signature of a file. Raises FileNotFoundError if nothing has that name, or OSError for its whole folder."""
    try:
        status = look()
    except OSError:
        # One link that cannot be followed says nothing of the files beside it.
        status = os.lstat(path)
    size = status.st_size if stat.S_ISREG(status.st_mode) else NO_FILE
    return (status.st_mtime_ns, status.st_ctime_ns, size, status.st_ino)


def _reason(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "may not be read"
    if error.errno == errno.ELOOP:
        return "a loop of symbolic links"
    if error.errno in _CUT_OFF:
        return CUT_OFF
    return f"cannot be listed ({error.strerror or type(error).__name__})"
