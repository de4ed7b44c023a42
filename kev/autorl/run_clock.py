"""One clock for a run: started once, before the agent, and read by everybody from the same file outside its reach.

It counts monotonic seconds, so that a changed wall clock gives and takes no time; what the workspace says about the
time is a copy that nobody believes.
"""

from dataclasses import dataclass
from pathlib import Path

from kev import files
from kev.clock import Clock
from kev.records.autorl import RunMeta
from kev.records.base import StrictRecord, UnixSeconds, read_record, write_record

NOTICES = (0.5, 0.1, 0.02)
"""Shares of the time that are left when the agent is told."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class ClockRecord(StrictRecord):
    """`clock.json`, outside the workspace. Monotonic seconds mean something within one boot of one machine only."""

    started_at: UnixSeconds
    started_monotonic: float
    boot: str
    timeout_s: float
    last_submit_at: UnixSeconds | None = None
    ended_at: UnixSeconds | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """What the agent is told when `share` of its time is left."""

    share: float
    text: str


class RunClock:
    """The clock of one run, kept in `path`."""

    def __init__(self, path: Path, record: ClockRecord, clock: Clock) -> None:
        self._path = path
        self._record = record
        self._clock = clock

    @classmethod
    def start(cls, path: Path, timeout_s: float, clock: Clock) -> "RunClock":
        """Start the clock of a run. Raises FileExistsError where it runs already: nobody starts it twice."""
        record = ClockRecord(
            started_at=clock.now().timestamp(),
            started_monotonic=clock.monotonic(),
            boot=_boot(),
            timeout_s=float(timeout_s),
        )
        files.create_exclusive(path, files.dump_json(record.to_json()))
        return cls(path, record, clock)

    @classmethod
    def open(cls, path: Path, clock: Clock) -> "RunClock":
        """The clock that was started. Raises NotFound or DamagedFile."""
        return cls(path, read_record(path, ClockRecord), clock)

    @property
    def timeout_s(self) -> float:
        return self._record.timeout_s

    @property
    def started_at(self) -> float:
        """Unix seconds."""
        return float(self._record.started_at)

    @property
    def ended_at(self) -> float | None:
        """Unix seconds, or None while the run lasts."""
        return None if self._record.ended_at is None else float(self._record.ended_at)

    def elapsed(self) -> float:
        """Seconds since the start. After a restart of the machine the wall clock has to do, and is not let go back."""
        if self._record.boot == _boot():
            passed = self._clock.monotonic() - self._record.started_monotonic
        else:
            passed = self._clock.now().timestamp() - self.started_at
        return max(0.0, passed)

    def remaining(self) -> float:
        """Seconds that are left; 0 once the time is up."""
        return max(0.0, self.timeout_s - self.elapsed())

    @property
    def is_over(self) -> bool:
        """Whether the bell has rung: the time is up, or the run was ended before."""
        return self._record.ended_at is not None or self.remaining() <= 0

    def submitted(self) -> None:
        """Note that something was submitted now."""
        self._change(last_submit_at=self._clock.now().timestamp())

    def end(self) -> None:
        """Note that the run ended now; the first end counts."""
        if self._record.ended_at is None:
            self._change(ended_at=self._clock.now().timestamp())

    def meta(self) -> RunMeta:
        """What `run_meta.json` says, in whole seconds."""
        record = self._record
        return RunMeta(
            start_time=int(record.started_at),
            timeout_s=int(record.timeout_s),
            last_submit_time=None if record.last_submit_at is None else int(record.last_submit_at),
            end_time=None if record.ended_at is None else int(record.ended_at),
        )

    def notices_between(self, before: float, after: float) -> list[Notice]:
        """What falls due in the span of elapsed seconds from `before` (not in it) to `after`."""
        found = []
        for share in NOTICES:
            at = self.timeout_s * (1 - share)
            if before < at <= after:
                left = self.timeout_s * share
                found.append(Notice(share, f"{share:.0%} of the time is left: {left:,.0f} of {self.timeout_s:,.0f} s"))
        return found

    def _change(self, **values: float) -> None:
        self._record = self._record.model_copy(update=values)
        write_record(self._path, self._record)


def _boot() -> str:
    """What tells one boot of this machine from another; empty where the system has no such id."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""
