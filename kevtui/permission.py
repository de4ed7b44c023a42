"""Whether this process may act at all. Asked before anything that could write is made."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from kevtui.observe import mounts

VARIABLE = "KEVTUI_READONLY"


def why_read_only(
    root: Path,
    *,
    asked: bool,
    setting: bool = False,
    environment: Mapping[str, str] = os.environ,
    shared_kind: Callable[[Path], str] = mounts.shared_kind,
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
    kind = shared_kind(place)
    if kind in mounts.LOCKLESS:
        return f"{place} lies on {kind}, and no lock taken here is seen on the machine it comes from"
    return ""
