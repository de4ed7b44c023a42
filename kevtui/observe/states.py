"""The states of a Snapshot's parts, in the words that the screen and the JSON show."""

from enum import StrEnum
from typing import Final


class TrialState(StrEnum):
    """What is known of a trial; `UNKNOWN` where no file says."""

    PLANNED = "planned"
    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    TIMED_OUT = "timed out"
    REFUSED = "refused"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNREACHABLE = "unreachable"
    UNKNOWN = "unknown"


class LeaseState(StrEnum):
    """Judged by how long ago, on this machine's monotonic clock, the heartbeat last changed."""

    FRESH = "fresh"
    LATE = "late"
    STALE = "stale"
    RELEASED = "released"
    CLOCK_AHEAD = "clock ahead"
    UNKNOWN = "unknown"


class ReadState(StrEnum):
    ABSENT = "absent"
    IN_FLIGHT = "in flight"
    OVERDUE = "overdue"
    LANDED = "landed"
    FAILED = "failed"


class WatcherState(StrEnum):
    ALIVE = "alive"
    LATE = "late"
    DOWN = "down"
    FINISHED = "finished"
    NONE = "none"


class Verdict(StrEnum):
    """Of one criterion, or of an arm."""

    PASS = "pass"
    FAIL = "fail"
    MISSING = "missing"


class Severity(StrEnum):
    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


RANK: Final = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.INFO: 2}
"""The graver, the lower."""


class Section(StrEnum):
    """Names of the parts of a Snapshot, for `changed`."""

    MONEY = "money"
    STUDIES = "studies"
    LEASES = "leases"
    WATCHER = "watcher"
    READS = "reads"
    READOUT = "readout"
    VERDICTS = "verdicts"
    EVENTS = "events"
    FINDINGS = "findings"
    ALERTS = "alerts"
