"""Writing a session's state: created once, then changed as a whole under the session's lock."""

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from kev import files
from kev.errors import DamagedFile, Refused
from kev.records.base import read_record
from kev.records.session import SessionState, SpendReading


def create_state(path: Path, state: SessionState) -> None:
    """Begin a session. Raises Refused if anything is under that name already, damaged or not."""
    try:
        files.create_exclusive(path, files.dump_json(state.to_json()))
    except FileExistsError:
        raise Refused(f"{path}: there is a session of this name already; choose another name") from None


def update_state(path: Path, change: Callable[[SessionState], SessionState]) -> SessionState:
    """Replace the state in `path` by what `change` makes of it, under the session's lock, and return the new one.

    Raises NotFound, DamagedFile, or Refused for a state file of an earlier engine, which is only ever read.
    """
    with files.locked(lock_path(path), wait=True):
        return change_locked_state(path, change)


def change_locked_state(path: Path, change: Callable[[SessionState], SessionState]) -> SessionState:
    """As `update_state`, for a caller that holds the session's lock already."""
    try:
        state = read_record(path, SessionState)
    except DamagedFile:
        value = files.read_json(path)
        if isinstance(value, dict) and "session" not in value and "night" in value:
            raise Refused(f"{path}: written by an earlier engine; it is read, never changed") from None
        raise
    changed = change(state)
    files.write_atomic(path, files.dump_json(changed.to_json()))
    return changed


def lock_path(path: Path) -> Path:
    """The lock file of the session whose state file `path` is."""
    return path.with_name(f".{path.name}.lock")


def with_reading(
    state: SessionState, at: datetime, metered: Decimal, source: str, *,
    billed: Decimal | None = None, unseen: Decimal | None = None,
) -> SessionState:  # fmt: skip
    """`state` with one more reading of the meter."""
    values = {"at": utc_text(at), "metered_usd": metered, "source": source, "billed_usd": billed, "unseen_usd": unseen}
    reading = SpendReading.model_validate({key: value for key, value in values.items() if value is not None})
    return state.model_copy(update={"readings": [*state.readings, reading]})


def utc_text(moment: datetime) -> str:
    """`moment`, which must have a zone, as state files and journals write it: UTC to the millisecond."""
    if moment.tzinfo is None:
        raise ValueError("a time without a zone is no moment")
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
