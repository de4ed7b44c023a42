"""The seam between a trial and a synthetic method of training, and what each must do; models are in `models`.

A method writes the checkpoint and everything beside it; the trial around it holds the lease, commits and scores.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kev.clock import Clock
from kev.data.record import DataRecord
from kev.errors import UsageError
from kev.records.plan import TrialConfig
from kev.suite import Suite
from kev.worker import synthetic

if TYPE_CHECKING:
    from kev.worker.synthetic_scorer import SyntheticScorer
    from kev.worker.synthetic_training import SyntheticTrainer

CHECKPOINT = "checkpoint"
TRAINING_CONFIG = "training_config.json"
TRAINING_METRICS = "training_metrics.json"
"""Written last: a checkpoint without it is not whole."""


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """One attempt at training one trial."""

    config: TrialConfig
    suite: Suite
    records: list[DataRecord]
    """Of the train partition, in its order."""
    directory: Path
    """Of the trial; a resume point in it is where this attempt goes on."""
    shown: str
    """The directory as people know it: `/runs/<study>/<NN>-<label>`, wherever the volume is mounted."""
    attempt: int
    clock: Clock
    say: Callable[[str], None]
    """Takes a line of the training log."""
    check: Callable[[], None]
    """Called at every step; raises where the attempt may not go on."""


def find_trainer(base: str) -> "SyntheticTrainer":
    """The method that trains the synthetic `base`. Raises UsageError for any other."""
    if synthetic.is_synthetic(base):
        return synthetic.find(base)
    raise UsageError(f"base {base}: is none of {synthetic.NAMES}; kev.trial trains models")


def load_checkpoint(checkpoint: Path) -> "SyntheticScorer":
    """A checkpoint that a synthetic method wrote. Raises NotFound, DamagedFile, or UsageError as `find_trainer`."""
    config = synthetic.read_training_config(checkpoint / TRAINING_CONFIG)
    return find_trainer(str(config["args"].get("base"))).load(checkpoint)
