"""`runs/locked/<name>/summary.json`: the one read of both test partitions; written even where the read failed."""

from typing import Any

from kev.records.base import Number, StrictRecord


class LockedSuite(StrictRecord):
    """One suite that has been read. A suite without an entry here was not, or was interrupted."""

    suite: str
    suite_sha256: str | None = None
    clean: dict[str, Any]
    tasks: dict[str, Any] | None = None
    variants: dict[str, Any] | None = None
    coverage: dict[str, int] | None = None


class LockedSummary(StrictRecord):
    """What a locked name has read so far. A suite listed here is never read again under the name."""

    trial: str
    trial_result_sha256: str | None = None
    temperature: Number | None = None
    """The in-trial fit; the summary's figures only, not the served temperature."""
    git_commit: str | None = None
    suites: dict[str, LockedSuite] = {}
    """`decision` and `transfer`."""
    resumed_for: list[str] | None = None
    interrupted_reads_redone: list[str] | None = None
