"""The tree of expected failures.

Every message is one line that a user can act on: what is wrong, where (file, key, line), what to do.
A command prints the message of a `KevError` and exits; anything else that escapes is a defect.

    KevError
    ├── UsageError         the command line asks for something that cannot be meant
    ├── NotFound           a named file, session, round or study does not exist
    ├── DamagedFile        a file is there and cannot be believed
    │   └── DamagedLine    one line of a line-delimited file cannot be believed
    ├── BadRows            scored rows cannot be measured or compared
    ├── Refused            a rule forbids what was asked
    ├── Diverged           a training's loss or gradient is no number any more
    └── LockHeld           another process holds the lock
"""

from collections.abc import Sequence
from pathlib import Path

from kev.text import visible


class KevError(Exception):
    """An expected failure; `str()` of it is the line to show, safe for a terminal whatever name a file or key has."""

    def __str__(self) -> str:
        return visible(super().__str__())


class UsageError(KevError):
    """The command line asks for something that cannot be meant."""

    @property
    def lines(self) -> Sequence[str]:
        """What a command prints of it: a line for each mistake, where there may be several."""
        return (str(self),)


class NotFound(KevError):
    """A named file, session, round or study does not exist."""


class DamagedFile(KevError):
    """A file is there and cannot be believed: empty, torn, not UTF-8, of the wrong shape, too large, unreadable.

    `recoverable` names a complete sibling that an interrupted write left behind, if there is one.
    """

    def __init__(self, path: Path, reason: str, *, recoverable: Path | None = None) -> None:
        self.path = path
        self.reason = visible(reason)
        self.recoverable = recoverable
        hint = f"; a complete copy is in {recoverable}" if recoverable else ""
        super().__init__(f"{path}: {reason}{hint}")


class UnreadFile(DamagedFile):
    """The system did not let a file be read: nothing is known against what it holds, and it may be read later."""


class DamagedLine(DamagedFile):
    """One line of a line-delimited file cannot be believed; `line` counts from 1."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        self.line = line
        super().__init__(path, f"line {line}: {reason}")


class BadRows(KevError):
    """Scored rows cannot be measured or compared; the message names file, record and question."""


class Refused(KevError):
    """A rule forbids what was asked; the message names the rule and the figures it was applied to."""


class Diverged(KevError):
    """A training's loss or gradient norm is no finite number any more; the message names the step."""


class LockHeld(KevError):
    """Another process holds the lock on `path`."""

    def __init__(self, path: Path, holder: str = "") -> None:
        self.path = path
        self.holder = holder
        super().__init__(f"{path}: held by {holder or 'another process'}; wait for it, or stop it")
