from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kevtui.observe import derive, step_lines
from kevtui.observe.derive import MeasuredRate, Sample
from kevtui.observe.history import History, points_per_trial
from kevtui.observe.snapshot import LeaseState, WatcherState

NOW = datetime(2027, 3, 28, 0, 59, tzinfo=UTC)

samples = st.lists(
    st.tuples(st.floats(0.01, 1e6), st.integers(1, 10**6)), min_size=2, max_size=30
).map(lambda gaps: [Sample(sum(t for t, _ in gaps[: i + 1]), sum(n for _, n in gaps[: i + 1]))
                    for i in range(len(gaps))])  # fmt: skip


@given(samples)
def test_a_rate_lies_between_its_own_bounds_and_is_never_negative(found: list[Sample]) -> None:
    rate = derive.rate_from_samples(found, "arrival")
    assert rate is not None
    assert 0 < rate.low <= rate.value <= rate.high


def test_a_steady_trial_has_its_rate_and_a_narrow_projection() -> None:
    rate = derive.rate_from_samples([Sample(4.0 * i, 10 * i) for i in range(9)], "arrival")
    assert rate is not None and rate.shown().steps_per_minute == pytest.approx(150)
    projection = derive.project(rate, step=700, steps=1140, step_seen_at=NOW, now=NOW, timeout_at=None)
    assert projection is not None
    assert projection.remaining_s == pytest.approx(176)
    assert projection.remaining_high_s - projection.remaining_low_s == pytest.approx(0)


def test_one_interval_says_little_and_the_projection_says_so() -> None:
    rate = derive.rate_from_samples([Sample(0, 0), Sample(10, 10)], "arrival")
    projection = derive.project(rate, step=10, steps=20, step_seen_at=NOW, now=NOW, timeout_at=None)
    assert projection is not None
    assert projection.remaining_high_s / projection.remaining_low_s == pytest.approx(4)


def test_one_sample_is_no_rate() -> None:
    assert derive.rate_from_samples([Sample(5, 100)], "arrival") is None
    assert derive.rate_from_samples([], "metrics") is None


@given(step=st.integers(0, 10**7), steps=st.integers(0, 10**7), waited=st.floats(-1e6, 1e9))
def test_no_projection_is_ever_negative(step: int, steps: int, waited: float) -> None:
    rate = MeasuredRate(1e-3, 5e-4, 2e-3, 100, "arrival")
    seen = NOW - timedelta(seconds=waited) if waited < 1e8 else NOW
    projection = derive.project(rate, step=step, steps=steps, step_seen_at=seen, now=NOW, timeout_at=NOW)
    if step >= steps:
        assert projection is None
    elif projection is not None:
        assert 0 < projection.remaining_low_s <= projection.remaining_s <= projection.remaining_high_s


def test_a_stalled_trial_does_not_come_nearer_to_its_end() -> None:
    rate = MeasuredRate(1.0, 0.5, 2.0, 60, "arrival")
    seen = NOW - timedelta(hours=3)
    projection = derive.project(rate, step=0, steps=600, step_seen_at=seen, now=NOW, timeout_at=NOW)
    assert projection is not None and projection.finish_at == NOW + timedelta(seconds=600)
    assert projection.past_timeout


def test_a_resume_point_gives_one_over_its_median_step_time() -> None:
    rate = derive.rate_from_step_seconds([0.4] * 40 + [60.0])
    assert rate is not None and rate.shown().steps_per_minute == pytest.approx(150)
    assert derive.rate_from_step_seconds([]) is None
    assert derive.rate_from_step_seconds([0.0, -1.0]) is None


@pytest.mark.parametrize(
    ("age_s", "unsettled", "state"),
    [(None, True, WatcherState.NONE), (30, True, WatcherState.ALIVE), (200, True, WatcherState.LATE),
     (361, True, WatcherState.DOWN), (10**6, False, WatcherState.FINISHED)],
)  # fmt: skip
def test_a_watcher_is_down_after_three_silent_intervals_with_work_left(
    age_s: float | None, unsettled: bool, state: WatcherState
) -> None:
    assert derive.watcher_state(age_s, unsettled=unsettled) is state


@given(unchanged=st.floats(0, 1e7), stamp=st.floats(-1e9, 1e9), changed=st.booleans(), back=st.booleans())
def test_no_skew_keeps_a_silent_lease_fresh(unchanged: float, stamp: float, changed: bool, back: bool) -> None:
    state = derive.lease_state(unchanged_s=unchanged, seen_to_change=changed, stamp_age_s=stamp, ended=False,
                               clock_went_back=back)  # fmt: skip
    if unchanged >= derive.LEASE_STALE_S:
        assert state is LeaseState.STALE
    if unchanged >= derive.LEASE_LATE_S:
        assert state is not LeaseState.FRESH
    if changed and unchanged < derive.LEASE_LATE_S:
        assert state is LeaseState.FRESH, "a heartbeat seen to move is alive, whatever its stamp"


