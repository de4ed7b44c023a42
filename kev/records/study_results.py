"""`runs/<study>/results.jsonl`: one line per trial of a study, made when it is aggregated."""

from typing import Any

from kev.records.base import Number, StrictRecord
from kev.records.result import Gates


class TrialResult(StrictRecord):
    """One trial. A failed one has only `id`, `status` and `error`."""

    id: str
    """Directory of the trial, `00-trial-0`."""
    status: str
    """`complete` or `failed`."""
    path: str | None = None
    """Where the trial was when it was aggregated; a path of that machine."""
    error: str | None = None
    objective: Number | None = None
    clean: dict[str, Any] | None = None
    transfer_clean: dict[str, Any] | None = None
    transfer_paired_flip: dict[str, Any] | None = None
    gates: Gates | None = None
    promotable: bool | None = None
    paired_ci95: list[Number] | None = None
    """Against the study's baseline; None for the baseline itself."""
    config: dict[str, Any] | None = None
    legacy: bool | None = None
