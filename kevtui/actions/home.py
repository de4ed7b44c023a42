"""Finding this package again in a child process, whatever its directory and its environment are."""

import os
from collections.abc import Mapping
from pathlib import Path

import kevtui

HOME = Path(kevtui.__file__).parents[1]
"""The folder that this very kevtui was loaded from."""


def environment(base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """`base`, in which `python -m kevtui` is this one.

    A session's own environment may name other folders to look in, or none.
    """
    paths = [str(HOME), *(path for path in base.get("PYTHONPATH", "").split(os.pathsep) if path and path != str(HOME))]
    return {**base, "PYTHONPATH": os.pathsep.join(paths)}