@given(st.floats(-1e9, 1e9))
def test_an_age_is_shown_coarsely_and_never_below_zero(age_s: float) -> None:
    shown = derive.coarse(age_s)
    assert shown is not None and 0 <= shown <= max(0.0, age_s)
    assert derive.coarse(max(0.0, age_s) + derive.until_coarser(age_s) + 1e-3) != shown


def test_a_stopped_process_and_a_sleeping_machine_are_noticed_and_an_ordinary_wait_is_not() -> None:
    assert derive.was_suspended(monotonic_gap_s=600, wall_gap_s=600, asked_s=2)
    assert derive.was_suspended(monotonic_gap_s=2, wall_gap_s=600, asked_s=2)
    assert not derive.was_suspended(monotonic_gap_s=3, wall_gap_s=3, asked_s=2)
    assert not derive.was_suspended(monotonic_gap_s=61, wall_gap_s=61, asked_s=60)


@given(st.lists(st.tuples(st.integers(1, 3000), st.floats(-5, 5)), max_size=1500))
def test_each_step_stands_once_and_the_later_attempt_wins(logged: list[tuple[int, float]]) -> None:
    history, expected = History(), dict[int, float]()
    for step, loss in logged:
        history.add(step, loss)
        expected = {known: value for known, value in expected.items() if known < step} | {step: loss}
    points = history.points()
    assert len(points) <= 400
    assert all(a.step < b.step for a, b in pairwise(points))
    assert all(expected[point.step] == point.loss for point in points)
    if expected:
        assert points[-1].step == max(expected)


def test_a_long_run_keeps_its_beginning_its_end_and_a_bounded_number_of_points() -> None:
    history = History()
    for number in range(100_000):
        history.add(number, 1.0)
    points = history.points()
    assert len(history) <= 800 and len(points) <= 400
    assert (points[0].step, points[-1].step) == (0, 99_999)
    assert points_per_trial(1) == 400 and points_per_trial(1000) * 1000 <= 40_000


@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        (b"ep0 step 120/1140 loss 0.412 kl 0.000 anchor 0.000 0.155s/rec", step_lines.Step(0, 120, 1140, 0.412)),
        (b"ep2 step 1/9", step_lines.Step(2, 1, 9, None)),
        (b"ep0 step 5/9 loss nan kl 0.000", step_lines.Step(0, 5, 9, None, lost=True)),
        (b"ep0 step 5/9 loss 1e999", step_lines.Step(0, 5, 9, None, lost=True)),
        (b"ep0 step 5/9 loss ????", step_lines.Step(0, 5, 9, None)),
        (b"resumed from /runs/a b/resume: step 510, epoch 0, micro-batch 2040", step_lines.Resumed(510)),
        (b"saved /runs/r9/00-trial-0/checkpoint", step_lines.Saved()),
        (b"evaluated 150/700", step_lines.Scoring(150, 700)),
        (b"snapshot step 114: /x (training blocked 3.1 s, written in 88.0 s)", step_lines.Kept(114)),
        (b"[volume] committed resume point 510 (step-0000510) to the runs volume in 41 s", step_lines.Kept(510)),
        (b"device=cuda world=8 trainable params=27012.3M", None),
        (b"!!! ep0 step 5/9 loss 1.0", None),
        (b"ep0 step 99999999999999999999/9 loss 1.0", None),
        (b"\xff\xfe\x00", None),
    ],
)
def test_a_log_line_means_what_the_trainer_meant(line: bytes, meaning: step_lines.Line | None) -> None:
    assert step_lines.parse(line) == meaning


@given(st.binary(max_size=300))
def test_no_line_breaks_the_reader(line: bytes) -> None:
    step_lines.parse(line)
    step_lines.parse(b"ep0 step " + line)


def test_an_appended_step_leaves_the_points_before_it_as_they_were() -> None:
    history = History()
    for number in range(600):
        history.add(number, 1.0, float(number))
    before = history.points()
    history.add(600, 1.0, 600.0)
    after = history.points()
    assert all(a is b for a, b in zip(before[:-1], after, strict=False))
    assert (after[-1].step, after[-1].at_s, after[-1].steps_per_minute) == (600, 600.0, pytest.approx(60))
    history.rewind(10)
    assert [point.step for point in history.points()] == list(range(11))
