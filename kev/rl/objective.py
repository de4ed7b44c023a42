"""What an answer is worth, and which way it moves the policy. Everything is a tensor [Q, K]: questions by options.

Options that are not there have probability 0 and count nothing.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

SMALLEST_DEVIATION = 1e-6


def option_rewards(old: Tensor, wanted: Tensor, calibration: float) -> Tensor:
    """The reward of every option: `wanted` less `calibration` times the probability it was chosen with.

    `old` are the log-probabilities that answers are drawn by; `wanted` is 1 at the solver's answer, or the target
    where it is not one answer. At `calibration` 0 the reward is that of being right, which is highest at certainty,
    however often the label is wrong. At 1 it is the slope of the quadratic score q_y - (q_0^2 + ... + q_K^2) / 2
    (Brier's, up to a constant): its policy gradient is that score's gradient, and the best policy answers with the
    true probabilities.
    """
    return wanted - calibration * old.exp()


def draw_answers(old: Tensor, group: int, generator: torch.Generator) -> Tensor:
    """The share of `group` answers that each option got, drawn by `old`; with `group` 0 the probabilities themselves.

    Drawn on the CPU whatever the device, so that equal seeds give equal answers.
    """
    probability = old.exp()
    if group == 0:
        return probability
    drawn = torch.multinomial(probability.double().cpu(), group, replacement=True, generator=generator)
    counts = torch.zeros(old.shape, dtype=torch.float32)
    counts.scatter_add_(1, drawn, torch.ones(drawn.shape, dtype=torch.float32))
    return (counts / group).to(old.device)


def advantages(rewards: Tensor, weights: Tensor, *, by_deviation: bool = False) -> Tensor:
    """Rewards less the group's mean, by the shares that the group gave them.

    `by_deviation` divides by the group's standard deviation, as GRPO does. That weighs each question by something
    that depends on its label, so a proper score is proper no longer (Liu et al., 2025, arXiv:2503.20783, call it a
    bias of difficulty).
    """
    centred = rewards - (weights * rewards).sum(-1, keepdim=True)
    if not by_deviation:
        return centred
    deviation = (weights * centred.square()).sum(-1, keepdim=True).sqrt()
    return torch.where(deviation > 0, centred / (deviation + SMALLEST_DEVIATION), 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """The parts of a batch's loss, a number a question, [Q] each."""

    surrogate: Tensor
    """What is made larger: the mean over answers of the clipped, advantage-weighted ratio."""
    divergence: Tensor
    """KL(policy || reference); 0 where there is no reference."""
    entropy: Tensor
    clipped: Tensor
    """Share of the answers that the clip keeps from moving the policy further."""

    def loss(self, *, kl_w: float, entropy_w: float) -> Tensor:
        """The loss of each question."""
        return kl_w * self.divergence - self.surrogate - entropy_w * self.entropy


def terms_of(
    now: Tensor, old: Tensor, reference: Tensor | None, weights: Tensor, advantage: Tensor, *, clip: float
) -> Terms:
    """The terms at log-probabilities `now`, of answers that were drawn by `old` with the shares `weights`.

    The ratio now / old is clipped to 1 +- `clip` where going on would raise the surrogate, as in PPO (Schulman et al.,
    2017, arXiv:1707.06347).
    """
    ratio = (now - old).exp()
    held = ratio.clamp(1 - clip, 1 + clip)
    surrogate = (weights * torch.minimum(ratio * advantage, held * advantage)).sum(-1)
    probability = now.exp()
    divergence = torch.zeros_like(surrogate) if reference is None else (probability * (now - reference)).sum(-1)
    stopped = ((advantage > 0) & (ratio > 1 + clip)) | ((advantage < 0) & (ratio < 1 - clip))
    return Terms(surrogate, divergence, -(probability * now).sum(-1), (weights * stopped).sum(-1).detach())
