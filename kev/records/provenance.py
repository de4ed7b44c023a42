"""`provenance.json` of a trial: the configuration and every hash that its numbers depend on. It holds no time."""

from typing import Any

from kev.records.base import Number, StrictRecord


class MeasuredCheckpoint(StrictRecord):
    """The weights that were scored."""

    requested: str | None = None
    resolved: str | None = None
    head_sha256: str | None = None
    weights_sha256: str | None = None
    inference_temperature: Number | None = None


class Provenance(StrictRecord):
    """Where a trial came from."""

    config: dict[str, Any]
    config_sha256: str
    suite_sha256: str | None = None
    source_hashes: dict[str, str] = {}
    """Path of each source file to its SHA-256; a continuation must match all of them."""
    git_commit: str | None = None
    platform: str | None = None
    torch: str | None = None
    device: str | None = None
    gpu: str | None = None
    legacy_checkpoint: bool | None = None
    measured_checkpoint: MeasuredCheckpoint | None = None
    environment: dict[str, Any] | None = None
    continued: list[dict[str, Any]] | None = None
    """One entry for each later attempt."""
