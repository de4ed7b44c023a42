"""Which records each step of the synthetic objective takes, and at what rate: a function of plan and step alone."""

import math
from dataclasses import dataclass

import numpy as np

from kev.records.plan import TrialConfig

WARM_UP = 0.1
FIRST_RATE = 1 / 25
LAST_RATE = 1 / 250_000
"""OneCycle: the share of steps that the rate rises for, and the rate at both ends as a part of the highest."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Which records each step takes, and at what rate."""

    config: TrialConfig
    records: int

    @property
    def per_step(self) -> int:
        return self.config.batch * self.config.accum

    @property
    def steps_per_epoch(self) -> int:
        return math.ceil(self.records / self.per_step)

    @property
    def total(self) -> int:
        """Optimizer steps over all epochs."""
        planned = self.steps_per_epoch * self.config.epochs
        return min(planned, self.config.max_steps) if self.config.max_steps else planned

    def epoch_of(self, step: int) -> int:
        """The epoch, from 0, of a step that counts from 1."""
        return (step - 1) // self.steps_per_epoch

    def indices(self, step: int) -> list[int]:
        """The records of a step that counts from 1."""
        epoch = self.epoch_of(step)
        order = np.random.default_rng([self.config.seed, epoch]).permutation(self.records)
        start = (step - 1 - epoch * self.steps_per_epoch) * self.per_step
        return [int(each) for each in order[start : start + self.per_step]]

    def seen(self, step: int) -> int:
        """Records seen after a step, over all epochs."""
        epochs, inside = divmod(step, self.steps_per_epoch)
        return epochs * self.records + min(inside * self.per_step, self.records)

    def rate(self, step: int) -> float:
        """The learning rate of a step that counts from 1: up along a cosine for WARM_UP of all, then down."""
        highest, warm = self.config.lr, max(1.0, WARM_UP * self.total)
        if step <= warm:
            return _cosine(highest * FIRST_RATE, highest, step / warm)
        return _cosine(highest, highest * LAST_RATE, (step - warm) / max(1.0, self.total - warm))


def _cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * share)) / 2
