"""The pointer head: how well each option answers its question, for all questions of a batch at once."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from kev.model.batch import Batch

PADDING_LOGIT = -1e30
"""The logit of an option that is not there: its probability is 0 exactly, and 0 times its logarithm is 0, not NaN."""


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Logits [Q, K] of a batch's questions in fp32, padded to the widest with PADDING_LOGIT; `option_counts` [Q]."""

    logits: Tensor
    option_counts: Tensor

    def log_probabilities(self) -> Tensor:
        """The logarithms of every question's distribution, [Q, K]."""
        return self.logits.log_softmax(-1)

    def real(self) -> Tensor:
        """Which of the K options are there, [Q, K]."""
        return torch.arange(self.logits.shape[1], device=self.logits.device) < self.option_counts[:, None]

    def ragged(self) -> list[Tensor]:
        """One tensor of its own logits a question."""
        return [row[:count] for row, count in zip(self.logits, self.option_counts.tolist(), strict=True)]


class PointerHead(nn.Module):
    """Logit of an option: dot(k(its closing token), q(the decide token)) / sqrt(head_dim), in fp32 in every mode.

    In evaluation mode logits are divided by `temperature`; in training mode never, so that training is blind to it.
    """

    def __init__(self, hidden: int, dimension: int = 256, *, temperature: float = 1.0) -> None:
        super().__init__()
        self.q = nn.Linear(hidden, dimension, dtype=torch.float32)
        self.k = nn.Linear(hidden, dimension, dtype=torch.float32)
        self.temperature = temperature

    def forward(self, hidden: Tensor, batch: Batch) -> Scores:
        """Score the questions of `batch` from the backbone's last states [B, L, d]."""
        flat = hidden.flatten(0, 1)
        with torch.autocast(hidden.device.type, enabled=False):
            decides = self.q(flat.index_select(0, batch.decide).float())
            options = self.k(flat.index_select(0, batch.close).float())
            logits = (options * decides.index_select(0, batch.question)).sum(-1) / math.sqrt(self.q.out_features)
            if not self.training:
                logits = logits / self.temperature
        shape = (len(batch.decide), batch.widest)
        padded = logits.new_full(shape, PADDING_LOGIT).index_put((batch.question, batch.slot), logits)
        return Scores(padded, batch.option_counts)
