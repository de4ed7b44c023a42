"""The copies of what the grader knows that lie in the workspace, for the agent and for whoever watches.

They are rewritten from the store at every change. An edit is not believed, only noticed: what lies there is compared
with what was written last, and the run's record says that it was changed.
"""

import hashlib
from pathlib import Path
from typing import Any

from kev import files
from kev.autorl.run_clock import RunClock
from kev.autorl.submissions import Ledger
from kev.autorl.workspace import Workspace
from kev.errors import DamagedFile, NotFound

MAX_BYTES = 64 * 1024 * 1024


class Views:
    """Writes `scores.json`, `run_meta.json` and, when there is one, the final result."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._written: dict[Path, str] = {}

    def write(self, ledger: Ledger, clock: RunClock) -> list[str]:
        """Bring every copy up to date. What was changed by somebody else, a line each. Raises OSError."""
        changed = [
            *self._put(self._workspace.scores, [entry.to_json() for entry in ledger.entries()]),
            *self._put(self._workspace.run_meta, clock.meta().to_json()),
        ]
        if ledger.final is not None:
            changed += self._put(self._workspace.final, ledger.final)
        return changed

    def _put(self, path: Path, value: Any) -> list[str]:
        data = files.dump_json(value)
        before = self._written.get(path)
        found = _sha256_of(path)
        said = []
        if before is not None and found != before:
            said = [f"{path.name} was {'removed' if found is None else 'changed'} in the workspace"]
        digest = hashlib.sha256(data).hexdigest()
        if found != digest:
            files.write_atomic(path, data)
        self._written[path] = digest
        return said


def _sha256_of(path: Path) -> str | None:
    try:
        if path.is_symlink():
            return "a link"
        return hashlib.sha256(files.read_bytes(path, limit=MAX_BYTES)).hexdigest()
    except NotFound:
        return None
    except DamagedFile:
        return "unreadable"
