"""What is out already: the most that everything unsettled can still cost, whoever started it.

Three places know of work, and each unit is counted once, where it is known best: the ledger, the records of studies
and reads that it did not start (by `modal run`, say), and what the session's state lists besides. One that cannot be
read makes nothing launchable: it may stand for running work.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from kev import files
from kev.budget import MAX_READING_AGE, Account, Committed, dollars
from kev.errors import DamagedFile, NotFound
from kev.ledger.units import Units
from kev.meter import Meter
from kev.records.base import read_record
from kev.records.read import ReadRecord
from kev.records.spawn import SpawnRecord
from kev.records.watch import WatchRecord
from kev.session import Session
from kev.text import visible

SPAWN_SUFFIX = ".spawn.json"
WATCH_SUFFIX = ".watch.json"
READ_SUFFIX = ".read.json"
ENDS_OF_READ = frozenset({"report.json", "failure.json", "summary.json"})

UNSEEN = "ended, perhaps not metered yet"
"""The row of attempts that ended so shortly before the reading that it may lack them."""

LONGEST_QUEUE_S = 6 * 3600.0
"""A read may have waited this long for a machine, beyond its own timeout."""

GIVEN_UP_UNREACHABLE = 60
"""An earlier watcher called a trial failed after so many network failures, though it may still run."""


@dataclass(frozen=True, slots=True)
class Part:
    """One row of the sum. None is work whose bound nobody knows."""

    name: str
    usd: Decimal | None
    is_work: bool = False
    """Whether the row is one work that the ledger did not start, and not a sum over the ledger."""

    def __str__(self) -> str:
        return f"{self.name} {'unknown' if self.usd is None else dollars(self.usd)}"


@dataclass(frozen=True, slots=True)
class Commitments:
    """Everything that is out, in rows."""

    parts: tuple[Part, ...]

    @property
    def committed(self) -> Committed:
        known = [part.usd for part in self.parts if part.usd is not None]
        return Committed(sum(known, Decimal(0)), len(known) == len(self.parts))


def commitments(
    runs: Path, session: Session, units: Units, metered_at: float, *, own: Collection[str] = ()
) -> Commitments:
    """What is out besides the rest of the units `own`, given a meter that was read at `metered_at` (Unix seconds).

    Raises DamagedFile for a record of a spawn or a read that cannot be believed.
    """
    running = sum((unit.rest() for unit in units.open() if unit.id not in own), Decimal(0))
    unseen = sum((unit.unseen(metered_at) for unit in units.by_id.values()), Decimal(0))
    parts = [Part("running or reserved", running), Part(UNSEEN, unseen)]
    listed = {unit.order.name for unit in units.by_id.values()}
    for record in spawn_records(runs):
        if record.name not in listed:
            listed.add(record.name)
            if not is_settled(runs, record):
                parts.append(Part(record.name, _bound(record.bound_usd), is_work=True))
    parts += [Part(read.name, _bound(read.bound_usd), is_work=True) for read in read_records(runs)
              if not {read.name, f"locked/{read.name}"} & listed and not is_read(runs, read, metered_at)]  # fmt: skip
    parts += [Part(work.name, work.bound, is_work=True) for work in (*session.studies, *session.reads)
              if not work.settled and work.name not in listed]  # fmt: skip
    return Commitments(tuple(parts))


def spawn_records(runs: Path) -> Iterator[SpawnRecord]:
    """Every spawn record. Raises DamagedFile for one that is empty, torn, of another shape or of another study."""
    for name in files.list_names(runs):
        if name.endswith(SPAWN_SUFFIX) and not name.startswith("."):
            record = read_record(runs / name, SpawnRecord)
            _check_name(runs / name, record.name, SPAWN_SUFFIX)
            yield record


def read_records(runs: Path) -> Iterator[ReadRecord]:
    """Every record of a read. Raises DamagedFile."""
    for name in files.list_names(runs):
        if name.endswith(READ_SUFFIX) and not name.startswith("."):
            record = read_record(runs / name, ReadRecord)
            _check_name(runs / name, record.name.removeprefix("locked/"), READ_SUFFIX)
            yield record


def _check_name(path: Path, name: str, suffix: str) -> None:
    # Each work is counted once by its name: one under the name of another would not be counted at all.
    place = f"{name}{suffix}"
    if place != path.name:
        reason = f"is the record of {visible(name):.100}; rename it {visible(place):.100}, or move it out of runs/"
        raise DamagedFile(path, reason)


def _bound(recorded: Decimal | None) -> Decimal | None:
    # Nothing runs for nothing: whoever wrote zero did not know the price.
    return recorded or None


def is_on_record(runs: Path, name: str) -> bool:
    """Whether a study or a read of that name has a record here, which the ledger need not know of.

    Raises DamagedFile for one that cannot be believed: it is no proof that nothing was ever launched.
    """
    here = set(files.list_names(runs))
    if f"{name}{SPAWN_SUFFIX}" in here:
        read_record(runs / f"{name}{SPAWN_SUFFIX}", SpawnRecord)
        return True
    if f"{name}{READ_SUFFIX}" in here:
        read_record(runs / f"{name}{READ_SUFFIX}", ReadRecord)
        return True
    return False


def is_read(runs: Path, record: ReadRecord, now: float) -> bool:
    """Whether a read that the ledger did not make has ended: what it wrote is here, or it cannot be running."""
    here = files.list_names(runs / record.name) + files.list_names(runs / "locked" / record.name)
    return bool(ENDS_OF_READ & set(here)) or now > record.at + record.timeout + LONGEST_QUEUE_S


def is_settled(runs: Path, record: SpawnRecord) -> bool:
    """Whether a watcher saw every trial of a study end. Raises DamagedFile."""
    try:
        watched = read_record(runs / f"{record.name}{WATCH_SUFFIX}", WatchRecord).calls
    except NotFound:
        return False
    return all(
        label in watched
        and watched[label].status in ("done", "failed", "cancelled")
        and watched[label].transient < GIVEN_UP_UNREACHABLE
        # The end of an earlier call says nothing of the one that was started after it.
        and watched[label].call in (None, call)
        for label, call in record.calls.items()
    )


@dataclass(frozen=True, slots=True)
class Sum:
    """The figures that a launch was held against."""

    what: str
    bound: Decimal
    account: Account
    meter: Meter
    parts: tuple[Part, ...]

    def lines(self) -> list[str]:
        """The sum, a row a line, as it is printed before anything is spawned."""
        account, meter = self.account, self.meter
        word = "simulated " if meter.session.simulated else ""
        spent = "unknown" if account.spent is None else dollars(account.spent)
        headroom = account.headroom
        return [
            f"{self.what}: {word}bound {dollars(self.bound)}",
            f"  authorization {dollars(account.authorization)} - reserve {dollars(account.reserve)}",
            f"  spent {spent} ({meter.gap or f'metered ${meter.reading.metered:f}'}, read {meter.age_s:,.0f} s ago)",
            *(f"  {part}" for part in self.parts),
            f"  headroom {'unknown' if headroom is None else dollars(headroom)}",
            *([f"  {meter.note}"] if meter.note else []),
        ]

    def check(self) -> None:
        """Raises Refused if the spend rule forbids it."""
        out = ", ".join(str(part) for part in self.parts if part.usd != 0)
        self.account.check_launch(
            self.what, self.bound, reading_age_s=self.meter.age_s, limit_s=MAX_READING_AGE, out=out
        )
