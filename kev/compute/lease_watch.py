"""Whether a trial's holder is alive, told by whether its heartbeat moves as seen from here.

The stamps in a lease are by the holder's clock, which may be fast, slow or set back. So no stamp is ever compared
with a clock of this machine: a lease is stale when it stood still for LEASE_STALE_S of local monotonic time. A lease
that was looked at only once is neither fresh nor stale.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from kev.clock import Clock
from kev.records.lease import Lease

LEASE_STALE_S = 900.0
"""A heartbeat that stood still this long belongs to nobody; it is written every minute."""

CONTINUATION_WAIT_S = LEASE_STALE_S + 60.0
"""Longest that a continuation waits for a lease to end or to become stale before it gives up for this time."""


class Standing(StrEnum):
    """What is known of the holder."""

    FREE = "free"
    """Nobody has held the trial yet."""
    ENDED = "ended"
    """The holder let go."""
    HELD = "held"
    """Its heartbeat moved while it was watched, not long ago."""
    UNPROVEN = "unproven"
    """It has not moved since it was first seen, and not for long enough to tell."""
    STALE = "stale"
    """It stood still for so long that it is over."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a watcher saw stand still, to be shown to `acquire`: it holds only while nothing of it has changed."""

    claims: int
    """How many times the trial had been claimed."""
    nonce: str | None
    heartbeat: float | None


@dataclass(frozen=True, slots=True)
class LeaseView:
    """The standing of one trial's lease, and how long a continuation still has to wait."""

    standing: Standing
    holder: Lease | None
    unchanged_s: float
    """Local seconds since it was last seen to change, or first seen."""
    wait_s: float
    """Until a continuation may start if nothing changes: 0 for what may start at once."""
    evidence: Evidence | None
    """For `acquire`, where the standing is STALE."""

    @property
    def may_continue(self) -> bool:
        return self.standing in {Standing.FREE, Standing.ENDED, Standing.STALE}

    def wait_ends(self, now: datetime) -> datetime:
        """The moment the wait is over, for showing; by the local clock `now` is of."""
        return now + timedelta(seconds=self.wait_s)

    def reason(self, now: datetime) -> str:
        """One line: why a continuation may start, or until when it waits."""
        match self.standing:
            case Standing.FREE:
                return "nobody holds it"
            case Standing.ENDED:
                return "its holder let go"
            case Standing.STALE:
                return f"no heartbeat was seen for {self.unchanged_s:.0f} s"
            case Standing.HELD:
                return f"held; waits until {self._end(now)} at the earliest, if the heartbeat stops now"
            case Standing.UNPROVEN:
                return f"its holder did not say that it ended; waits until {self._end(now)} for a heartbeat"

    def _end(self, now: datetime) -> str:
        return self.wait_ends(now).strftime("%H:%M:%S")


@dataclass
class LeaseWatch:
    """Remembers what one trial's lease looked like, look by look."""

    clock: Clock
    stale_s: float = LEASE_STALE_S
    _seen: tuple[int, str | None, float | None] | None = None
    _since: float = 0.0
    _moved: bool = field(default=False)

    def look(self, lease: Lease | None, *, claims: int = 0, claim_ended: bool = False) -> LeaseView:
        """Take note of what the lease is now, and tell how it stands.

        `claims` and `claim_ended` are those of `kev.compute.leases`; who sees only the file leaves them out.
        """
        now = self.clock.monotonic()
        current = (claims, lease.nonce if lease else None, float(lease.heartbeat) if lease else None)
        if current != self._seen:
            self._moved = self._seen is not None
            self._seen, self._since = current, now
        unchanged = now - self._since
        standing = self._standing(lease, claims, claim_ended, unchanged)
        waits = standing in {Standing.HELD, Standing.UNPROVEN}
        return LeaseView(
            standing,
            lease,
            unchanged,
            max(0.0, self.stale_s - unchanged) if waits else 0.0,
            Evidence(*current) if standing is Standing.STALE else None,
        )

    def _standing(self, lease: Lease | None, claims: int, claim_ended: bool, unchanged: float) -> Standing:
        if claim_ended:
            return Standing.ENDED
        if claims == 0 and lease is None:
            return Standing.FREE
        # Of a claim that is newer than the file, the file says nothing; but the end is claimed before it is written.
        if claims == 0 and lease is not None and lease.ended is not None:
            return Standing.ENDED
        if unchanged >= self.stale_s:
            return Standing.STALE
        return Standing.HELD if self._moved else Standing.UNPROVEN
