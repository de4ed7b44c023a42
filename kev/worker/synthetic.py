"""Objectives that train in a blink without an accelerator: to rehearse a night, and as a fixture of tests.

`synthetic/linear` fits the plain features of `kev.linear` to a suite's real records by AdamW, and leaves exactly the
files that training a model would: log lines, step metrics, resume points, snapshots, a checkpoint. Everything it
makes is marked as synthetic. `synthetic/linear-<N>ms` spends at least N milliseconds on each step, so that there is
something to watch, to interrupt and to continue.

Of a plan it heeds `epochs`, `max_steps`, `batch`, `accum`, `seed`, `lr`, `weight_decay`, `train_sources`, `full_ft`,
`save_every_steps` and the snapshot keys; the rest is about models and is only recorded.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kev import files
from kev.errors import DamagedFile, UsageError

if TYPE_CHECKING:
    from kev.worker.synthetic_training import SyntheticTrainer

NAMES = "the bases synthetic/linear and synthetic/linear-<N>ms"
MAX_PACE_MS = 60_000

_PACED = re.compile(r"linear(?:-([1-9][0-9]{0,5})ms)?")


def is_synthetic(base: str) -> bool:
    """Whether `base` asks for an objective that only looks like a model."""
    return base.startswith("synthetic/")


def pace_of(base: str) -> float:
    """Seconds that each step of `base` takes at least. Raises UsageError for a synthetic base that is not known."""
    found = _PACED.fullmatch(base.removeprefix("synthetic/"))
    milliseconds = int(found[1] or 0) if found else -1
    if not 0 <= milliseconds <= MAX_PACE_MS:
        raise UsageError(f"base {base}: known are {NAMES}, N up to {MAX_PACE_MS}")
    return milliseconds / 1000


def find(base: str) -> "SyntheticTrainer":
    """The trainer of a synthetic base. Raises UsageError for one that is not known."""
    from kev.worker.synthetic_training import SyntheticTrainer  # it needs numpy, and the threads are set by now

    return SyntheticTrainer(pace_of(base))


def read_training_config(path: Path) -> dict[str, Any]:
    """What a checkpoint says of its training. Raises NotFound or DamagedFile."""
    value = files.read_json(path)
    if not isinstance(value, dict) or not isinstance(value.get("args"), dict):
        raise DamagedFile(path, "holds no training arguments")
    return value
