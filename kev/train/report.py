"""What a training returns: where it wrote, what it did, and what was estimated of it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kev.train.memory import MemoryEstimate


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """A finished training.

    `resources` is what `training_metrics.json` holds; `kev.records.result.TrainingResources` names its keys.
    """

    checkpoint: Path
    steps: int
    """Optimizer steps, over all attempts."""
    loss: float | None
    """Mean loss of the last ten steps; None where the run had been finished before."""
    resources: dict[str, Any] = field(default_factory=dict)
    loss_modifiers: dict[str, int] = field(default_factory=dict)
    """How many questions each modifier of the loss touched, by plan key, over all attempts."""
    estimate: "MemoryEstimate | None" = None
    """Peak memory estimated before the start, without what the process held already."""
    resumed_from: int | None = None
    """The step it went on from; None for a run from the start."""
    snapshots: tuple[Path, ...] = ()
    warnings: tuple[str, ...] = ()
    threads: int = 1
    already_finished: bool = False
    """Nothing was done: a run before had written everything."""
