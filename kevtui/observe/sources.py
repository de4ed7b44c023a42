"""The files of one target by name: where each kind lies, its last good record, and how long it stood still."""

import re
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kev import files
from kev.errors import DamagedFile
from kev.records.base import Record, parse_record
from kevtui.observe import mounts
from kevtui.observe.far_lister import FarLister
from kevtui.observe.lister import (
    CUT_OFF,
    GONE,
    TRIAL_DIRECTORY,
    Lister,
    Rule,
    Signature,
    nowhere,
    only,
    want_lease_file,
    want_lease_folder,
    want_run_file,
    want_run_folder,
)
from kevtui.observe.log_tail import FIRST_READ, LogTail, Tailing
from kevtui.observe.records_cache import RecordsCache
from kevtui.observe.snapshot import Finding
from kevtui.observe.target import SPAWN_SUFFIX, Target, look_again

if TYPE_CHECKING:
    # A kind of record is loaded when the first file of that kind is met: a look at a session meets few of them.
    from kev.records.intent import ReadIntent
    from kev.records.lease import Lease
    from kev.records.read import ReadRecord
    from kev.records.resume import ResumePoint
    from kev.records.spawn import SpawnRecord
    from kev.records.spec import RoundSpec
    from kev.records.watch import WatchRecord
    from kev.records.watcher import WatcherRecord

WATCH_SUFFIX = ".watch.json"
WATCHER_SUFFIX = "-watcher.json"
MAX_SMALL_BYTES = 32 * 1024 * 1024
MAX_RANKS = 64
_SHARDS = re.compile(r"step-[0-9]{1,12}")

AnyRecord = TypeVar("AnyRecord", bound=Record)


class Load(Protocol):
    """Gives the JSON value of a file: `kev.files.read_json`, or what a file held at a past moment."""

    def __call__(self, path: Path, *, limit: int = ...) -> Any: ...


@dataclass(slots=True)
class _Still:
    signature: Signature
    since: float
    before_s: float


