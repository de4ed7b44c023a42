"""The loss of the synthetic objective, and AdamW on it: conditional logit on plain features of each option."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kev.linear import FEATURES, Floats

MAX_GRAD_NORM = 1.0
BETAS = (0.9, 0.999)
EPSILON = 1e-8

Example = tuple[Floats, int]
"""(options, FEATURES) of one question, and the place of its label."""


@dataclass
class State:
    """All that the next step depends on, beside configuration and records."""

    weights: Floats = field(default_factory=lambda: np.zeros(len(FEATURES)))
    first: Floats = field(default_factory=lambda: np.zeros(len(FEATURES)))
    second: Floats = field(default_factory=lambda: np.zeros(len(FEATURES)))
    step: int = 0
    loss_sum: float = 0.0
    """Since the last line of the log."""

    def to_json(self) -> dict[str, Any]:
        arrays = {name: getattr(self, name).tolist() for name in ("weights", "first", "second")}
        return {**arrays, "step": self.step, "loss_sum": self.loss_sum}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "State":
        arrays = {name: np.array(value[name], dtype=np.float64) for name in ("weights", "first", "second")}
        return cls(**arrays, step=value["step"], loss_sum=value["loss_sum"])


def mean_loss(examples: list[Example], weights: Floats) -> tuple[float, Floats]:
    """The mean loss of some questions, and its gradient."""
    loss, gradient = 0.0, np.zeros(len(FEATURES))
    for rows, label in examples:
        z = rows @ weights
        p = np.exp(z - z.max())
        total = p.sum()
        loss += float(np.log(total) - (z[label] - z.max()))
        gradient += (p / total) @ rows - rows[label]
    return loss / len(examples), gradient / len(examples)


def adamw(state: State, gradient: Floats, rate: float, decay: float) -> None:
    """One step of AdamW (Loshchilov and Hutter, 2019), in place."""
    state.step += 1
    state.first = BETAS[0] * state.first + (1 - BETAS[0]) * gradient
    state.second = BETAS[1] * state.second + (1 - BETAS[1]) * gradient * gradient
    mean = state.first / (1 - BETAS[0] ** state.step)
    spread = state.second / (1 - BETAS[1] ** state.step)
    state.weights = state.weights * (1 - rate * decay) - rate * mean / (np.sqrt(spread) + EPSILON)
