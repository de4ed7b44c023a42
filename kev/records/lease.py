"""`attempt.json` on the lease volume: who holds a trial, refreshed every minute while it runs.

The times are those of the container's clock, which may be ahead of or behind the reader's; whether a lease is alive
is told by how long the heartbeat has stood still as seen from here, never by subtracting it from the local time.
"""

from datetime import datetime

from kev.records.base import StrictRecord, UnixSeconds, utc_from_unix


class PreviousLease(StrictRecord):
    """The holder before this one, as its successor found it."""

    nonce: str
    attempt: int | None = None
    call_id: str | None = None
    heartbeat: UnixSeconds | None = None
    ended: UnixSeconds | None = None


class Lease(StrictRecord):
    """The holder of one trial; each attempt overwrites the file."""

    nonce: str
    attempt: int | None = None
    call_id: str | None = None
    started: UnixSeconds
    heartbeat: UnixSeconds
    ended: UnixSeconds | None = None
    """When the holder let go, after its last commit; None while it holds, or if it was killed."""
    previous: PreviousLease | None = None

    @property
    def heartbeat_at(self) -> datetime:
        """By the holder's clock."""
        return utc_from_unix(self.heartbeat)

    @property
    def started_at(self) -> datetime:
        """By the holder's clock."""
        return utc_from_unix(self.started)

    @property
    def clock_went_back(self) -> bool:
        """The heartbeat lies before the start: the holder's clock was set back, so its stamps say nothing of age."""
        return self.heartbeat < self.started
