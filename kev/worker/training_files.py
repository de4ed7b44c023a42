"""The files that training leaves behind: its log, its step metrics, resume points and snapshots.

A resume point and a snapshot count once their last file is there: `latest.json`, and `snapshot.json`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kev import files
from kev.errors import NotFound
from kev.records.base import parse_record, read_record, write_record
from kev.records.resume import ResumePoint
from kev.records.snapshot import TrainingSnapshot
from kev.records.step_metrics import StepMetrics
from kev.train.points import LATEST, SNAPSHOT, step_name

PRINTED = ("ep", "saved", "device", "ablation", "snapshot", "resumed", "none pairs", "plan:", "!!!")
"""A line of the log that begins so is printed as well, and one that holds `Error`."""


def train_log(path: Path, show: Callable[[str], None]) -> Callable[[str], None]:
    """Takes a line at a time: into the log at `path`, and what an operator follows to `show` as well."""

    def say(line: str) -> None:
        files.append(path, line.encode(errors="backslashreplace") + b"\n")
        if line.startswith(PRINTED) or "Error" in line:
            show(line)

    return say


def append_step(path: Path, step: StepMetrics) -> None:
    """Add one optimizer step to `metrics.jsonl`."""
    files.append(path, files.dump_json_line(step.to_json()))


@dataclass(frozen=True, slots=True)
class ResumePoints:
    """The resume points of one trial, of which the newest is kept."""

    directory: Path

    def latest(self) -> ResumePoint | None:
        """The newest whole one, or None. Raises DamagedFile."""
        try:
            return read_record(self.directory / LATEST, ResumePoint)
        except NotFound:
            return None

    def shard(self, point: ResumePoint, rank: int) -> Path:
        return self.directory / point.dir / f"rank{rank}.json"

    def save(self, point: ResumePoint, shards: Mapping[int, Any]) -> None:
        """Write a resume point, and then remove the older ones."""
        for rank, state in shards.items():
            files.write_atomic(self.shard(point, rank), files.dump_json(state))
        write_record(self.directory / LATEST, point)
        for older in self.directory.iterdir():
            if older.is_dir() and older.name != point.dir:
                files.remove_tree(older)

    def clear(self) -> None:
        files.remove_tree(self.directory)


@dataclass(frozen=True, slots=True)
class Snapshots:
    """The loadable checkpoints that a full-weight run keeps for good."""

    directory: Path

    def checkpoint(self, step: int) -> Path:
        return self.directory / step_name(step) / "checkpoint"

    def is_complete(self, step: int) -> bool:
        return (self.checkpoint(step) / SNAPSHOT).exists()

    def complete(self) -> dict[int, TrainingSnapshot]:
        """Every complete snapshot by its step. Raises DamagedFile."""
        found = {}
        for path in sorted(self.directory.glob(f"step-*/checkpoint/{SNAPSHOT}")):
            record = parse_record(path, files.read_json(path), TrainingSnapshot)
            found[record.step] = record
        return found

    def save(self, record: TrainingSnapshot, contents: Mapping[str, bytes]) -> None:
        """Write the files of a checkpoint, and last what marks it complete."""
        place = self.checkpoint(record.step)
        for name, data in contents.items():
            files.write_atomic(place / name, data)
        write_record(place / SNAPSHOT, record)
