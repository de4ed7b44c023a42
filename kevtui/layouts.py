"""How the dashboard of a session was left: which panel stood alone, where the focus was, the order, the columns.

Kept for each session in the user's own state directory, `$XDG_STATE_HOME/kevtui/layouts`, never beside the session.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kevtui import columns


@dataclass(frozen=True, slots=True)
class SavedLayout:
    """None, or "", for whatever is as it comes. Names are the screen's, which takes none that it does not know."""

    alone: str | None = None
    """The panel that has the whole screen."""
    focus: str | None = None
    sort: str = ""
    """Name of the order of the studies."""
    columns: tuple[str, ...] | None = None


UNTOUCHED = SavedLayout()


def layout_path(environment: Mapping[str, str], root: Path, title: str) -> Path:
    """Where the layout of what is called `title` under `root` is kept. The name says which it is to a person."""
    home = environment.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    readable = re.sub(r"[^\w]+", "-", title, flags=re.ASCII).strip("-")[:40]
    digest = hashlib.sha256(f"{root.resolve()}\0{title}".encode(errors="surrogateescape")).hexdigest()
    return Path(home) / "kevtui" / "layouts" / f"{readable}-{digest[:12]}.json"


def read_layout(path: Path) -> SavedLayout:
    """What was kept there. What cannot be believed is as it comes: nothing is lost with it but a habit."""
    # Here, since the screen knows layouts before its first frame, and files only after it.
    from kev import files
    from kev.errors import KevError

    try:
        kept = files.read_json(path)
    except (KevError, OSError):
        return UNTOUCHED
    if not isinstance(kept, dict):
        return UNTOUCHED
    wanted: Any = kept.get("columns")
    return SavedLayout(
        _name(kept.get("alone")),
        _name(kept.get("focus")),
        _name(kept.get("sort")) or "",
        columns.chosen(wanted) if not columns.wrong_with(wanted) else None,
    )


def _name(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


class LayoutFile:
    """Keeps the layout of one session. It is not made where nothing may be changed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def keep(self, layout: SavedLayout) -> None:
        """Write it. Waits for a disk: call it from a thread. Raises OSError."""
        from kev import files

        values = {"alone": layout.alone, "focus": layout.focus, "sort": layout.sort, "columns": layout.columns}
        known = {name: value for name, value in values.items() if value}
        if not known and not self._path.exists():
            return
        files.write_atomic(self._path, files.dump_json(known))
