"""`snapshots/step-<N>/checkpoint/snapshot.json`: a loadable checkpoint of a full-weight run; written last."""

from typing import Any

from kev.records.base import Number, StrictRecord


class TrainingSnapshot(StrictRecord):
    """A complete snapshot. Early directories are not zero-padded, so sort by `step`, not by name."""

    step: int
    steps: int
    epoch: Number | None = None
    """Fraction of the run in epochs."""
    records_seen: int | None = None
    blocking_seconds: Number | None = None
    """Seconds that training stood still."""
    write_seconds: Number | None = None
    hub: dict[str, Any] | None = None
    """Where it was mirrored."""
