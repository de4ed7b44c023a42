"""`checkpoint/resume/latest.json`: the resume point that a continuation starts from; written after its shards."""

from typing import Any

from kev.records.base import Number, StrictRecord


class ResumePoint(StrictRecord):
    """Where training can go on. Whatever ran after it is lost if the container dies."""

    dir: str
    """Directory of the shards beside this file, `step-0000510`."""
    step: int
    """Optimizer steps done, over all attempts."""
    epoch: int | None = None
    seen: int | None = None
    """Records seen."""
    step_seconds: list[Number] | None = None
    elapsed: Number | None = None
    """Seconds of training, over all attempts."""
    optimizer_seconds: Number | None = None
    tokens_seen: int | None = None
    microbatch: int | None = None
    world: int | None = None
    """Ranks; a continuation must have as many."""
    args: dict[str, Any] | None = None
