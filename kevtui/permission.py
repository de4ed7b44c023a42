"""Whether this process may act at all. Asked before anything that could write is made."""

import os
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "KEVTUI_READONLY"


def why_read_only(
    root: Path, *, asked: bool, setting: bool = False, environment: Mapping[str, str] = os.environ
) -> str:
    """Why nothing may be changed under `root`, in words for a person; "" where it may."""
    if asked:
        return "--read-only was given"
    if environment.get(VARIABLE, "") not in ("", "0"):
        return f"{VARIABLE} is set"
    if setting:
        return "the settings say read_only"
    runs = root / "runs"
    place = runs if runs.exists() else root
    if not os.access(place, os.W_OK | os.X_OK):
        return f"no permission to write in {place}"
    return ""
