"""`runs/r<N>-verdict/<size>-<stage>.json`: one confirmation stage of one arm, in one shape whatever the file's age.

The current shape is a comparison with `round`, `stage` and `arm`. The older one names the sides `cand` and `parent`,
keeps the intervals apart under `<metric>_delta`, and says neither round nor arm; it is recognised by those sides and
turned into the current shape, with its figures under the panel that the stage of that time had.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kev import files
from kev.errors import DamagedFile
from kev.records.base import parse_record
from kev.records.readout import Comparison

_PANEL_OF_STAGE = {"docs": "docs1test"}
"""Where the panel of an older stage was not named like the stage itself."""


class Verdict(Comparison):
    """The comparison of one confirmation stage."""

    round: int | None = None
    stage: str
    arm: str | None = None


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """A verdict and the file value it was read from."""

    shape: Literal["current", "old"]
    verdict: Verdict
    original: dict[str, Any]


def parse_verdict(path: Path, value: Any) -> StoredVerdict:
    """The verdict that `path` held, in either shape. Raises DamagedFile."""
    if not isinstance(value, dict):
        raise DamagedFile(path, "holds no object, so it is no verdict")
    if not _is_old(value):
        return StoredVerdict("current", parse_record(path, value, Verdict), value)
    return StoredVerdict("old", parse_record(path, _to_current(path, value), Verdict), value)


def read_verdict(path: Path) -> StoredVerdict:
    """The verdict in `path`. Raises NotFound or DamagedFile."""
    return parse_verdict(path, files.read_json(path))


def _is_old(value: dict[str, Any]) -> bool:
    return "panels" not in value and (
        isinstance(value.get("temperature"), dict)
        or any(isinstance(part, dict) and ("cand" in part or "delta" in part) for part in value.values())
    )


def _to_current(path: Path, value: dict[str, Any]) -> dict[str, Any]:
    stage = value.get("stage")
    own = _PANEL_OF_STAGE.get(stage, stage) if isinstance(stage, str) else "stage"
    current: dict[str, Any] = {key: value[key] for key in ("round", "stage", "arm", "trial", "criteria", "passed")
                               if key in value}  # fmt: skip
    panels: dict[str, dict[str, Any]] = {}
    for key, part in value.items():
        if key == "temperature" and isinstance(part, dict):
            current |= {"temperature": part.get("cand"), "parent_temperature": part.get("parent")}
        elif key == "n":
            panels.setdefault(own, {})["n"] = part
        elif key not in current and isinstance(part, dict):
            if isinstance(part.get("cand"), dict) != isinstance(part.get("parent"), dict):
                raise DamagedFile(path, f"{key}: one side is an object and the other is not")
            _add(panels, own, key, part)
    return current | {"panels": panels, "missing": [], "complete": isinstance(value.get("passed"), bool)}


def _add(panels: dict[str, dict[str, Any]], own: str, key: str, part: dict[str, Any]) -> None:
    """Put what the file has under `key` where a criterion path would look for it."""
    if isinstance(part.get("cand"), dict):  # a whole panel: its metrics are inside each side
        panel = panels.setdefault(key, {})
        for old, new in (("cand", "candidate"), ("parent", "parent")):
            for metric, figure in part[old].items():
                if metric == "n":
                    panel["n"] = figure
                else:
                    panel.setdefault(metric, {})[new] = figure
        return
    name = key.removesuffix("_delta")
    # `acc` is a metric of the stage's own panel; any other name, such as `pooled`, is a panel measured by accuracy.
    owner, metric = (own, name) if name in ("acc", "brier", "nll", "ece") else (name, "acc")
    target = panels.setdefault(owner, {}).setdefault(metric, {})
    figures = {{"cand": "candidate"}.get(side, side): figure for side, figure in part.items()}
    interval = figures.pop("delta", None)
    if isinstance(interval, dict):
        figures |= interval
    elif interval is not None:
        figures["delta"] = interval
    if "n" in figures:
        panels[owner]["n"] = figures.pop("n")
    target |= figures
