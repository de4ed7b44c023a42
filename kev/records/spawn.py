"""`runs/<study>.spawn.json`: what was launched, under which bound, and every attempt at every trial.

The file is written before and after each spawn, so an attempt without a call id is one whose spawn was under way.
Records from before the ledger hold only `name`, `calls`, `bound_usd` and `timeout`; all their attempts count as used.
"""

from datetime import datetime

from kev.budget import FULL_WEIGHT_ATTEMPTS
from kev.records.base import Charge, Number, StrictRecord, UnixSeconds, utc_from_unix


class Attempt(StrictRecord):
    """One container run of a trial."""

    nonce: str
    """Random id that the lease carries while this attempt holds the trial."""
    call: str | None = None
    """Id of the remote call; None while the spawn is under way, or was interrupted."""
    at: UnixSeconds
    """When the entry was made, before its spawn."""
    abandoned: UnixSeconds | None = None
    """When the attempt was given up because it never took the lease; it still counts."""

    @property
    def started(self) -> datetime:
        return utc_from_unix(self.at)

    @property
    def pending(self) -> bool:
        """True while no call id is known and the attempt is not given up."""
        return self.call is None and self.abandoned is None


class SpawnRecord(StrictRecord):
    """A launched study. Configurations, suite and budget are in the plan and the spec, not here."""

    name: str
    calls: dict[str, str | None]
    """Label of each trial to its current call; None while its attempt is pending."""
    attempts: dict[str, list[Attempt]] = {}
    """The ledger: label to attempts, oldest first."""
    bound_usd: Charge | None = None
    gpu: str | None = None
    timeout: Number | None = None
    """Seconds, per attempt."""
    full_ft: bool | None = None
    """True if any trial trains all weights."""
    modal_retries: int | None = None
    """0, and present, in a record with a ledger: the provider's own retries are off."""
    plan_sha256: str | None = None
    """Hash of what was launched: an interrupted launch is completed with the same and nothing else."""

    @property
    def has_ledger(self) -> bool:
        """False for a record from before the ledger, or launched with the provider's retries on."""
        return self.modal_retries == 0

    def attempts_allowed(self) -> int:
        """Container runs each trial may have in all."""
        return FULL_WEIGHT_ATTEMPTS if self.full_ft else 1

    def attempts_used(self, label: str) -> int:
        """Container runs that `label` has had, abandoned ones included; all of them where there is no ledger."""
        if not self.has_ledger:
            return self.attempts_allowed()
        return len(self.attempts.get(label, [])) or 1

    def current_attempt(self, label: str) -> Attempt | None:
        """The newest entry of the ledger for `label`, or None without one."""
        entries = self.attempts.get(label, [])
        return entries[-1] if entries else None
