"""The loss of a batch of questions, and how many questions each modifier of it touched."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from kev.model.head import Scores
from kev.records.plan import TrialConfig
from kev.train.examples import Ask

MODIFIERS = ("label_smoothing", "brier_w", "focal_gamma", "ord_w", "perm_kl", "anchor_w")
"""Plan keys that change the loss; each is counted."""

SMALLEST_MISS = 1e-6
"""Floor of 1 - p before it is raised to a power below 1, whose slope at 0 is infinite."""


@dataclass(frozen=True, slots=True)
class LossWeights:
    """The modifiers of the loss; 0 leaves one out."""

    label_smoothing: float = 0.0
    brier_w: float = 0.0
    focal_gamma: float = 0.0
    ord_w: float = 0.0
    perm_kl: float = 0.0
    anchor_w: float = 0.0

    @classmethod
    def of(cls, config: TrialConfig) -> "LossWeights":
        return cls(**{field.name: float(getattr(config, field.name)) for field in fields(cls)})

    def in_use(self) -> tuple[str, ...]:
        """The modifiers that are on."""
        return tuple(name for name in MODIFIERS if getattr(self, name) > 0)


@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """What Q questions should answer: distributions [Q, K], and which of them are soft and which ordinal, [Q] each."""

    distribution: Tensor
    soft: Tensor
    ordinal: Tensor
    soft_count: int
    ordinal_count: int

    @property
    def hard_count(self) -> int:
        return len(self.soft) - self.soft_count


def targets_of(asks: Sequence[Ask], *, device: torch.device | str = "cpu") -> Targets:
    """The targets of `asks`, padded with 0 to the question of most options."""
    width = max(len(ask.options) for ask in asks)
    rows = []
    for ask in asks:
        row = [0.0] * width
        if ask.target is None:
            row[ask.label] = 1.0
        else:
            row[: len(ask.target)] = ask.target
        rows.append(row)
    soft = [ask.target is not None for ask in asks]
    ordinal = [ask.type == "score" for ask in asks]
    return Targets(
        torch.tensor(rows, device=device),
        torch.tensor(soft, device=device),
        torch.tensor(ordinal, device=device),
        sum(soft),
        sum(ordinal),
    )


def question_losses(scores: Scores, targets: Targets, weights: LossWeights) -> Tensor:
    """The loss of each question, [Q].

    Cross-entropy against the target distribution. Of hard labels only: smoothing spreads its share evenly over a
    question's own options; `brier_w` adds the summed squares of p minus the one-hot label; `focal_gamma` multiplies by
    (1 - p_label) to that power. Of score questions: `ord_w` adds the mean over the K - 1 thresholds of the squared
    difference of the cumulative distributions (the ranked probability score).
    """
    log_p = scores.log_probabilities()
    wanted, hard = targets.distribution, ~targets.soft
    if weights.label_smoothing:
        real = scores.real()
        spread = real / scores.option_counts[:, None]
        smoothed = torch.lerp(wanted, spread.to(wanted.dtype), weights.label_smoothing)
        wanted = torch.where(hard[:, None], smoothed, wanted)
    loss = -(wanted * log_p).sum(-1)
    if weights.brier_w:
        squares = (log_p.exp() - targets.distribution).square().sum(-1)
        loss = loss + weights.brier_w * squares * hard
    if weights.focal_gamma:
        miss = -torch.expm1(-loss)
        focused = loss * miss.clamp_min(SMALLEST_MISS).pow(weights.focal_gamma)
        loss = torch.where(hard, focused, loss)
    if weights.ord_w:
        gaps = (log_p.exp() - targets.distribution).cumsum(-1)[:, :-1]
        # Past a question's last threshold both distributions are complete, so padding adds only rounding; cut it off.
        thresholds = torch.arange(gaps.shape[1], device=gaps.device) < (scores.option_counts - 1)[:, None]
        ranked = (gaps.square() * thresholds).sum(-1) / (scores.option_counts - 1).clamp_min(1)
        loss = loss + weights.ord_w * ranked * targets.ordinal
    return loss


def touched(targets: Targets, weights: LossWeights) -> Counter[str]:
    """How many questions each modifier that is on changes the loss of."""
    counts = Counter(dict.fromkeys(("label_smoothing", "brier_w", "focal_gamma"), targets.hard_count))
    counts["ord_w"] = targets.ordinal_count
    return Counter({name: counts[name] for name in weights.in_use() if name in counts})


def permutation_divergence(log_p: Tensor, log_q: Tensor, places: Sequence[tuple[int, ...]]) -> tuple[Tensor, int]:
    """Symmetric KL between the answers to two orders of the same options, averaged over the permuted questions.

    `places[i]` says where each option of question i went, and is empty for one that was not permuted. Returns 0 and 0
    where none was.
    """
    chosen = [row for row, place in enumerate(places) if place]
    if not chosen:
        return log_p.new_zeros(()), 0
    index = torch.zeros((len(chosen), log_p.shape[1]), dtype=torch.long)
    real = torch.zeros((len(chosen), log_p.shape[1]), dtype=torch.bool)
    for row, question in enumerate(chosen):
        place = places[question]
        index[row, : len(place)] = torch.tensor(place)
        real[row, : len(place)] = True
    rows = torch.tensor(chosen, device=log_p.device)
    index, real = index.to(log_p.device), real.to(log_p.device)
    first = log_p[rows]
    second = log_q[rows].gather(1, index)
    difference = torch.where(real, first - second, 0.0)
    weight = torch.where(real, first.exp() - second.exp(), 0.0)
    return (weight * difference).sum(-1).mean(), len(chosen)


def anchor_divergence(log_p: Tensor, teacher: Sequence[Sequence[float] | None]) -> tuple[Tensor, int]:
    """KL(teacher || model), averaged over the questions that have a teacher. Returns 0 and 0 where none has."""
    chosen = [row for row, masses in enumerate(teacher) if masses is not None]
    if not chosen:
        return log_p.new_zeros(()), 0
    wanted = torch.zeros((len(chosen), log_p.shape[1]))
    for row, question in enumerate(chosen):
        masses = teacher[question]
        assert masses is not None
        wanted[row, : len(masses)] = torch.tensor(list(masses))
    wanted = wanted.to(log_p.device)
    own = torch.special.xlogy(wanted, wanted).sum(-1)
    return (own - (wanted * log_p[torch.tensor(chosen, device=log_p.device)]).sum(-1)).mean(), len(chosen)
