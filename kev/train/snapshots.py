"""Snapshots: loadable checkpoints of a full-weight run on its way, kept for good.

A snapshot gets its name only when all of it lies on the disk, snapshot.json last, so a name never stands for half of
one. A complete snapshot is never written again.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kev import files
from kev.errors import Refused
from kev.model.saving import Contents, write_checkpoint
from kev.records.base import read_record, write_record
from kev.records.snapshot import TrainingSnapshot
from kev.train.points import SNAPSHOT, list_snapshots, step_name

TRAINING_CONFIG = "training_config.json"


def snapshot_is_complete(directory: Path, step: int) -> bool:
    """Whether the snapshot of `step` lies in `directory` already."""
    return any(found.step == step for found in list_snapshots(directory).complete)


def refuse_foreign_snapshots(directory: Path, *, steps: int, planned: list[int]) -> None:
    """Raise Refused if `directory` holds a complete snapshot that this run would not have made."""
    for found in list_snapshots(directory).complete:
        record = read_record(found.path / "checkpoint" / SNAPSHOT, TrainingSnapshot)
        if record.steps != steps or found.step not in planned:
            raise Refused(
                f"{directory}: holds {found.path.name}, a snapshot of another run (step {record.step} of "
                f"{record.steps}; this one has {steps}); choose another directory"
            )


def write_snapshot(
    directory: Path, contents: Contents, training_config: Mapping[str, Any], snapshot: TrainingSnapshot
) -> TrainingSnapshot:
    """Write one and return its record, to which the seconds of writing are added."""
    started = time.monotonic()
    target = directory / step_name(snapshot.step)
    staged = directory / f".{target.name}.staged"
    files.remove_at_once(staged)
    checkpoint = staged / "checkpoint"
    write_checkpoint(checkpoint, contents)
    files.write_atomic(checkpoint / TRAINING_CONFIG, files.dump_json(dict(training_config)))
    written = snapshot.model_copy(update={"write_seconds": round(time.monotonic() - started, 3)})
    write_record(checkpoint / SNAPSHOT, written)
    # Something incomplete may have the name: what another trainer, or a copy that broke off, left behind.
    files.remove_at_once(target)
    files.move(staged, target)
    return written
