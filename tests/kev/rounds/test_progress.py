"""A trial that cannot be done in time is told early, and one that was restarted is judged by what it does now."""

import pytest

from kev.rounds.watching.progress import Step, in_one_go, projected_s, steps_of, warn_of_timeout

RUN = [(float(at), f"ep0 step {step}/1140 loss 2.1 kl 0.000 anchor 0.000 0.161s/rec")
       for at, step in enumerate(range(500, 650, 10))]  # fmt: skip


def restarted(gap_s: float, first: int = 610, count: int = 6) -> list[Step]:
    """Ten steps a second to 640, a restart from 600 after `gap_s`, and on at the same pace."""
    begun = RUN[-1][0] + gap_s
    return steps_of([*RUN, *((begun + k, f"ep0 step {first + 10 * k}/1140 loss 2.0") for k in range(count))])


def test_a_steady_trial_is_projected_from_its_own_pace() -> None:
    assert projected_s(steps_of(RUN)) == pytest.approx(64.0)
    assert warn_of_timeout(steps_of(RUN), 100.0, 151.0, 0) is None
    said = warn_of_timeout(steps_of(RUN), 100.0, 149.0, 2)
    assert said is not None and said.startswith("step 640 of 1140") and said.endswith("2 more attempts are allowed")


@pytest.mark.parametrize("gap_s", [1.0, 600.0])
def test_steps_that_were_done_twice_and_the_restart_between_slow_nothing_down(gap_s: float) -> None:
    steps = restarted(gap_s)
    assert [step.step for step in in_one_go(steps)] == [610, 620, 630, 640, 650, 660]
    # 48 s are left from step 660; with the restart among its lines it would be thousands.
    assert warn_of_timeout(steps, 1000.0, 1049.0, 0) is None
    assert warn_of_timeout(steps, 1000.0, 1047.0, 0) is not None


def test_nothing_is_said_until_the_restarted_run_has_shown_its_pace() -> None:
    assert warn_of_timeout(restarted(600.0, count=1), 1000.0, 10.0, 0) is None


def test_a_step_past_the_registered_total_needs_no_negative_time() -> None:
    steps = [Step(1130, 1140, 0.0), Step(1150, 1140, 2.0)]
    assert warn_of_timeout(steps, 100.0, 100.0, 0) is None
