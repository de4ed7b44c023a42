"""`runs/autoresearch-sessions.jsonl`: one line per completed round of an unattended run."""

from datetime import datetime
from typing import Any

from kev.records.base import Charge, Money, StrictRecord
from kev.records.instant import Instant, read_instant


class SessionRound(StrictRecord):
    """One completed round."""

    round: int
    spec: str
    spend_before: Money
    """US dollars since the session's start, before this round."""
    budgets: Charge
    """Sum of the budgets of the round's studies."""
    candidates: dict[str, str | None] = {}
    at: Any = None
    """As written: seven spellings are on record, one of them without a zone. `instant` tells what it means."""

    @property
    def instant(self) -> Instant:
        return read_instant(self.at)

    @property
    def completed(self) -> datetime | None:
        """When the round was done, UTC; None where the file does not say a moment."""
        return self.instant.at
