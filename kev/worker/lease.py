"""Holding a trial's lease while it runs: taken at the start, refreshed by a thread, ended after the last commit."""

import threading
from collections.abc import Callable

from kev.compute.lease_watch import Evidence
from kev.compute.leases import HEARTBEAT_S, Claims, HeldLease, LeaseFile, LeaseLost, acquire, lease_path
from kev.errors import KevError
from kev.worker.container import Container
from kev.worker.orders import TrialOrder


def hold_lease(
    order: TrialOrder, container: Container, claims: Claims, show: Callable[[str], None]
) -> "HeartbeatThread":
    """Win the lease of the trial that `order` names, and refresh it from now on.

    Raises what `acquire` raises: then the attempt must not run.
    """
    volume = container.leases
    evidence = order.evidence
    held = acquire(
        LeaseFile(lease_path(volume.path, order.directory), volume.reload, volume.commit),
        claims,
        order.directory,
        nonce=order.nonce,
        attempt=order.attempt,
        call_id=container.call_id,
        clock=container.clock,
        evidence=Evidence(evidence.claims, evidence.nonce, evidence.heartbeat) if evidence else None,
    )
    return HeartbeatThread(held, show)


class HeartbeatThread:
    """Refreshes a lease until `end`, or until another attempt was given the trial."""

    interval = HEARTBEAT_S

    def __init__(self, held: HeldLease, show: Callable[[str], None]) -> None:
        self._held, self._show = held, show
        self._stop = threading.Event()
        self.lost: LeaseLost | None = None
        """Set once another attempt was seen to hold the trial."""
        self._thread = threading.Thread(target=self._beat, name="lease", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raises LeaseLost if another attempt was seen to hold the trial."""
        if self.lost is not None:
            raise self.lost

    def end(self) -> None:
        """Let go, after everything that was written is committed. Never raises: an end that cannot be told is waited
        out by the next attempt."""
        self._stop.set()
        self._thread.join()
        try:
            if self.lost is None:
                self._held.release()
        except (KevError, OSError) as error:
            self._show(f"!!! [lease] not ended: {error}")

    def _beat(self) -> None:
        while not self._stop.wait(self.interval):
            try:
                self._held.beat()
            except LeaseLost as lost:
                self.lost = lost
                self._show(f"!!! [lease] {lost}")
                return
            except Exception as error:  # the platform's own errors are of many kinds; the next beat tries again
                self._show(f"!!! [lease] heartbeat missed: {type(error).__name__}: {error}")
