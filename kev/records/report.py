"""`report.json`: the metrics of one read, and `rejected.json`: the records a remote endpoint refused.

Other tools write files of the same name with other keys; they are not reports, and reading one as a report says so.
"""

from typing import Any

from kev.records.base import Number, StrictRecord

Metrics = dict[str, Any]
"""Name to figure, or to a table of figures; None where a figure has no rows behind it."""


class Coverage(StrictRecord):
    """How much of what was asked has been scored. Variants count as records."""

    requested_records: int
    requested_questions: int | None = None
    evaluated_records: int
    evaluated_questions: int | None = None
    rejected_records: int = 0
    truncated_records: int = 0


class Report(StrictRecord):
    """The metrics of one read. `objective` is minus the mean over tasks of clean NLL, not minus `clean.nll`."""

    objective: Number | None
    clean: Metrics
    tasks: dict[str, Metrics]
    variants: dict[str, Metrics] = {}
    coverage: Coverage
    paired_flip: Metrics | None = None
    unknowable: Metrics | None = None
    heldout_tasks: dict[str, Metrics] | None = None
    permutation: Metrics | None = None
    temperature: Number | None = None
    calibrated_clean: Metrics | None = None
    calibration: Metrics | None = None
    latency_ms: Metrics | None = None
    suite_sha256: str | None = None
    run: str | None = None
    split: str | None = None


class RejectedRecord(StrictRecord):
    """One entry of the list in `rejected.json`."""

    id: str
    error: str