class Sources:
    """Lists, reads and remembers. `now_unix` and `monotonic` are set for each pass by `begin`."""

    def __init__(self, target: Target, leases: Path) -> None:
        self.target = target
        self.runs = str(target.root / "runs")
        self.specs = str(target.root / "experiments" / "rounds")
        self.leases = str(leases)
        trees: dict[Path, tuple[Rule, Rule]] = {
            Path(self.runs): (want_run_file, want_run_folder),
            Path(self.specs): (_want_spec, nowhere),
            leases: (want_lease_file, want_lease_folder),
        }
        for named in (target.spec, target.state):
            if named is not None and named.parent not in trees:
                trees[named.parent] = (only(named.name), nowhere)
        self.lister = self._make_lister(trees)
        self.cache = RecordsCache()
        self.now_unix = 0.0
        self.monotonic = 0.0
        self._still: dict[str, _Still] = {}
        self._no_rows: dict[str, str] = {}

    def _make_lister(self, trees: dict[Path, tuple[Rule, Rule]]) -> Lister:
        # Only what this asks about lies there in thousands.
        return FarLister(trees) if mounts.shared_kind(Path(self.runs)) else Lister(trees)

    def begin(self, *, now_unix: float, monotonic: float) -> None:
        self.now_unix, self.monotonic = now_unix, monotonic

    def stood_still(self, gap_s: float) -> None:
        """We were suspended for `gap_s`, in which no file can be said to have kept still."""
        for still in self._still.values():
            still.since += gap_s

    # ---- reading

    def signature(self, path: str) -> Signature | None:
        folder, _, name = path.rpartition("/")
        return self.lister.files(folder).get(name)

    def value(self, path: str, read: Any) -> Any:
        """What `read` makes of `path`, or made of it when it was last good; None where it never was."""
        return self.cache.get(path, self.signature(path), partial(read, load=self.load), now=self.monotonic)

    def take_changed(self) -> set[str]:
        """The folders in which a file moved since this was last called, or may be read by now."""
        retried = {path.rpartition("/")[0] for path in self.cache.to_retry(now=self.monotonic)}
        return self.lister.take_changed() | retried

    def read_ahead(self, studies: Sequence[str], changed: Set[str]) -> None:
        """Be told what is asked for next: files of `studies` and leases in the folders `changed`."""

    def look_again(self) -> Target:
        """The target, with the session that was opened for its round since it was named."""
        return look_again(self.target)

    def load(self, path: Path, *, limit: int = files.MAX_JSON_BYTES) -> Any:
        """The JSON value in `path`. Raises NotFound or DamagedFile."""
        return files.read_json(path, limit=limit)

    def tail(self, path: Path, *, carriage_returns: bool = True, first_read: int = FIRST_READ) -> Tailing:
        """What follows the lines of `path` from its end."""
        return LogTail(path, carriage_returns=carriage_returns, first_read=first_read)

    def age_s(self, path: str) -> float | None:
        """Seconds since `path` last changed: watched on the monotonic clock, by its time stamp before we came."""
        signature = self.signature(path)
        if signature is None:
            return None
        still = self._still.get(path)
        if still is None:
            before_s = max(0.0, self.now_unix - signature[0] / 1e9)
            still = self._still[path] = _Still(signature, self.monotonic, before_s)
        elif still.signature[:3] != signature[:3]:
            # The inode alone says nothing: a volume that is mounted again may have numbered its files anew.
            self._still[path] = still = _Still(signature, self.monotonic, 0.0)
        return max(0.0, self.monotonic - still.since) + still.before_s

    # ---- names

    def spawn(self, study: str) -> "SpawnRecord | None":
        found: SpawnRecord | None = self.value(f"{self.runs}/{study}{SPAWN_SUFFIX}", _read_spawn)
        return found

    def spawn_damaged(self, study: str) -> bool:
        """Whether the ledger of `study` is there and cannot be believed now; an older good one may be in use."""
        self.spawn(study)
        return self.cache.damaged(f"{self.runs}/{study}{SPAWN_SUFFIX}") is not None

    def watch(self, study: str) -> "WatchRecord | None":
        found: WatchRecord | None = self.value(self.watch_path(study), _read_watch)
        return found

    def read_record(self, directory: str) -> "ReadRecord | None":
        """The record of the read into a directory such as `runs/r41-a-hard`."""
        found: ReadRecord | None = self.value(f"{self.runs}/{directory.removeprefix('runs/')}.read.json", _read_read)
        return found

    def watcher(self) -> "tuple[str, WatcherRecord] | None":
        """(path, record) of the sign of life of the session's watcher."""
        path = f"{self.runs}/{self.target.session}{WATCHER_SUFFIX}"
        found: WatcherRecord | None = self.value(path, _read_watcher)
        return None if found is None else (path, found)

    def watch_path(self, study: str) -> str:
        return f"{self.runs}/{study}{WATCH_SUFFIX}"

    def ledgers(self) -> list[str]:
        """Names of the studies that have a ledger, damaged or not."""
        names = self.lister.files(self.runs)
        return [name.removesuffix(SPAWN_SUFFIX) for name in names if name.endswith(SPAWN_SUFFIX)]

    def studies_on_disk(self) -> list[str]:
        """Folders of runs/ that hold trial directories."""
        runs = self.runs
        return [name for name in self.lister.children(runs) if any(self.trial_directories(name))]

    def children(self, study: str) -> tuple[str, ...]:
        return self.lister.children(f"{self.runs}/{study}")

    def trial_directories(self, study: str) -> Iterator[tuple[str, str]]:
        """(label, directory) of every trial folder `<NN>-<label>` of a study."""
        folder = f"{self.runs}/{study}"
        for name in self.lister.children(folder):
            if TRIAL_DIRECTORY.fullmatch(name):
                yield name.partition("-")[2], f"{folder}/{name}"

    def spec(self, path: str) -> "RoundSpec | None":
        found: RoundSpec | None = self.value(path, _read_spec)
        return found

    def resume_point(self, directory: str) -> "ResumePoint | None":
        """The resume point of a trial; one whose shards are there in part is damage."""
        found: ResumePoint | None = self.value(f"{directory}/checkpoint/resume/latest.json", self._read_resume_point)
        return found

    def _read_resume_point(self, path: Path, load: Load) -> "ResumePoint":
        return _read_resume_point(path, load)

    def trial_lease(self, folder: str) -> "tuple[str, Lease | None]":
        """(`<study>/<label>`, lease) of a folder on the lease volume."""
        study, name = folder.removeprefix(f"{self.leases}/").split("/")
        label = name.partition("-")[2] if TRIAL_DIRECTORY.fullmatch(name) else name
        found: Lease | None = self.value(f"{folder}/attempt.json", _read_lease)
        return f"{study}/{label}", found

    def intents(self, round_number: int, arm: str) -> "Iterator[tuple[str, ReadIntent]]":
        """(name without suffix, intent) of each launch of an arm's reads, of every stage."""
        stem = f"r{round_number}-reads-{arm}"
        for name in self.lister.files(self.runs):
            if name == f"{stem}.json" or (name.startswith(f"{stem}-") and name.endswith(".json")):
                intent: ReadIntent | None = self.value(f"{self.runs}/{name}", _read_intent)
                if intent is not None:
                    yield name.removesuffix(".json"), intent

    def gateway_spent(self, wanted: Callable[[str], bool]) -> Decimal | None:
        """The sum of what hosted models cost in the reads of runs/ whose names are `wanted`; None without any."""
        costs: list[Decimal | None] = [
            self.value(f"{self.runs}/{name}/usage.json", _read_cost)
            for name in self.lister.children(self.runs)
            if wanted(name) and "usage.json" in self.lister.files(f"{self.runs}/{name}")
        ]
        known = [cost for cost in costs if cost is not None]
        return sum(known, Decimal(0)) if known else None

    def has_rows(self, directory: str) -> bool:
        """Whether a read has landed; `directory` is relative to the root, as in a spec.

        Rows are too many to be read for that, but an empty file holds none, and is named.
        """
        path = f"{self.target.root}/{directory}/rows.json"
        signature = self.signature(path)
        self._no_rows.pop(path, None)
        if signature is not None and signature[2] <= 0:
            self._no_rows[path] = "empty" if signature[2] == 0 else "not a regular file, or a link to none"
        return signature is not None and signature[2] > 0

    def findings(self) -> Iterator[Finding]:
        """Everything that cannot be believed or seen, under paths relative to the root."""
        for path, finding in [*self.cache.findings(now=self.monotonic)]:
            if self.signature(path) is None:
                self.cache.forget(path)  # removed, and nobody asks for it any more
                continue
            yield Finding(self.shown(path), finding.reason, finding.last_good_age_s)
        for path, reason in self._no_rows.items():
            yield Finding(self.shown(path), reason)
        for path, reason in _outermost(self.lister.unreadable, self.runs).items():
            yield Finding(self.shown(path), reason)

    def shown(self, path: str) -> str:
        return path.removeprefix(f"{self.target.root}/")


