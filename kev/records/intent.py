"""`runs/r<N>-reads-<arm>[-<stage>].json`: written just before the reads of an arm are launched.

It tells a restarted engine that reads may be in flight. It holds no call ids, and each relaunch replaces it.
"""

from datetime import datetime

from kev.records.base import StrictRecord, UnixSeconds, utc_from_unix


class ReadIntent(StrictRecord):
    """One launch of an arm's reads."""

    launched_at: UnixSeconds
    commands: list[list[str]]
    """Each command as its arguments, in launch order."""

    @property
    def launched(self) -> datetime:
        return utc_from_unix(self.launched_at)
