"""What a report is made from: the Snapshot of a target, and kev's report where there is a session."""

from dataclasses import dataclass
from pathlib import Path

from kev.clock import Clock
from kev.errors import KevError
from kev.session_report import SessionReport, build_report, read_records
from kevtui.observe.observer import Observer
from kevtui.observe.snapshot import Snapshot
from kevtui.observe.target import Target


@dataclass(frozen=True, slots=True)
class Material:
    """`report` is None without a session; `why` then says so in words."""

    snapshot: Snapshot
    report: SessionReport | None
    why: str = ""

    @property
    def simulated(self) -> bool:
        return self.snapshot.money.simulated or (self.report is not None and self.report.simulated)


def gather(target: Target, clock: Clock, *, leases: Path | None = None) -> Material:
    """Read everything once. A session that cannot be told leaves the Snapshot, and the reason."""
    observer = Observer(target, clock=clock, leases=leases, poll=True)
    try:
        snapshot = observer.observe()
    finally:
        observer.close()
    if target.state is None:
        return Material(snapshot, None, "No session state file belongs to it, so there is no account of a session.")
    try:
        now = clock.now()
        return Material(snapshot, build_report(read_records(target.root, target.state, now), now))
    except KevError as error:
        return Material(snapshot, None, f"The session cannot be told: {error}")
