"""Which session is meant: the one that is named, or the only one that is open."""

import os
from pathlib import Path

from kev import files
from kev.errors import KevError, NotFound, UsageError
from kev.session.view import STATE_SUFFIX, read_session, session_name


def find_state(runs: Path, name: str | None) -> Path:
    """The state file of a session: of that name, or of KEV_SESSION, or the only one that is open, or the only one.

    Raises NotFound or UsageError, saying which there are.
    """
    name = name or os.environ.get("KEV_SESSION")
    if name is not None:
        path = runs / f"{name}{STATE_SUFFIX}"
        if path.name not in files.list_names(runs):
            raise NotFound(f"{path}: no such session")
        return path
    found = list_states(runs)
    if not found:
        raise NotFound(f"{runs}: no session; its state file says what may be spent, and nothing is launched without: "
                       "`python -m kev.session open NAME --authorization USD`")  # fmt: skip
    chosen = found if len(found) == 1 else [path for path in found if not is_closed(path)]
    if len(chosen) != 1:
        which = "are open" if chosen else "are closed"
        names = ", ".join(session_name(path) for path in chosen or found)
        raise UsageError(f"{runs}: several sessions {which}; name one with --session: {names}")
    return chosen[0]


def list_states(runs: Path) -> list[Path]:
    """Every state file in `runs`, by name."""
    names = files.list_names(runs)
    return [runs / name for name in names if name.endswith(STATE_SUFFIX) and not name.startswith(".")]


def is_closed(path: Path) -> bool:
    """Whether a session says that it is over; one that cannot be read is not."""
    try:
        return read_session(path).closed_at is not None
    except KevError:
        return False
