"""Who may run a trial: a lease that two containers cannot both win.

`attempt.json` on the lease volume is what everybody sees, but a volume has no compare-and-set: of two containers
that write it, the last one stands, and each may read its own back. So the right to write it is won in a Dict whose
`put` tells exactly one caller that the key is new. The claims on a trial are numbered:

    <study>/<NN>-<label>/1          the first claim
    <study>/<NN>-<label>/1/by/...   the attempt and the call that made it
    <study>/<NN>-<label>/1/ended    it was given back
    <study>/<NN>-<label>/2          the second claim, ...

A new claim may be made where the last one ended, or where a watcher saw it stand still (`lease_watch`): the watcher
waits, where waiting costs nothing, and hands its evidence over; a container with a rented card never waits. It may
also be made by the very call that made the last one: a provider hands a call to another container only once the first
is gone (preempted, crashed, its machine lost), and there is nobody else to wait for. A holder
that was taken for dead finds the next number claimed at its next heartbeat, and stops.

Only keys are read, never values: those would be unpickled.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kev.clock import Clock
from kev.compute.errors import RemoteError
from kev.compute.lease_watch import Evidence
from kev.errors import NotFound, Refused
from kev.records.base import read_record, write_record
from kev.records.lease import Lease, PreviousLease

LEASE_VOLUME = "kev-leases"
CLAIMS_DICT = "kev-leases"
HEARTBEAT_S = 60.0
FILE_NAME = "attempt.json"


class LeaseRefused(Refused):
    """The trial is held, or may be: this attempt must not run."""


class LeaseLost(Refused):
    """The trial was given to another attempt while this one could not be heard: it must stop, and write nothing."""


class Claims(Protocol):
    """Keys that can be set once."""

    def put_new(self, key: str) -> bool:
        """Set `key`. True for exactly one caller ever. Raises a RemoteError."""
        ...

    def has(self, key: str) -> bool:
        """Whether `key` is set. Raises a RemoteError."""
        ...


@dataclass(frozen=True, slots=True)
class LeaseFile:
    """`attempt.json` of one trial, in a directory where a volume is mounted.

    `reload` brings in what others committed, `commit` publishes; both are the volume's own.
    """

    path: Path
    reload: Callable[[], None]
    commit: Callable[[], None]

    def read(self) -> Lease | None:
        """The lease as last committed by anyone. Raises DamagedFile."""
        self.reload()
        try:
            return read_record(self.path, Lease)
        except NotFound:
            return None

    def write(self, lease: Lease) -> None:
        write_record(self.path, lease)
        self.commit()


def lease_path(root: Path, trial: str) -> Path:
    """Where the lease of `trial`, `<study>/<NN>-<label>`, is on the lease volume."""
    return root / trial / FILE_NAME


def count_claims(claims: Claims, trial: str) -> tuple[int, bool]:
    """How many times `trial` was claimed, and whether the last claim was given back."""
    count = 0
    while claims.has(claim_key(trial, count + 1)):
        count += 1
    return count, count > 0 and claims.has(ended_key(trial, count))


def claim_key(trial: str, number: int) -> str:
    return f"{trial}/{number}"


def ended_key(trial: str, number: int) -> str:
    return f"{trial}/{number}/ended"


def maker_key(trial: str, number: int, nonce: str, call_id: str | None) -> str:
    return f"{trial}/{number}/by/{nonce}/{call_id or ''}"


class HeldLease:
    """A lease that this process won. `beat` every HEARTBEAT_S; `release` at the end, after the last commit."""

    def __init__(self, file: LeaseFile, claims: Claims, clock: Clock, trial: str, number: int, lease: Lease) -> None:
        self._file, self._claims, self._clock = file, claims, clock
        self.trial, self.number, self.lease = trial, number, lease

    def beat(self) -> None:
        """Say that the attempt lives. Raises LeaseLost, DamagedFile or OSError.

        A beat that failed otherwise than by LeaseLost is no lost lease: try again at the next one.
        """
        try:
            self.check()
        except RemoteError:
            # Silence would soon look like death, so while the claims cannot be asked the file decides.
            found = self._file.read()
            if found is not None and found.nonce != self.lease.nonce:
                raise LeaseLost(f"{self.trial}: held by {found.call_id} now; this attempt must stop") from None
        self._write(self.lease.model_copy(update={"heartbeat": self._now()}))

    def check(self) -> None:
        """Raises LeaseLost if another attempt was given the trial."""
        if self._claims.has(claim_key(self.trial, self.number + 1)):
            raise LeaseLost(f"{self.trial}: claim {self.number} was succeeded by another; this attempt must stop")

    def release(self) -> None:
        """Let go, so that a continuation may start at once. Raises LeaseLost, a RemoteError, or OSError."""
        self.check()
        # First the claim: an `ended` in the file must mean that its claim has ended, whenever this is killed.
        self._claims.put_new(ended_key(self.trial, self.number))
        now = self._now()
        self._write(self.lease.model_copy(update={"heartbeat": now, "ended": now}))

    def _write(self, lease: Lease) -> None:
        self._file.write(lease)
        self.lease = lease

    def _now(self) -> float:
        return self._clock.now().timestamp()


def acquire(
    file: LeaseFile, claims: Claims, trial: str, *, nonce: str, attempt: int | None, call_id: str | None,
    clock: Clock, evidence: Evidence | None = None,
) -> HeldLease:  # fmt: skip
    """Win the lease of `trial`, or raise LeaseRefused at once.

    `evidence` is a watcher's, for a lease whose holder never said that it ended; a call that is run again by its
    provider needs none. Also raises a RemoteError, DamagedFile
    if the file cannot be believed, or OSError: in none of these cases may the attempt run.
    """
    count, ended = count_claims(claims, trial)
    found = file.read()
    if not (call_id is not None and count and claims.has(maker_key(trial, count, nonce, call_id))):
        _check_free(trial, found, count, ended, evidence)
    number = count + 1
    # A lost answer to this makes the client ask again and be told "not new": refused, though nobody holds it. That
    # costs this attempt and a wait; to assume the opposite could start two.
    if not claims.put_new(claim_key(trial, number)):
        raise LeaseRefused(f"{trial}: another attempt won claim {number} just now")
    if call_id is not None:
        claims.put_new(maker_key(trial, number, nonce, call_id))
    now = clock.now().timestamp()
    lease = Lease(
        nonce=nonce, attempt=attempt, call_id=call_id, started=now, heartbeat=now, ended=None, previous=_previous(found)
    )
    held = HeldLease(file, claims, clock, trial, number, lease)
    file.write(lease)
    # Whoever slept between the claim and this line may have been succeeded meanwhile.
    held.check()
    return held


def _check_free(trial: str, found: Lease | None, count: int, ended: bool, evidence: Evidence | None) -> None:
    if ended or (count == 0 and (found is None or found.ended is not None)):
        return
    seen = Evidence(count, found.nonce if found else None, float(found.heartbeat) if found else None)
    if evidence == seen:
        return
    holder = f"attempt {found.attempt} ({found.call_id})" if found else f"claim {count}"
    if evidence is None:
        raise LeaseRefused(f"{trial}: held by {holder}, which has not said that it ended; watch its heartbeat first")
    raise LeaseRefused(f"{trial}: {holder} has moved since it was judged dead; it is alive")


def _previous(found: Lease | None) -> PreviousLease | None:
    if found is None:
        return None
    return PreviousLease(
        nonce=found.nonce, attempt=found.attempt, call_id=found.call_id, heartbeat=found.heartbeat, ended=found.ended
    )