def read_small(path: Path, load: Load) -> Any:
    """The JSON object in `path`. Raises NotFound or DamagedFile."""
    value = load(path, limit=MAX_SMALL_BYTES)
    if not isinstance(value, dict):
        raise DamagedFile(path, "holds no object")
    return value


def _read_record(path: Path, load: Load, shape: type[AnyRecord]) -> AnyRecord:
    return parse_record(path, load(path, limit=MAX_SMALL_BYTES), shape)


def _read_spawn(path: Path, load: Load) -> "SpawnRecord":
    from kev.records.spawn import SpawnRecord

    return _read_record(path, load, SpawnRecord)


def _read_watch(path: Path, load: Load) -> "WatchRecord":
    from kev.records.watch import WatchRecord

    return _read_record(path, load, WatchRecord)


def _read_read(path: Path, load: Load) -> "ReadRecord":
    from kev.records.read import ReadRecord

    return _read_record(path, load, ReadRecord)


def _read_watcher(path: Path, load: Load) -> "WatcherRecord":
    from kev.records.watcher import WatcherRecord

    return _read_record(path, load, WatcherRecord)


def _read_spec(path: Path, load: Load) -> "RoundSpec":
    from kev.records.spec import RoundSpec

    return _read_record(path, load, RoundSpec)


def _read_lease(path: Path, load: Load) -> "Lease":
    from kev.records.lease import Lease

    return _read_record(path, load, Lease)


def _read_cost(path: Path, load: Load) -> Decimal:
    from kev.records.usage import Usage

    return _read_record(path, load, Usage).estimated_usd


def _read_intent(path: Path, load: Load) -> "ReadIntent":
    from kev.records.intent import ReadIntent

    return _read_record(path, load, ReadIntent)


def _read_resume_point(path: Path, load: Load) -> "ResumePoint":
    from kev.records.resume import ResumePoint

    point = _read_record(path, load, ResumePoint)
    shards = path.parent / point.dir
    # Shards are not pulled, so a point without any is one that was only copied here.
    if not _SHARDS.fullmatch(point.dir) or not shards.is_dir():
        return point
    sizes = [_size(shards / f"rank{rank}.pt") for rank in range(min(point.world or 1, MAX_RANKS))]
    bad = [f"rank{rank}.pt is {'empty' if size == 0 else 'absent'}" for rank, size in enumerate(sizes) if not size]
    if bad:
        raise DamagedFile(path, f"resume point {point.step} is incomplete: {', '.join(bad[:4])}")
    return point


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None
    except OSError:
        return -1


def _outermost(unreadable: dict[str, str], runs: str) -> dict[str, str]:
    """`unreadable` without what lies below another of them, nor what the volume of `runs` took with it."""
    lost = unreadable.get(runs)
    taken = {path for path, reason in unreadable.items() if reason == lost and lost in (GONE, CUT_OFF) and path != runs}
    return {
        path: reason
        for path, reason in unreadable.items()
        if path not in taken and not any(path.startswith(f"{outer}/") for outer in unreadable)
    }


def _want_spec(parts: tuple[str, ...], name: str) -> bool:
    return not parts and name.endswith(".json") and not name.startswith(".")
