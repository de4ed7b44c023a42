"""Every part of the loss is what its formula says, touches whom it should, and counts them."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kev.model.head import PADDING_LOGIT, Scores
from kev.train.examples import Ask
from kev.train.losses import (
    LossWeights,
    anchor_divergence,
    permutation_divergence,
    question_losses,
    targets_of,
    touched,
)

HARD = Ask("hard", "choice", "", ["a", "b", "c"], 1)
SOFT = Ask("soft", "noul", "", ["no", "yes"], 0, target=(0.75, 0.25))
LEVELS = Ask("levels", "score", "", ["low", "mid", "high"], 0)
ASKS = [HARD, SOFT, LEVELS]
PROBABILITIES = [[0.5, 0.3, 0.2], [0.6, 0.4], [0.2, 0.3, 0.5]]


def scores_of(probabilities: list[list[float]]) -> Scores:
    width = max(len(row) for row in probabilities)
    padded = [[math.log(p) for p in row] + [PADDING_LOGIT] * (width - len(row)) for row in probabilities]
    counts = torch.tensor([len(row) for row in probabilities])
    return Scores(torch.tensor(padded, requires_grad=True), counts)


def losses(**weights: float) -> list[float]:
    found: list[float] = question_losses(scores_of(PROBABILITIES), targets_of(ASKS), LossWeights(**weights)).tolist()
    return found


PLAIN = [-math.log(0.3), -0.75 * math.log(0.6) - 0.25 * math.log(0.4), -math.log(0.2)]


def test_a_plain_loss_is_cross_entropy_against_label_or_soft_target() -> None:
    assert losses() == pytest.approx(PLAIN, rel=1e-6)


def test_smoothing_spreads_over_a_questions_own_options_and_leaves_soft_targets_alone() -> None:
    spread = [-sum(math.log(p) for p in row) / 3 for row in (PROBABILITIES[0], PROBABILITIES[2])]
    expected = [0.9 * PLAIN[0] + 0.1 * spread[0], PLAIN[1], 0.9 * PLAIN[2] + 0.1 * spread[1]]
    assert losses(label_smoothing=0.1) == pytest.approx(expected, rel=1e-6)


def test_brier_adds_squared_errors_of_hard_labels() -> None:
    first = 0.5**2 + 0.7**2 + 0.2**2
    last = 0.8**2 + 0.3**2 + 0.5**2
    assert losses(brier_w=2.0) == pytest.approx([PLAIN[0] + 2 * first, PLAIN[1], PLAIN[2] + 2 * last], rel=1e-6)


def test_focal_weighs_hard_labels_by_what_was_missed() -> None:
    expected = [PLAIN[0] * 0.7**2, PLAIN[1], PLAIN[2] * 0.8**2]
    assert losses(focal_gamma=2.0) == pytest.approx(expected, rel=1e-6)


def test_the_ordinal_part_is_the_ranked_probability_score_of_score_questions() -> None:
    ranked = ((0.2 - 1) ** 2 + (0.5 - 1) ** 2) / 2
    assert losses(ord_w=0.5) == pytest.approx([PLAIN[0], PLAIN[1], PLAIN[2] + 0.5 * ranked], rel=1e-6)


@pytest.mark.parametrize(
    ("weights", "counts"),
    [
        ({}, {}),
        ({"label_smoothing": 0.1}, {"label_smoothing": 2}),
        ({"brier_w": 1.0}, {"brier_w": 2}),
        ({"focal_gamma": 2.0, "ord_w": 0.1}, {"focal_gamma": 2, "ord_w": 1}),
    ],
)
def test_each_modifier_counts_the_questions_it_touches(weights: dict[str, float], counts: dict[str, int]) -> None:
    assert touched(targets_of(ASKS), LossWeights(**weights)) == counts


@given(
    st.lists(st.lists(st.floats(-80, 80), min_size=1, max_size=6), min_size=1, max_size=5),
    st.sampled_from(["label_smoothing", "brier_w", "focal_gamma", "ord_w"]),
    st.floats(0.05, 0.2),
)
def test_losses_and_their_gradients_are_finite_however_sure_the_model_is(
    logits: list[list[float]], modifier: str, weight: float
) -> None:
    width = max(len(row) for row in logits)
    table = torch.tensor([row + [PADDING_LOGIT] * (width - len(row)) for row in logits], requires_grad=True)
    asks = [Ask("q", "score", "", ["o"] * len(row), len(row) - 1) for row in logits]
    scores = Scores(table, torch.tensor([len(row) for row in logits]))
    loss = question_losses(scores, targets_of(asks), LossWeights(**{modifier: weight})).sum()
    loss.backward()
    assert torch.isfinite(loss)
    assert table.grad is not None and torch.isfinite(table.grad).all()


def test_the_gradient_of_a_padding_option_is_zero() -> None:
    scores = scores_of(PROBABILITIES)
    question_losses(scores, targets_of(ASKS), LossWeights(label_smoothing=0.1, ord_w=0.5)).sum().backward()
    assert scores.logits.grad is not None
    assert scores.logits.grad[1, 2] == 0


def log_p(rows: list[list[float]]) -> torch.Tensor:
    return scores_of(rows).log_probabilities().detach()


def test_two_orders_with_the_same_answers_do_not_diverge() -> None:
    first, second = log_p([[0.5, 0.3, 0.2], [0.6, 0.4]]), log_p([[0.2, 0.5, 0.3], [0.6, 0.4]])
    divergence, count = permutation_divergence(first, second, [(1, 2, 0), ()])
    assert count == 1
    assert float(divergence) == pytest.approx(0.0, abs=1e-6)


def test_two_orders_diverge_by_both_directions_of_kl_over_the_permuted_questions_alone() -> None:
    first, second = log_p([[0.5, 0.3, 0.2], [0.9, 0.1]]), log_p([[0.1, 0.3, 0.6], [0.1, 0.9]])
    divergence, count = permutation_divergence(first, second, [(2, 1, 0), ()])
    p, q = [0.5, 0.3, 0.2], [0.6, 0.3, 0.1]
    both = sum((a - b) * (math.log(a) - math.log(b)) for a, b in zip(p, q, strict=True))
    assert (float(divergence), count) == (pytest.approx(both, rel=1e-5), 1)


def test_an_anchor_is_kl_from_the_teacher_over_the_questions_that_have_one() -> None:
    teachers: Any = [None, (0.5, 0.5), (0.0, 0.0, 1.0)]
    divergence, count = anchor_divergence(log_p(PROBABILITIES), teachers)
    expected = (0.5 * math.log(0.5 / 0.6) + 0.5 * math.log(0.5 / 0.4) + math.log(1 / 0.5)) / 2
    assert (float(divergence), count) == (pytest.approx(expected, rel=1e-5), 2)


def test_nothing_permuted_and_nothing_anchored_add_nothing() -> None:
    assert permutation_divergence(log_p(PROBABILITIES), log_p(PROBABILITIES), [(), (), ()])[1] == 0
    assert float(anchor_divergence(log_p(PROBABILITIES), [None] * 3)[0]) == 0
