"""`usage.json` beside the rows of an AI-gateway read, and `failure.json` beside those of one that died."""

from kev.records.base import Charge, StrictRecord


class Usage(StrictRecord):
    """What one read of a hosted model cost, estimated from listed prices."""

    model: str
    model_revision: str | None = None
    started_at: str | None = None
    """ISO 8601 with an offset."""
    calls: int
    input_tokens: int
    output_tokens: int
    retries_after_5xx: int | None = None
    listed_input_usd_per_million: Charge | None = None
    refusals: dict[str, int] | None = None
    """HTTP status to count."""
    estimated_usd: Charge
    budget_usd: Charge | None = None


class Failure(StrictRecord):
    """Why a read died: how far it came and on which record."""

    error_type: str
    record_id: str | None = None
    coverage: dict[str, int] | None = None
