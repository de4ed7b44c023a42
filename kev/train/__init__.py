"""Training the decision model: from a trial's configuration and its records to a checkpoint.

    from kev.train import run_training

    report = run_training(config, records, out_dir, resume=False, clock=SystemClock())

`config` is a `kev.records.plan.TrialConfig` or an entry of a plan as JSON; `records` are `DataRecord`s or the lines of
a partition as JSON; `out_dir` is the trial's directory, in which a run writes

    train.log                 lines for people, one every 10 optimizer steps; appended by every attempt
    metrics.jsonl             a record for every optimizer step (kev.records.step_metrics)
    checkpoint/               the finished checkpoint; training_metrics.json comes last
    checkpoint/resume/        while it trains: step-<N>/rank<r>.pt, and latest.json, which acknowledges a point
    snapshots/step-<N>/checkpoint/   of full-weight runs, each there only when complete

and `options` (`TrainingOptions`, kev.train.settings) are what is not learned from: device, threads, how often a resume
point is kept. `resume=True` goes on from the newest complete resume point, says so where there is none, and returns
at once where the run is finished. Several ranks are started by torchrun; each calls this with the same arguments.

Raises Refused for what cannot be trained, before anything is written; NotFound or DamagedFile for a base, an anchor
file or resume points that cannot be read; Diverged where the loss is no number any more.

    python -m kev.train --plan PLAN.json --index 0 --suite evals/decision-v1 --out runs/study/00-trial-0 [--resume]

Importing this package loads no torch.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kev.clock import Clock, SystemClock

if TYPE_CHECKING:
    from kev.data.record import DataRecord
    from kev.records.plan import TrialConfig
    from kev.train.report import TrainingReport
    from kev.train.settings import TrainingOptions

__all__ = ["run_training"]


def run_training(
    config: "TrialConfig | Mapping[str, Any]",
    records: "Sequence[DataRecord | Mapping[str, Any]]",
    out_dir: Path,
    *,
    resume: bool = False,
    clock: Clock | None = None,
    options: "TrainingOptions | None" = None,
) -> "TrainingReport":
    """Train one trial and return what it did; see the package's description."""
    from kev.train.run import train_trial
    from kev.train.settings import TrainingOptions

    return train_trial(
        config, records, out_dir, resume=resume, clock=clock or SystemClock(), options=options or TrainingOptions()
    )
