"""The answers to one pass of questions, and the passes that learn from them."""

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from kev.errors import Diverged
from kev.model.batch import Batch
from kev.model.decision_model import DecisionModel
from kev.rl.config import RlConfig
from kev.rl.objective import Terms, advantages, draw_answers, option_rewards, terms_of
from kev.rl.reference import Reference
from kev.train.feed import Fed
from kev.train.losses import targets_of


@dataclass(slots=True)
class Measures:
    """Sums over questions, each weighed by its share of the step."""

    loss: float = 0.0
    reward: float = 0.0
    """Mean reward of the answers."""
    accuracy: float = 0.0
    """Share of the answers that are the solver's."""
    kl: float = 0.0
    entropy: float = 0.0
    clip_share: float = 0.0
    tokens: int = 0
    padded_tokens: int = 0

    def add(self, other: "Measures") -> None:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Questions as they were asked, and what came of the answers: [Q, K] each, [Q] for the shares."""

    batch: Batch
    old: Tensor
    reference: Tensor | None
    weights: Tensor
    rewards: Tensor
    wanted: Tensor
    advantage: Tensor
    shares: Tensor


def first_update(
    model: DecisionModel, fed: Fed, reference: Reference | None, config: RlConfig, generator: torch.Generator
) -> tuple[Answers, Measures]:
    """Answer the questions of `fed` and learn from it once: the pass that gives the answers gives the gradient too.

    Raises Diverged where the answers are no numbers, from which nothing can be drawn.
    """
    batch = model.collate(fed.encodings)
    before = None
    if reference is not None:
        with torch.no_grad(), reference.in_place():
            before = model(batch).log_probabilities()
    now = model(batch).log_probabilities()
    old = now.detach()
    if not (old.isfinite().all() and (before is None or before.isfinite().all())):
        raise Diverged("the model's answers are no numbers any more; lower lr, or start from another checkpoint")
    wanted = targets_of(fed.asks, device=old.device).distribution
    weights = draw_answers(old, config.group, generator)
    rewards = option_rewards(old, wanted, config.calibration)
    advantage = advantages(rewards, weights, by_deviation=config.normalise == "std")
    shares = torch.tensor(fed.shares, device=old.device)
    answers = Answers(batch, old, before, weights, rewards, wanted, advantage, shares)
    return answers, _learn(answers, now, config)


def next_update(model: DecisionModel, answers: Answers, config: RlConfig) -> Measures:
    """Learn once more from answers that were given before; gradients are added to those that are there."""
    return _learn(answers, model(answers.batch).log_probabilities(), config)


def _learn(answers: Answers, now: Tensor, config: RlConfig) -> Measures:
    terms: Terms = terms_of(now, answers.old, answers.reference, answers.weights, answers.advantage, clip=config.clip)
    loss = (answers.shares * terms.loss(kl_w=config.kl_w, entropy_w=config.entropy_w)).sum()
    torch.autograd.backward(loss)

    def total(values: Tensor) -> float:
        return float((answers.shares * values.detach()).sum())

    return Measures(
        loss=float(loss.detach()),
        reward=total((answers.weights * answers.rewards).sum(-1)),
        accuracy=total((answers.weights * answers.wanted).sum(-1)),
        kl=total(terms.divergence),
        entropy=total(terms.entropy),
        clip_share=total(terms.clipped),
        tokens=answers.batch.tokens,
        padded_tokens=answers.batch.padded_tokens,
    )
