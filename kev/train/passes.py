"""One pass of the model forward and backward, and what it says of itself."""

from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from kev.model.decision_model import DecisionModel
from kev.train.feed import Fed
from kev.train.losses import (
    LossWeights,
    anchor_divergence,
    permutation_divergence,
    question_losses,
    targets_of,
    touched,
)


@dataclass(slots=True)
class PassResult:
    """The parts of the step's loss that this pass adds, as tensors that wait for no device, and its counts."""

    loss: Tensor
    kl: Tensor
    anchor: Tensor
    tokens: int
    padded_tokens: int
    touched: Counter[str] = field(default_factory=Counter)


def run_pass(model: DecisionModel, fed: Fed, weights: LossWeights, *, step_records: int, bf16: bool) -> PassResult:
    """Run `fed` forward and backward; gradients are added to those that are there."""
    batch = model.collate(fed.encodings)
    with _precision(model, bf16):
        scores = model(batch)
    device = scores.logits.device
    targets = targets_of(fed.asks, device=device)
    losses = question_losses(scores, targets, weights)
    loss = (losses * torch.tensor(fed.shares, device=device)).sum()
    counts = touched(targets, weights)
    result = PassResult(
        loss.detach(), torch.zeros((), device=device), torch.zeros((), device=device), batch.tokens,
        batch.padded_tokens, counts,
    )  # fmt: skip
    share = fed.records / step_records
    log_p = scores.log_probabilities()
    if weights.anchor_w:
        divergence, count = anchor_divergence(log_p, [ask.teacher for ask in fed.asks])
        result.anchor = divergence.detach() * share
        counts["anchor_w"] += count
        loss = loss + weights.anchor_w * share * divergence
    if weights.perm_kl and fed.permuted:
        other = model.collate(fed.permuted)
        with _precision(model, bf16):
            log_q = model(other).log_probabilities()
        chosen = log_p[torch.tensor(fed.permuted_questions, device=device)]
        width = max(chosen.shape[1], log_q.shape[1])
        divergence, count = permutation_divergence(_widened(chosen, width), _widened(log_q, width), fed.moved)
        result.kl = divergence.detach() * share
        counts["perm_kl"] += count
        result.tokens += other.tokens
        loss = loss + weights.perm_kl * share * divergence
    torch.autograd.backward(loss)
    return result


def _widened(log_p: Tensor, width: int) -> Tensor:
    return torch.nn.functional.pad(log_p, (0, width - log_p.shape[1]), value=-1e30)


def _precision(model: DecisionModel, bf16: bool) -> AbstractContextManager[Any]:
    return torch.autocast(model.device.type, dtype=torch.bfloat16) if bf16 else nullcontext()
