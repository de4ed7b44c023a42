"""The end of a run: its checkpoint and what it used, in an order that a kill cannot make a lie of."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kev import files
from kev.checkpoint import HEAD, TWIN
from kev.errors import DamagedFile, NotFound
from kev.model.saving import Contents, write_checkpoint
from kev.train.parallel import whole
from kev.train.setup import Run
from kev.train.snapshots import TRAINING_CONFIG

TRAINING_METRICS = "training_metrics.json"
"""Written last: where it lies, the run is finished."""


def finished_metrics(checkpoint: Path) -> dict[str, Any] | None:
    """What the training that wrote `checkpoint` used; None for one that is not finished."""
    try:
        metrics = files.read_json(checkpoint / TRAINING_METRICS)
    except NotFound:
        return None
    if not isinstance(metrics, dict):
        raise DamagedFile(checkpoint / TRAINING_METRICS, "does not hold an object")
    return metrics


def write_final(
    checkpoint: Path, contents: Contents, training_config: Mapping[str, Any], metrics: Mapping[str, Any]
) -> None:
    """Put the finished checkpoint into `checkpoint`, beside the resume points, which are removed at the end.

    It is written elsewhere first and moved file by file, head.pt after the weights and training_metrics.json last.
    A kill in between leaves the last resume point, from which the same bytes come again.
    """
    staged = checkpoint / ".staged"
    files.remove_at_once(staged)
    write_checkpoint(staged, contents)
    files.write_atomic(staged / TRAINING_CONFIG, files.dump_json(dict(training_config)))
    last = [HEAD, TWIN]
    names = sorted(path.name for path in staged.iterdir() if path.name not in last)
    for name in [*names, *(name for name in last if (staged / name).exists())]:
        files.move(staged / name, checkpoint / name)
    files.write_atomic(checkpoint / TRAINING_METRICS, files.dump_json(dict(metrics)))
    files.remove_at_once(staged)
    files.remove_at_once(checkpoint / "resume")


def gathered_weights(run: Run) -> dict[str, Tensor] | None:
    """The backbone's weights from all ranks' shards, in bf16 on the host of rank 0; None where each has them all."""
    if run.parallel.world == 1 or not run.config.full_ft:
        return None
    gathered: dict[str, Tensor] = {}
    for name, tensor in run.model.backbone.state_dict().items():
        # One tensor at a time: no rank ever holds the whole model twice.
        complete = whole(tensor.detach())
        if run.parallel.leads:
            gathered[name] = complete.to(torch.bfloat16).cpu()
    return gathered
