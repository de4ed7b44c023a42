"""`runs/<session>-events.jsonl`: what happened in a session, one line each, only ever appended to."""

from datetime import datetime
from typing import Literal

from kev.records.base import StrictRecord
from kev.records.instant import Instant, read_instant

EventSeverity = Literal["info", "warning", "critical"]


class Event(StrictRecord):
    """One thing that happened."""

    at: str
    """ISO 8601, UTC."""
    kind: str
    """A word for the sort of event: `launch`, `reading`, `pull`, `decision`."""
    severity: str = "info"
    """One of EventSeverity; a word this version does not know is kept."""
    subject: str = ""
    """What it happened to: a study, trial, arm or round."""
    text: str
    """One line for a reader."""
    who: str | None = None
    """Who or what caused it, where that is known."""

    @property
    def instant(self) -> Instant:
        return read_instant(self.at)

    @property
    def happened(self) -> datetime | None:
        """UTC; None where the line does not say a moment."""
        return self.instant.at
