"""What follows from the observed facts: rates, projections, liveness. Pure; the clocks are arguments.

Two clocks, never mixed: `monotonic` seconds of this machine measure how long, UTC moments say when. A clock of
another machine (a lease's, a trainer's) is only ever compared with itself.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from kevtui.observe.snapshot import LeaseState, Projection, Rate, WatcherState

WINDOW_S = 600.0
"""A rate is measured over this long, or over the last few steps where they take longer."""

LEAST_SAMPLES = 4
MOST_SAMPLES = 120

WATCH_INTERVAL_S = 120.0
"""Between two passes of the watcher; each rewrites its file."""

LEASE_LATE_S = 120.0
LEASE_STALE_S = 900.0
NONCE_GRACE_S = 600.0
"""How long a new attempt may take to start and replace the lease of the one before it."""

LEASE_AHEAD_S = 90.0
"""A stamp this far in the future cannot be a delay; half as much is within ordinary skew and the heartbeat's minute."""

UNKNOWN_SPREAD = 2.0
"""With one interval nothing is known of the spread; the projection then spans half to twice the remaining time."""

SILENT_S = 600.0
"""A running trial that logs nothing for this long is presumed stalled; ordinary steps come every few minutes."""

SUSPENDED_S = 30.0

FIVE_MINUTE_CHECK_S = 900.0
"""A projection past the timeout this early means that the configuration cannot fit: cancelling saves the rest."""


@dataclass(frozen=True, slots=True)
class Sample:
    """`step` optimizer steps were done at `t` seconds of some one clock."""

    t: float
    step: int


@dataclass(frozen=True, slots=True)
class MeasuredRate:
    """Steps per second, with the bounds that its recent intervals span."""

    value: float
    low: float
    high: float
    span_s: float
    basis: str

    def shown(self) -> Rate:
        return Rate(60 * self.value, self.span_s, self.basis)


def rate_from_samples(samples: Iterable[Sample], basis: str) -> MeasuredRate | None:
    """The rate over the newest samples, which must ascend in time and step; None with fewer than two.

    Value: steps over seconds between the ends of the window. Bounds: the tenth and ninetieth percentile of the
    rates of its single intervals.
    """
    recent = _window(list(samples))
    pairs = [(a, b) for a, b in pairwise(recent) if b.t > a.t and b.step > a.step]
    if not pairs:
        return None
    first, last = pairs[0][0], pairs[-1][1]
    value = (last.step - first.step) / (last.t - first.t)
    low, high = _spread([(b.step - a.step) / (b.t - a.t) for a, b in pairs], value)
    return MeasuredRate(value, low, high, last.t - first.t, basis)


def rate_from_step_seconds(step_seconds: Iterable[float]) -> MeasuredRate | None:
    """The rate that a resume point's recent step times imply: one over their median."""
    times = [seconds for seconds in step_seconds if seconds > 0][-100:]
    if not times:
        return None
    # Not statistics.median, which would load random, hashlib and fractions for it.
    ordered, middle = sorted(times), len(times) // 2
    value = 2 / (ordered[middle] + ordered[~middle])
    low, high = _spread([1 / seconds for seconds in times], value)
    return MeasuredRate(value, low, high, sum(times), "resume point")


def project(
    rate: MeasuredRate | None,
    *,
    step: int | None,
    steps: int | None,
    step_seen_at: datetime,
    now: datetime,
    timeout_at: datetime | None,
) -> Projection | None:
    """When the last of `steps` steps should be done; None where that is past, or nothing is known.

    The time since the last step counts as progress, but never for more than the remaining time of two logged
    intervals' worth of it: a trial that stalls does not come nearer to its end.
    """
    if rate is None or step is None or steps is None or step >= steps:
        return None
    remaining_s = (steps - step) / rate.value
    waited_s = max(0.0, (now - step_seen_at).total_seconds())
    usual_s = max(20 / rate.value, 30.0)
    start = step_seen_at if waited_s <= usual_s else now
    try:
        finish_at = start + timedelta(seconds=remaining_s)
    except OverflowError:
        return None
    return Projection(
        remaining_s=remaining_s,
        remaining_low_s=(steps - step) / rate.high,
        remaining_high_s=(steps - step) / rate.low,
        finish_at=finish_at,
        timeout_at=timeout_at,
        past_timeout=timeout_at is not None and finish_at > timeout_at,
    )


def watcher_state(age_s: float | None, *, unsettled: bool) -> WatcherState:
    """Of a watcher whose file was last rewritten `age_s` ago: down after three of its intervals, while it has work."""
    if age_s is None:
        return WatcherState.NONE
    if not unsettled:
        return WatcherState.FINISHED
    if age_s > 3 * WATCH_INTERVAL_S:
        return WatcherState.DOWN
    return WatcherState.LATE if age_s > 1.5 * WATCH_INTERVAL_S else WatcherState.ALIVE


def lease_state(
    *, unchanged_s: float, seen_to_change: bool, stamp_age_s: float, ended: bool, clock_went_back: bool
) -> LeaseState:
    """How alive a lease is.

    `unchanged_s`: local monotonic seconds for which the heartbeat stood still while we looked. Before it was seen to
    change once, the stamp may still prove it stale, since no skew of ours is 15 minutes, but never fresh.
    """
    if ended:
        return LeaseState.RELEASED
    if unchanged_s >= LEASE_STALE_S:
        return LeaseState.STALE
    if seen_to_change:
        return LeaseState.FRESH if unchanged_s < LEASE_LATE_S else LeaseState.LATE
    if stamp_age_s < -LEASE_AHEAD_S:
        return LeaseState.CLOCK_AHEAD
    if clock_went_back:
        return LeaseState.UNKNOWN
    if stamp_age_s >= LEASE_STALE_S:
        return LeaseState.STALE
    if unchanged_s >= LEASE_LATE_S:
        return LeaseState.LATE
    return LeaseState.FRESH if stamp_age_s < LEASE_LATE_S else LeaseState.LATE


def was_suspended(*, monotonic_gap_s: float, wall_gap_s: float, asked_s: float) -> bool:
    """Whether this process itself stood still between two passes, so that others' silence means nothing.

    A stopped process sees the monotonic clock jump; a sleeping machine sees only the wall clock jump.
    """
    return monotonic_gap_s > asked_s + SUSPENDED_S or wall_gap_s - monotonic_gap_s > SUSPENDED_S


def coarse(age_s: float | None) -> float | None:
    """An age cut to steps that grow with it (5 s, a minute, ten minutes), and never negative.

    A Snapshot must not differ from the last one only because a second has passed.
    """
    if age_s is None:
        return None
    age_s = max(0.0, age_s)
    return age_s - age_s % _grain(age_s)


def until_coarser(age_s: float) -> float:
    """Seconds until `coarse` of this age changes."""
    return _grain(age_s) - max(0.0, age_s) % _grain(age_s)


def _grain(age_s: float) -> float:
    return 5.0 if age_s < 60 else 60.0 if age_s < 3600 else 600.0


def _window(samples: list[Sample]) -> list[Sample]:
    if not samples:
        return samples
    newest = samples[-1].t
    count = sum(1 for sample in samples[-MOST_SAMPLES:] if newest - sample.t <= WINDOW_S)
    return samples[-max(count, LEAST_SAMPLES) :]


def _spread(rates: list[float], value: float) -> tuple[float, float]:
    if len(rates) < 2:
        return value / UNKNOWN_SPREAD, value * UNKNOWN_SPREAD
    rates.sort()
    cut = len(rates) // 10
    return min(rates[cut], value), max(rates[-1 - cut], value)
