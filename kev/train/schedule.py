"""The learning rate of each optimizer step: one cycle with a warm-up of a tenth, for any number of steps.

The figures are those of `torch.optim.lr_scheduler.OneCycleLR` with its defaults (cosine, start at peak / 25, end at
start / 10,000, beta1 from 0.95 to 0.85 and back), which is what published runs used. torch's own divides by the
length of the warm-up and fails at exactly 10 steps, where that length is zero. A rate here is a function of the step,
so a continuation has no scheduler state to restore.
"""

import math
from dataclasses import dataclass

WARM_UP = 0.1
START_DIVISOR = 25.0
END_DIVISOR = 1e4
BETA1_HIGH, BETA1_LOW = 0.95, 0.85


@dataclass(frozen=True, slots=True)
class Rate:
    """What one optimizer step runs at. `share` times the peak of a parameter group is its learning rate."""

    share: float
    beta1: float


@dataclass(frozen=True, slots=True)
class OneCycle:
    """The schedule of a run of `steps` optimizer steps."""

    steps: int

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"a schedule has at least one step, not {self.steps}")

    def at(self, step: int) -> Rate:
        """The rate of the step number `step`, from 0."""
        if not 0 <= step < self.steps:
            raise ValueError(f"step {step} is outside a schedule of {self.steps} steps")
        peak_at, end = WARM_UP * self.steps - 1, self.steps - 1
        start_share = 1 / START_DIVISOR
        if step <= peak_at and peak_at > 0:
            way = step / peak_at
            return Rate(_cosine(start_share, 1.0, way), _cosine(BETA1_HIGH, BETA1_LOW, way))
        # Below ten steps the peak lies before the first one, and the run starts on its way down, as torch's does.
        way = (step - peak_at) / (end - peak_at)
        return Rate(_cosine(1.0, start_share / END_DIVISOR, way), _cosine(BETA1_LOW, BETA1_HIGH, way))

    @property
    def warm_up_steps(self) -> int:
        """Steps that run below the peak on the way up."""
        peak_at = WARM_UP * self.steps - 1
        return math.ceil(peak_at) if peak_at > 0 else 0

    @property
    def warm_up(self) -> str:
        """How long it warms up, in words."""
        steps = self.warm_up_steps
        return f"{steps} of warm-up" if steps else "no warm-up, since a tenth of them is no more than one"

    def describe(self) -> str:
        """The schedule in words, for the log."""
        return f"one cycle over {self.steps} steps, {self.warm_up}"

    def warning(self) -> str | None:
        """What whoever planned so few steps should know; None for a schedule that trains."""
        if self.steps > 1:
            return None
        return (
            f"a single step runs at {self.at(0).share:.0e} of the peak rate and trains next to nothing; "
            "plan at least 2 steps"
        )


def _cosine(start: float, end: float, way: float) -> float:
    return end + (start - end) / 2.0 * (1 + math.cos(math.pi * way))
