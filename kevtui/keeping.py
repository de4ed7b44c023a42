"""Where a command puts what it made: into a file that was not there, or over an earlier one of its own kind."""

from collections.abc import Callable
from pathlib import Path

from kev import files
from kev.errors import DamagedFile, NotFound, UsageError


def keep(place: Path, data: bytes, *, kind: str, is_of_kind: Callable[[bytes], bool]) -> bool:
    """Write `data` to `place`; whether that changed anything.

    Raises UsageError where `place` cannot be written, or holds what is no `kind`.
    """
    try:
        before = files.read_bytes(place)
        if before == data:
            return False
        if not is_of_kind(before):
            raise UsageError(f"{place}: is there and is no {kind}; name another file")
    except NotFound:
        pass
    except DamagedFile as error:
        raise UsageError(f"{error}; name another file") from None
    try:
        files.write_atomic(place, data)
    except OSError as error:
        why = f"cannot be written ({error.strerror})"
        raise UsageError(f"{place}: {why}; name a file in a folder that is there and may be written to") from None
    return True
