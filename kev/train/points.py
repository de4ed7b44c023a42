"""Which resume point or snapshot is the newest: found by looking inside and by number, never by name order.

Nothing here needs torch, so that a dashboard can ask as well as a trainer.
"""

import re
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kev.errors import DamagedFile, NotFound, Refused
from kev.records.base import read_record
from kev.records.resume import ResumePoint
from kev.records.snapshot import TrainingSnapshot
from kev.text import visible

LATEST = "latest.json"
SNAPSHOT = "snapshot.json"

_STEP = re.compile(r"step-([0-9]{1,12})")


def step_name(step: int) -> str:
    """The name of the directory of `step`."""
    return f"step-{step:07d}"


def rank_name(rank: int) -> str:
    """The name of the file of `rank` in a resume point."""
    return f"rank{rank}.pt"


@dataclass(frozen=True, slots=True)
class StepDirectory:
    """A directory of one step, and why it cannot be used, if it cannot."""

    path: Path
    step: int
    faults: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        return not self.faults

    def __str__(self) -> str:
        return f"step {self.step} is incomplete ({', '.join(self.faults)})" if self.faults else f"step {self.step}"


@dataclass(frozen=True, slots=True)
class Listing:
    """What a directory of steps holds. `twins` are names that stand for one step."""

    directories: tuple[StepDirectory, ...] = ()
    """By step, ascending; of twins the one whose name is ours, if it is complete, comes last."""
    foreign: tuple[str, ...] = ()
    """Names that are not ours: copies, conversions, what someone put there by hand."""
    twins: tuple[tuple[str, ...], ...] = ()

    @property
    def complete(self) -> tuple[StepDirectory, ...]:
        """One complete directory for each step that has any, ascending."""
        by_step = {directory.step: directory for directory in self.directories if directory.complete}
        return tuple(by_step[step] for step in sorted(by_step))

    @property
    def incomplete(self) -> tuple[StepDirectory, ...]:
        return tuple(directory for directory in self.directories if not directory.complete)


@dataclass(frozen=True, slots=True)
class Continuation:
    """Where a run may go on: candidates, best first, and what must be said about the choice."""

    candidates: tuple[StepDirectory, ...]
    notes: tuple[str, ...] = ()
    newest_step: int = 0
    """The step that the newest point was meant for, complete or not."""

    def lost_before(self, directory: StepDirectory) -> str | None:
        """What going on from `directory` costs, in words; None where nothing is lost."""
        lost = self.newest_step - directory.step
        return f"going back to step {directory.step}: {lost} steps are done again" if lost > 0 else None


def list_resume_points(directory: Path, *, world: int) -> Listing:
    """The resume points in `directory`; a complete one has a file that is not empty for each of `world` ranks."""
    return _listing(directory, lambda path, _: _rank_faults(path, world))


def list_snapshots(directory: Path) -> Listing:
    """The snapshots in `directory`; a complete one has a readable snapshot.json for the step of its name."""
    return _listing(directory, _snapshot_faults)


def find_continuation(directory: Path, *, world: int) -> Continuation | None:
    """The resume points in `directory` that a run of `world` ranks may go on from; None where none was ever begun.

    The point that latest.json names comes first; older ones after it, newest first. There are no candidates where the
    very first point was cut off. Raises Refused if there are points
    and none is complete, or if they are those of another number of ranks: a run never starts again at 0 in silence.
    """
    notes: list[str] = []
    try:
        latest = read_record(directory / LATEST, ResumePoint)
    except NotFound:
        latest = None
    except DamagedFile as error:
        latest = None
        notes.append(str(error))
    if latest is not None and latest.world is not None and latest.world != world:
        raise Refused(f"{directory}: its points are those of {latest.world} ranks; continue with as many, not {world}")
    listing = list_resume_points(directory, world=world)
    if not listing.directories and latest is None and not notes:
        return None
    named = None if latest is None else _named(listing, latest)
    if latest is not None and named is None:
        notes.append(f"{LATEST} names step {latest.step}, and {visible(latest.dir)} is not there")
    if latest is not None and named is not None and named.step != latest.step:
        notes.append(f"{LATEST} says step {latest.step} and names {named.path.name}; what lies there counts")
    notes += [str(found) for found in listing.incomplete]
    newest = max([found.step for found in listing.directories] + ([latest.step] if latest else []), default=0)
    candidates = sorted(listing.complete, key=lambda found: (found is named, found.step), reverse=True)
    if named is not None and named.complete:
        # What lies beyond latest.json was never acknowledged, and is done again.
        candidates = [found for found in candidates if found.step <= named.step]
        newest = named.step
    if not candidates and latest is None and len(notes) == len(listing.directories) == 1:
        # The first point was being written when the run was killed: nothing was acknowledged yet, so nothing is lost.
        return Continuation((), tuple(notes))
    if not candidates:
        raise Refused(
            f"{directory}: no resume point is complete ({'; '.join(notes)}); "
            "start again in a new directory, or put the missing files back"
        )
    return Continuation(tuple(candidates), tuple(notes), newest)


def _named(listing: Listing, latest: ResumePoint) -> StepDirectory | None:
    return next((found for found in listing.directories if found.path.name == latest.dir), None)


def _listing(directory: Path, faults_of: Callable[[Path, int], Iterable[str]]) -> Listing:
    found: list[StepDirectory] = []
    foreign: list[str] = []
    try:
        names = sorted(path.name for path in directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return Listing()
    for name in names:
        path = directory / name
        if name.startswith(".") or not path.is_dir():
            continue
        match = _STEP.fullmatch(name)
        if match is None:
            foreign.append(name)
            continue
        step = int(match[1])
        found.append(StepDirectory(path, step, tuple(faults_of(path, step))))
    found.sort(key=lambda one: (one.step, one.complete, one.path.name == step_name(one.step), one.path.name))
    return Listing(tuple(found), tuple(foreign), _twins(found))


def _twins(found: Sequence[StepDirectory]) -> tuple[tuple[str, ...], ...]:
    by_step: dict[int, list[str]] = {}
    for directory in found:
        by_step.setdefault(directory.step, []).append(directory.path.name)
    return tuple(tuple(sorted(names)) for _, names in sorted(by_step.items()) if len(names) > 1)


def _rank_faults(path: Path, world: int) -> Iterable[str]:
    for rank in range(world):
        name = rank_name(rank)
        try:
            status = (path / name).stat()
            if not stat.S_ISREG(status.st_mode):
                yield f"{name} not a file"
            elif status.st_size == 0:
                yield f"{name} empty"
        except OSError:
            yield f"{name} absent"


def _snapshot_faults(path: Path, step: int) -> Iterable[str]:
    try:
        snapshot = read_record(path / "checkpoint" / SNAPSHOT, TrainingSnapshot)
    except NotFound:
        yield f"{SNAPSHOT} absent"
    except DamagedFile as error:
        yield f"{SNAPSHOT}: {error.reason}"
    else:
        if snapshot.step != step:
            yield f"{SNAPSHOT} is that of step {snapshot.step}"
