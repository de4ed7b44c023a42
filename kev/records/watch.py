"""`runs/<study>.watch.json`: what the watcher knows about each trial; rewritten on every pass while it lives."""

from datetime import datetime

from kev.records.base import StrictRecord, UnixSeconds, utc_from_unix

STATUSES = ("running", "done", "timeout", "refused", "failed")
"""What the watcher writes. `timeout` and `refused` last only until it has continued the trial or given it up."""


class TrialState(StrictRecord):
    """One trial as the watcher last saw it."""

    status: str
    """One of STATUSES; a word this version does not know is kept and shown as it is."""
    launched: bool = False
    """True once the reads of the trial's arm were launched."""
    transient: int = 0
    """Network or continuation failures in a row."""
    call: str | None = None
    """The call that `status` refers to."""
    error: str | None = None
    launching_at: UnixSeconds | None = None
    """When a launch of reads began; left behind only by an interrupted one."""
    continuing_at: UnixSeconds | None = None
    unmapped: bool = False
    """True if no arm of the round has this trial."""

    @property
    def settled(self) -> bool:
        """Nothing is left for the watcher to do."""
        return self.status == "failed" or self.launched or self.unmapped

    @property
    def launch_began(self) -> datetime | None:
        return None if self.launching_at is None else utc_from_unix(self.launching_at)

    @property
    def continuation_began(self) -> datetime | None:
        return None if self.continuing_at is None else utc_from_unix(self.continuing_at)


class WatchRecord(StrictRecord):
    """The watcher's state of one study: label to state."""

    calls: dict[str, TrialState]
