"""Leases as seen from here: how long each heartbeat has stood still on this machine's monotonic clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kevtui.observe import derive
from kevtui.observe.scope import natural
from kevtui.observe.snapshot import Lease
from kevtui.observe.sources import Sources

if TYPE_CHECKING:
    from kev.records import lease as records

NonceOf = Callable[[str], str | None]
"""The nonce of the ledger's newest entry of a trial `<study>/<label>`; None where unknown."""


@dataclass(slots=True)
class _Seen:
    record: records.Lease
    heartbeat: float
    since: float
    """Monotonic: when this heartbeat was first seen, moved on by the time we ourselves stood still."""
    met_age_s: float
    """The age by the stamp when this heartbeat was first seen; our own sleep since then does not count."""
    changed: bool = False
    lead_s: float | None = None
    """The remote stamp minus this clock, at the moment the stamp changed."""
    nonce: str | None = None
    nonce_since: float = float("-inf")
    """Monotonic: since when the ledger's newest entry has been another one, as far as we saw it change."""
    view: Lease | None = None
    due: float = 0.0


class LeaseBook:
    """Remembers when each lease's heartbeat last changed; two machines' clocks are never subtracted to tell life."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._seen: dict[str, _Seen] = {}

    def update(self, changed: set[str], nonce_of: NonceOf | None) -> dict[str, Lease]:
        """The leases by trial id.

        `changed` are the folders in which anything moved; `nonce_of` is given where a ledger may have moved.
        """
        prefix, came = f"{self._sources.leases}/", False
        for folder in changed:
            if folder.startswith(prefix) and folder.count("/") == prefix.count("/") + 1:
                came |= self._read(folder)
        if came:
            # In the order of their names: another observer of the same files met them in another one.
            self._seen = dict(sorted(self._seen.items(), key=lambda item: natural(item[0])))
        if nonce_of is not None:
            for trial, seen in self._seen.items():
                nonce = nonce_of(trial)
                if nonce != seen.nonce:
                    if seen.nonce is not None:
                        seen.nonce_since = self._sources.monotonic
                    seen.nonce, seen.due = nonce, 0.0
        now_unix, monotonic = self._sources.now_unix, self._sources.monotonic
        views = {}
        for trial, seen in self._seen.items():
            if seen.view is None or monotonic >= seen.due:
                view = _judge(trial, seen, now_unix=now_unix, monotonic=monotonic)
                seen.due = monotonic + derive.until_coarser(max(0.0, monotonic - seen.since))
                if monotonic < (ripe := seen.nonce_since + derive.NONCE_GRACE_S):
                    seen.due = min(seen.due, ripe)
                if view != seen.view:
                    seen.view = view
            if seen.view is not None:
                views[trial] = seen.view
        return views

    def stood_still(self, gap_s: float) -> None:
        """We were suspended for `gap_s`: no heartbeat can have been missed in that time."""
        for seen in self._seen.values():
            seen.since += gap_s
            seen.due = 0.0

    def _read(self, folder: str) -> bool:
        """Whether it is a lease that was not there before."""
        trial, lease = self._sources.trial_lease(folder)
        if lease is None:
            self._seen.pop(trial, None)
            return False
        seen = self._seen.get(trial)
        came = seen is None
        monotonic, heartbeat = self._sources.monotonic, float(lease.heartbeat)
        met_age_s = self._sources.now_unix - heartbeat
        if seen is None:
            seen = self._seen[trial] = _Seen(lease, heartbeat, monotonic, met_age_s)
        elif heartbeat != seen.heartbeat:
            seen.heartbeat, seen.since, seen.changed = heartbeat, monotonic, True
            seen.met_age_s, seen.lead_s = met_age_s, -met_age_s
        seen.record, seen.due = lease, 0.0
        return came


def _judge(trial: str, seen: _Seen, *, now_unix: float, monotonic: float) -> Lease:
    lease = seen.record
    unchanged_s = max(0.0, monotonic - seen.since)
    state = derive.lease_state(
        unchanged_s=unchanged_s,
        seen_to_change=seen.changed,
        stamp_age_s=seen.met_age_s + unchanged_s,
        ended=lease.ended is not None,
        clock_went_back=lease.clock_went_back,
    )
    return Lease(
        trial=trial,
        state=state,
        unchanged_s=derive.coarse(unchanged_s) if seen.changed else None,
        stamp_age_s=_stamp_age(now_unix - seen.heartbeat),
        skew_s=_skew(seen.lead_s),
        nonce_matches=_nonce_matches(seen, monotonic),
        attempt=lease.attempt,
        call=lease.call_id,
    )


def _nonce_matches(seen: _Seen, monotonic: float) -> bool | None:
    """Whether the ledger's newest attempt holds the lease; None where that cannot be known, or not yet.

    An attempt is in the ledger before its container has started and taken the lease, so a new entry proves nothing
    against the lease for a while.
    """
    if seen.nonce is None:
        return None
    if seen.record.nonce == seen.nonce:
        return True
    return None if monotonic - seen.nonce_since < derive.NONCE_GRACE_S else False


def _stamp_age(age_s: float) -> float | None:
    """The age by the remote stamp; None where the stamp lies so far in our future that it tells no age."""
    return None if age_s < -derive.LEASE_AHEAD_S else derive.coarse(age_s)


def _skew(lead_s: float | None) -> float | None:
    # A heartbeat is seen up to a poll late, so a few seconds are no skew; a finer figure would be false.
    return None if lead_s is None else float(round(lead_s / 5) * 5)
