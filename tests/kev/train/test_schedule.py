"""The schedule is torch's one-cycle wherever torch has one, and works where torch divides by zero."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kev.train.schedule import OneCycle


def torch_rates(steps: int) -> list[tuple[float, float]]:
    """Learning rate and beta1 of every step by torch's own schedule, at a peak of 1."""
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=steps, pct_start=0.1)
    rates = []
    for step in range(steps):
        group = optimizer.param_groups[0]
        rates.append((group["lr"], group["betas"][0]))
        optimizer.step()
        if step < steps - 1:
            schedule.step()
    return rates


@pytest.mark.parametrize("steps", [*range(1, 10), *range(11, 65), 100, 1140])
def test_every_rate_is_torchs_where_torch_has_one(steps: int) -> None:
    ours = [OneCycle(steps).at(step) for step in range(steps)]
    for rate, (share, beta1) in zip(ours, torch_rates(steps), strict=True):
        assert rate.share == pytest.approx(share, rel=1e-9)
        assert rate.beta1 == pytest.approx(beta1, rel=1e-12)


def test_ten_steps_train_from_the_peak_down_where_torch_divides_by_zero() -> None:
    with pytest.raises(ZeroDivisionError):
        torch_rates(10)
    shares = [OneCycle(10).at(step).share for step in range(10)]
    assert shares[0] == 1.0
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] == pytest.approx(1 / 25 / 1e4)


@given(st.integers(1, 100_000), st.data())
def test_every_rate_of_every_length_is_a_positive_share_of_the_peak(steps: int, data: st.DataObject) -> None:
    rate = OneCycle(steps).at(data.draw(st.integers(0, steps - 1)))
    assert 0 < rate.share <= 1
    assert 0.85 - 1e-12 <= rate.beta1 <= 0.95 + 1e-12


@given(st.integers(11, 5_000))
def test_a_run_warms_up_as_long_as_it_says_and_slows_down_from_there(steps: int) -> None:
    schedule = OneCycle(steps)
    shares = [schedule.at(step).share for step in range(steps)]
    top = max(range(steps), key=lambda step: shares[step])
    assert top in (schedule.warm_up_steps - 1, schedule.warm_up_steps)
    assert shares[: top + 1] == sorted(shares[: top + 1])
    assert shares[top:] == sorted(shares[top:], reverse=True)


def test_a_single_step_is_warned_of_and_two_are_not() -> None:
    assert "4e-06 of the peak" in str(OneCycle(1).warning())
    assert OneCycle(2).warning() is None


@pytest.mark.parametrize("steps", range(1, 11))
def test_up_to_ten_steps_are_said_to_have_no_warm_up(steps: int) -> None:
    assert OneCycle(steps).warm_up_steps == 0
    assert "no warm-up" in OneCycle(steps).describe()


def test_a_warm_up_is_said_with_its_length() -> None:
    assert OneCycle(100).describe() == "one cycle over 100 steps, 9 of warm-up"


@pytest.mark.parametrize("step", [-1, 5])
def test_there_is_no_rate_outside_the_schedule(step: int) -> None:
    with pytest.raises(ValueError, match="outside a schedule of 5 steps"):
        OneCycle(5).at(step)
