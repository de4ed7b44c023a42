"""Rewards, advantages and the surrogate, by vectors worked out by hand and by the laws they must obey."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kev.rl.objective import advantages, draw_answers, option_rewards, terms_of

LOGITS = st.lists(st.floats(-3, 3), min_size=2, max_size=6)


def log_p(*probabilities: float) -> torch.Tensor:
    return torch.tensor([probabilities], dtype=torch.float64).log()


def quadratic(probability: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """The expected quadratic score of answering `probability` where `truth` holds."""
    return (truth * probability).sum() - probability.square().sum() / 2


# ---- rewards


def test_at_no_calibration_the_reward_is_that_of_being_right() -> None:
    rewards = option_rewards(log_p(0.7, 0.2, 0.1), torch.tensor([[0.0, 1.0, 0.0]]), 0.0)
    assert rewards.tolist() == [[0.0, 1.0, 0.0]]


def test_at_full_calibration_an_option_is_charged_what_was_put_on_it() -> None:
    rewards = option_rewards(log_p(0.7, 0.2, 0.1), torch.tensor([[0.0, 1.0, 0.0]]), 1.0)
    assert rewards[0].tolist() == pytest.approx([-0.7, 0.8, -0.1])


def test_advantages_are_rewards_less_the_mean_of_the_answers_that_were_given() -> None:
    rewards = torch.tensor([[0.0, 1.0, 0.0]])
    weights = torch.tensor([[0.5, 0.25, 0.25]])
    assert advantages(rewards, weights)[0].tolist() == pytest.approx([-0.25, 0.75, -0.25])
    deviation = math.sqrt(0.5 * 0.0625 + 0.25 * 0.5625 + 0.25 * 0.0625)
    by_deviation = advantages(rewards, weights, by_deviation=True)[0].tolist()
    assert by_deviation == pytest.approx([-0.25 / deviation, 0.75 / deviation, -0.25 / deviation], rel=1e-4)


@given(LOGITS, st.integers(0, 40))
@settings(deadline=None)
def test_the_answers_of_a_group_have_a_mean_advantage_of_zero(logits: list[float], group: int) -> None:
    old = torch.tensor([logits], dtype=torch.float64).log_softmax(-1)
    weights = draw_answers(old, group, torch.Generator().manual_seed(group))
    assert float(weights.sum()) == pytest.approx(1, abs=1e-6)
    found = advantages(torch.arange(len(logits), dtype=torch.float64)[None], weights)
    assert float((weights * found).sum()) == pytest.approx(0, abs=1e-5)


def test_a_group_of_one_mind_moves_nothing() -> None:
    weights = torch.tensor([[0.0, 1.0, 0.0]])
    found = advantages(torch.tensor([[0.0, 1.0, 0.0]]), weights, by_deviation=True)
    assert found.tolist() == [[0.0, 0.0, 0.0]]


def test_answers_are_drawn_as_often_as_they_are_likely_and_padding_never() -> None:
    old = torch.tensor([[math.log(0.6), math.log(0.4), -1e30]])
    drawn = draw_answers(old, 20_000, torch.Generator().manual_seed(3))[0].tolist()
    assert drawn[:2] == pytest.approx([0.6, 0.4], abs=0.02)
    assert drawn[2] == 0.0
    assert draw_answers(old, 0, torch.Generator())[0].tolist() == pytest.approx([0.6, 0.4, 0.0])


# ---- the surrogate


def test_the_clip_holds_where_going_on_would_be_rewarded_and_nowhere_else() -> None:
    old = log_p(0.25, 0.25, 0.25, 0.25)
    now = log_p(0.4, 0.1, 0.4, 0.1)  # ratios 1.6, 0.4, 1.6, 0.4
    advantage = torch.tensor([[1.0, 1.0, -1.0, -1.0]], dtype=torch.float64)
    weights = torch.full((1, 4), 0.25, dtype=torch.float64)
    found = terms_of(now, old, None, weights, advantage, clip=0.2)
    # min(1.6, 1.2) + min(0.4, 0.8) + min(-1.6, -1.2) + min(-0.4, -0.8)
    assert float(found.surrogate) == pytest.approx((1.2 + 0.4 - 1.6 - 0.8) / 4)
    assert float(found.clipped) == pytest.approx(0.5)


def test_divergence_and_entropy_are_those_of_the_textbook() -> None:
    now, reference = log_p(0.5, 0.5), log_p(0.9, 0.1)
    zero = torch.zeros(1, 2, dtype=torch.float64)
    found = terms_of(now, now, reference, now.exp(), zero, clip=0.2)
    assert float(found.divergence) == pytest.approx(0.5 * math.log(0.5 / 0.9) + 0.5 * math.log(0.5 / 0.1))
    assert float(found.entropy) == pytest.approx(math.log(2))
    assert float(found.loss(kl_w=2.0, entropy_w=0.5)) == pytest.approx(2 * float(found.divergence) - 0.5 * math.log(2))


def test_padding_changes_no_term() -> None:
    def terms(padding: list[float]) -> list[float]:
        now = torch.tensor([[0.3, -0.2, 1.0, *padding]], requires_grad=True).log_softmax(-1)
        old = torch.tensor([[0.1, 0.1, 0.8, *padding]]).log_softmax(-1)
        wanted = torch.tensor([[0.0, 1.0, 0.0, *(0.0 for _ in padding)]])
        weights = draw_answers(old, 0, torch.Generator())
        advantage = advantages(option_rewards(old, wanted, 1.0), weights)
        found = terms_of(now, old, old, weights, advantage, clip=0.1)
        return [float(part.detach()) for part in (found.surrogate, found.divergence, found.entropy, found.clipped)]

    assert terms([-1e30, -1e30]) == pytest.approx(terms([]), abs=1e-6)


@given(LOGITS, st.data())
@settings(deadline=None)
def test_with_every_option_counted_the_gradient_is_that_of_the_score(logits: list[float], data: st.DataObject) -> None:
    label = data.draw(st.integers(0, len(logits) - 1))
    calibration = data.draw(st.sampled_from([0.0, 1.0]))
    wanted = torch.zeros(1, len(logits), dtype=torch.float64)
    wanted[0, label] = 1.0

    ours = torch.tensor([logits], dtype=torch.float64, requires_grad=True)
    now = ours.log_softmax(-1)
    old = now.detach()
    weights = draw_answers(old, 0, torch.Generator())
    advantage = advantages(option_rewards(old, wanted, calibration), weights)
    terms_of(now, old, None, weights, advantage, clip=0.2).surrogate.sum().backward()

    exact = torch.tensor([logits], dtype=torch.float64, requires_grad=True)
    probability = exact.softmax(-1)
    (quadratic(probability, wanted) if calibration else (wanted * probability).sum()).backward()
    assert ours.grad is not None and exact.grad is not None
    assert torch.allclose(ours.grad, exact.grad, atol=1e-9)


def test_the_mean_over_drawn_groups_is_the_gradient_of_all_options_but_for_the_share_of_its_own_baseline() -> None:
    # A mean that contains the answer itself takes 1 / group of the gradient away, and nothing else.
    group, rounds = 4, 4000
    old = torch.tensor([[0.5, -0.3, 0.2]]).log_softmax(-1).expand(rounds, 3)
    wanted = torch.tensor([[0.0, 0.0, 1.0]]).expand(rounds, 3)

    def gradient(group: int) -> torch.Tensor:
        logits = torch.tensor([0.5, -0.3, 0.2], requires_grad=True)
        now = logits.log_softmax(-1).expand(rounds, 3)
        weights = draw_answers(old, group, torch.Generator().manual_seed(1))
        advantage = advantages(option_rewards(old, wanted, 1.0), weights)
        terms_of(now, old, None, weights, advantage, clip=0.2).surrogate.mean().backward()
        assert logits.grad is not None
        return logits.grad

    assert gradient(group).tolist() == pytest.approx((gradient(0) * (group - 1) / group).tolist(), abs=0.01)


@given(st.lists(st.floats(0.05, 1), min_size=2, max_size=5), LOGITS)
@settings(deadline=None, max_examples=8)
def test_the_best_policy_is_the_truth_if_calibration_counts_and_certainty_if_not(
    masses: list[float], start: list[float]
) -> None:
    size = min(len(masses), len(start))
    truth = torch.tensor([masses[:size]], dtype=torch.float64)
    truth = truth / truth.sum()

    def learned(calibration: float) -> torch.Tensor:
        logits = torch.tensor([start[:size]], dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.Adam([logits], lr=0.1)
        for _ in range(150):
            now = logits.log_softmax(-1)
            old = now.detach()
            weights = draw_answers(old, 0, torch.Generator())
            # Labels drawn from the truth give these rewards on average.
            advantage = advantages(option_rewards(old, truth, calibration), weights)
            loss = terms_of(now, old, None, weights, advantage, clip=0.2).loss(kl_w=0.0, entropy_w=0.0).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return logits.detach().softmax(-1)

    assert torch.allclose(learned(1.0), truth, atol=0.02)
    ordered = truth.sort().values[0]
    if float(ordered[-1] - ordered[-2]) > 0.1:
        assert float(learned(0.0).max()) > float(truth.max()) + 0.3 * (1 - float(truth.max()))
