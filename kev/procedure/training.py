"""One training process on a machine: two of them slow each other down, and on a small one end each other.

Containers are machines of their own, and their trials do not come through here.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kev import files
from kev.errors import LockHeld, Refused

LOCK_VARIABLE = "KEV_TRAINING_LOCK"


def training_lock() -> Path:
    """The lock of this machine and user; KEV_TRAINING_LOCK names another one."""
    import tempfile

    named = os.environ.get(LOCK_VARIABLE)
    return Path(named) if named else Path(tempfile.gettempdir()) / f"kev-training-{os.getuid()}.lock"


@contextmanager
def only_training() -> Iterator[None]:
    """Hold the machine for a training. Raises Refused, naming the process that has it.

    Of several ranks of one training the first holds it for all.
    """
    if os.environ.get("RANK", "0") != "0":
        yield
        return
    manager = files.locked(training_lock())
    try:
        manager.__enter__()
    except LockHeld as error:
        raise Refused(f"another training runs on this machine ({error.holder}); wait for its end, as "
                      "`python -m kev.experiment --wait-pid` does") from None  # fmt: skip
    try:
        yield
    finally:
        manager.__exit__(None, None, None)
