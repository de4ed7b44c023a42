"""`runs/<session>-watcher.json`: that a watcher lives and what it is doing, rewritten on every pass."""

from kev.records.base import StrictRecord, UnixSeconds


class WatcherRecord(StrictRecord):
    """One watcher, as of its last pass."""

    round: int
    process: int
    host: str
    at: UnixSeconds
    passes: int
    state: str
    """`watching`, `paused`, `quiesced` (safe to kill) or `done`."""
    text: str = ""
    unreachable_since: UnixSeconds | None = None
    throttled_since: UnixSeconds | None = None
