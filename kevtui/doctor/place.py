"""The folder that holds a session: can it be read, can it be written, does it tell of changes, is there room."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from kevtui.doctor.check import Check, Outcome
from kevtui.observe.mounts import LOCKLESS, SHARED, kind_of

LITTLE_BYTES = 2 * 1024**3
AHEAD_S = 5.0


def place(root: Path, mounts: str, now_unix: float) -> Iterator[Check]:
    """Checks of the folder `root`; `mounts` is the table of mounts, or "" where there is none."""
    runs = root / "runs"
    if not runs.is_dir():
        yield Check("place", "runs", Outcome.INFO, f"no {runs} yet", "name the folder that holds runs/ with --root")
        return
    if not os.access(runs, os.R_OK | os.X_OK):
        yield Check("place", "runs", Outcome.BAD, f"{runs} cannot be read", f"chmod u+rx {runs}, or ask its owner")
        return
    kind = kind_of(runs, mounts)
    if kind in LOCKLESS:
        found = f"{runs} lies on {kind}: no lock reaches the machine it comes from, so the dashboard opens read-only"
        yield Check("place", "runs", Outcome.INFO, found, "to act, run kevtui over ssh on that machine")
    elif os.access(runs, os.W_OK):
        yield Check("place", "runs", Outcome.GOOD, f"{runs} can be read and written")
    else:
        yield Check("place", "runs", Outcome.INFO, f"{runs} cannot be written: the dashboard opens read-only")
    if kind in SHARED:
        found = f"{kind}: sends no events, so changes are found by polling"
        yield Check("place", "events", Outcome.INFO, found)
    elif kind:
        yield Check("place", "events", Outcome.GOOD, f"{kind}: tells of changes")
    yield _room(runs)
    ahead = _newest(runs) - now_unix
    if ahead > AHEAD_S:
        found = f"a file in {runs} is dated {ahead:.0f} s from now: that machine's clock is ahead of this one"
        yield Check("place", "dates", Outcome.RISK, found, "synchronise both clocks; ages of files are off until then")


def _room(runs: Path) -> Check:
    try:
        free = shutil.disk_usage(runs).free
    except OSError as error:
        return Check("place", "room", Outcome.RISK, f"not known: {error.strerror}")
    little = free < LITTLE_BYTES
    fix = "make room before the night: a full disk stops pulls and records" if little else ""
    return Check("place", "room", Outcome.RISK if little else Outcome.GOOD, f"{free / 1024**3:.1f} GiB free", fix)


def _newest(runs: Path) -> float:
    newest = 0.0
    try:
        with os.scandir(runs) as entries:
            for entry in entries:
                newest = max(newest, entry.stat(follow_symlinks=False).st_mtime)
    except OSError:
        return newest
    return newest
