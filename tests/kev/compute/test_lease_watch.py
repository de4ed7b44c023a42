"""Alive or not, by change and monotonic time, whatever the stamps say."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from kev.compute.lease_watch import LEASE_STALE_S, LeaseWatch, Standing
from kev.records.lease import Lease


class StillClock:
    """A wall clock that says what it likes, and a monotonic one that the test moves."""

    def __init__(self, wall: datetime = datetime(2027, 1, 1, 3, tzinfo=UTC)) -> None:
        self.wall, self.seconds = wall, 0.0

    def now(self) -> datetime:
        return self.wall

    def monotonic(self) -> float:
        return self.seconds


def lease(heartbeat: float, nonce: str = "9f3c", ended: float | None = None) -> Lease:
    return Lease(nonce=nonce, attempt=1, call_id="fc-1", started=heartbeat, heartbeat=heartbeat, ended=ended)


STAMP = st.floats(0, 4e9, allow_nan=False)


@given(st.lists(st.tuples(STAMP, st.floats(0, 2000)), min_size=1, max_size=30))
def test_the_standing_depends_on_when_something_changed_and_never_on_what_a_stamp_says(
    looks: list[tuple[float, float]],
) -> None:
    clock = StillClock()
    watch = LeaseWatch(clock)
    changed_at, last, moved = 0.0, None, False
    for stamp, pause in looks:
        clock.seconds += pause
        if last is None or float(stamp) != last:
            changed_at, moved = clock.seconds, last is not None
            last = float(stamp)
        view = watch.look(lease(stamp))
        silent = clock.seconds - changed_at
        expected = Standing.HELD if moved else Standing.UNPROVEN
        assert view.standing is (Standing.STALE if silent >= LEASE_STALE_S else expected)
        assert (view.evidence is not None) == (view.standing is Standing.STALE)
        assert view.wait_s == (0 if view.may_continue else LEASE_STALE_S - silent)


def test_a_heartbeat_from_the_future_or_the_past_is_neither_fresh_for_ever_nor_old_at_once() -> None:
    for stamp in (0.0, 4e9):
        clock = StillClock()
        watch = LeaseWatch(clock)
        assert watch.look(lease(stamp)).standing is Standing.UNPROVEN
        clock.seconds = LEASE_STALE_S - 1
        assert watch.look(lease(stamp + 60)).standing is Standing.HELD
        clock.seconds += LEASE_STALE_S
        assert watch.look(lease(stamp + 60)).standing is Standing.STALE


def test_after_a_short_attempt_that_said_its_end_the_continuation_starts_at_once() -> None:
    view = LeaseWatch(StillClock()).look(lease(1790000118.0, ended=1790000118.0))
    assert (view.standing, view.may_continue, view.wait_s) == (Standing.ENDED, True, 0)


def test_after_one_that_was_killed_the_wait_is_said_with_its_reason_and_its_end() -> None:
    clock = StillClock(datetime(2027, 1, 1, 3, 0, 0, tzinfo=UTC))
    watch = LeaseWatch(clock)
    watch.look(lease(1790000118.0))
    clock.seconds, clock.wall = 120.0, clock.wall + timedelta(seconds=120)
    view = watch.look(lease(1790000118.0))
    assert not view.may_continue
    assert view.wait_ends(clock.now()) == datetime(2027, 1, 1, 3, 15, 0, tzinfo=UTC)
    assert view.reason(clock.now()) == "its holder did not say that it ended; waits until 03:15:00 for a heartbeat"


def test_nobody_has_held_a_trial_without_a_file_or_claim() -> None:
    assert LeaseWatch(StillClock()).look(None).standing is Standing.FREE


def test_an_end_in_the_file_says_nothing_of_a_claim_that_came_after_it() -> None:
    watch = LeaseWatch(StillClock())
    ended = lease(5.0, ended=5.0)
    assert watch.look(ended, claims=1, claim_ended=True).standing is Standing.ENDED
    assert watch.look(ended, claims=2, claim_ended=False).standing is Standing.HELD
