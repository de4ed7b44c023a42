"""Which alerts somebody knows of already: what the file beside the session's state says, and what that is good for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kev import files
from kevtui.observe.snapshot import Alert, Severity
from kevtui.observe.states import RANK

if TYPE_CHECKING:
    from kev.records.alerts import StandingAlerts

SUFFIX: Final = "-alerts.json"

Known = Mapping[str, tuple[str, str]]
"""Alert id -> (condition, severity) that was acknowledged."""


def alerts_path(runs: Path, session: str | None) -> Path:
    """Where the standing alerts of a session are kept, or of what is watched without one."""
    return runs / (f"{session}{SUFFIX}" if session else SUFFIX[1:])


def covers(condition: str, severity: str, alert: Alert) -> bool:
    """Whether an acknowledgement of that condition and severity is one of `alert` as it is now."""
    known = next((rank for name, rank in RANK.items() if name == severity), RANK[Severity.INFO])
    return condition == alert.condition and RANK[alert.severity] >= known


def is_known(known: Known, alert: Alert) -> bool:
    """Whether `alert`, as it is now, was acknowledged."""
    found = known.get(alert.id)
    return found is not None and covers(*found, alert)


def parse_known(path: Path, load: Callable[[Path], Any] = files.read_json) -> dict[str, tuple[str, str]]:
    """What the file says was acknowledged. Raises NotFound or DamagedFile."""
    return {name: (entry.acknowledged.condition, entry.acknowledged.severity)
            for name, entry in read_standing(path, load).alerts.items() if entry.acknowledged}  # fmt: skip


def read_standing(path: Path, load: Callable[[Path], Any] = files.read_json) -> StandingAlerts:
    """The whole file, as `load` reads it. Raises NotFound or DamagedFile."""
    from kev.records.alerts import StandingAlerts
    from kev.records.base import parse_record

    return parse_record(path, load(path), StandingAlerts)
