"""`result.json` of a trial: its development report, its transfer report, its gates and what it used; final once there.

`failed.json` stands in its place where the trial died of an exception.
"""

from typing import Any

from kev.records.base import Number, StrictRecord
from kev.records.provenance import Provenance
from kev.records.report import Report


class Gates(StrictRecord):
    """In-trial gates: screening only. A round's rule may pass an arm whose gates failed."""

    passed: bool
    checks: dict[str, bool]
    policy: Any = None


class GradientNorms(StrictRecord):
    """Gradient norms of one epoch, before clipping."""

    epoch: int
    steps: int
    mean: Number | None = None
    max: Number | None = None
    clipped_steps: int | None = None


class TrainingResources(StrictRecord):
    """`training_metrics.json`, and `training_resources` of a result. Older trials have no step times or norms."""

    wall_seconds: Number | None = None
    records_seen: int | None = None
    requested_records: int | None = None
    truncated_records: int | None = None
    rejected_records: int | None = None
    optimizer_steps: int | None = None
    forward_tokens: int | None = None
    step_seconds: list[Number] | None = None
    """Wall seconds of each optimizer step."""
    optimizer_seconds: Number | None = None
    resume_seconds: list[Number] | None = None
    resume_write_seconds: list[Number] | None = None
    world_size: int | None = None
    snapshots: list[dict[str, Any]] | None = None
    grad_norm: list[GradientNorms] | None = None
    weights: str | None = None
    """`lora` or `full`."""
    peak_device_bytes: int | None = None
    peak_rss_bytes: int | None = None
    device: str | None = None
    dtype: str | None = None


class Result(Report):
    """The outcome of a trial. `temperature` is the in-trial fit, not the one it is served with."""

    transfer: Report | None = None
    provenance: Provenance | None = None
    mechanism_checks: dict[str, Any] | None = None
    gates: Gates | None = None
    calibration_fit: dict[str, Any] | None = None
    wall_seconds: Number | None = None
    promotable: bool | None = None
    test_evaluated: bool | None = None
    training_resources: TrainingResources | None = None


class FailedTrial(StrictRecord):
    """`failed.json`: the exception a trial died of. Such a trial is never continued."""

    error: str
