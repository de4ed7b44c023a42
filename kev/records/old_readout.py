"""Read-outs from before the panels had names of their own, turned into the shape of `kev.records.readout`.

The skills shape keeps one key per panel and figure (`hard_acc`, `hard_delta`, `primary`), the documents shape the
same for one panel (`docs`, `docs_acc`, `parent_docs_acc`). In both, an arm may be a bare string such as
"not read yet". Everything measured there was accuracy, except `hard_ece` and the figures under `short`.
"""

from pathlib import Path
from typing import Any, Literal

from kev.errors import DamagedFile

_PAIRS = {"hard_acc": ("hard", "acc"), "devtools_acc": ("devtools", "acc"), "docs_acc": ("docs", "acc")}
"""Key of a [candidate, parent] pair to its panel and metric."""

_DELTAS = {"primary": "primary", "hard_delta": "hard", "devtools_delta": "devtools", "docs_delta": "docs"}
"""Key of a {delta, ci95} of accuracy to its panel."""

_KEPT = ("trial", "parent", "checkpoint", "temperature", "parent_temperature", "criteria", "passed")


def shape_of(value: dict[str, Any]) -> Literal["current", "skills", "documents"]:
    """Which of the three shapes `value`, an object with `arms`, has."""
    arms = value["arms"].values()
    if "candidates" in value or any(isinstance(arm, dict) and ("panels" in arm or "complete" in arm) for arm in arms):
        return "current"
    if any(key.startswith("jev_") for key in value) or any(isinstance(arm, dict) and "docs" in arm for arm in arms):
        return "documents"
    if any(key.startswith("candidate_") for key in value) or any(isinstance(arm, str) for arm in arms):
        return "skills"
    return "skills" if any(isinstance(arm, dict) and "primary" in arm for arm in arms) else "current"


def to_current(path: Path, value: dict[str, Any]) -> dict[str, Any]:
    """`value`, which `path` held in an older shape, as the current one. Raises DamagedFile."""
    reference = {key[len("jev_") : -len("_acc")]: figure for key, figure in value.items()
                 if key.startswith("jev_") and key.endswith("_acc")}  # fmt: skip
    current: dict[str, Any] = {key: value[key] for key in ("round", "registered") if key in value}
    current["drop_ids"] = value.get("excluded_duplicate_ids", [])
    current["arms"] = {name: _comparison(path, name, arm, reference) for name, arm in value["arms"].items()}
    current["candidates"] = {key[len("candidate_") :]: arm for key, arm in value.items()
                             if key.startswith("candidate_")}  # fmt: skip
    return current


def _comparison(path: Path, name: str, arm: Any, reference: dict[str, Any]) -> dict[str, Any]:
    if isinstance(arm, str):
        return {"missing": [arm], "complete": False, "passed": None}
    if not isinstance(arm, dict):
        raise DamagedFile(path, f"arms.{name}: holds neither an object nor a remark")
    comparison = {key: arm[key] for key in _KEPT if key in arm}
    # No older read-out lists what is missing: an arm with a verdict had all its reads.
    comparison |= {"missing": [], "complete": isinstance(arm.get("passed"), bool)}
    comparison["panels"] = _Panels(path, name).of(arm, reference)
    if "unknowable_share" in arm:
        comparison["unknowable"] = {"candidate": arm["unknowable_share"]}
    return comparison


class _Panels:
    """Collects the figures of one arm under panel and metric."""

    def __init__(self, path: Path, arm: str) -> None:
        self._path = path
        self._arm = arm
        self._found: dict[str, dict[str, Any]] = {}

    def of(self, arm: dict[str, Any], reference: dict[str, Any]) -> dict[str, dict[str, Any]]:
        for key, value in arm.items():
            if key in _DELTAS:
                self._put(_DELTAS[key], "acc", key, value)
            elif key == "pooled_external":
                self._put("pooled_external", "acc", key, value)
            elif key in _PAIRS:
                self._put_pair(*_PAIRS[key], key, value, arm)
            elif key.endswith("_ece"):
                self._put_nested(key.removesuffix("_ece"), "ece", key, value)
            elif key == "docs":
                self._put("docs", "acc", key, value)
            elif key == "short":
                for metric, figures in self._object(key, value).items():
                    self._put("short", metric, f"{key}.{metric}", figures)
            elif key == "externals":
                for panel, figures in self._object(key, value).items():
                    self._put_external(panel, f"{key}.{panel}", figures)
            elif "_vs_" in key:
                panel, _, other = key.partition("_vs_")
                versus = {"reference": reference.get(panel), **self._object(key, value)}
                self._panel(panel).setdefault("versus", {})[other] = {"acc": versus}
        return self._found

    def _put(self, panel: str, metric: str, key: str, figures: Any) -> None:
        self._panel(panel).setdefault(metric, {}).update(self._object(key, figures))

    def _put_pair(self, panel: str, metric: str, key: str, value: Any, arm: dict[str, Any]) -> None:
        if isinstance(value, list) and len(value) == 2:
            sides = {"candidate": value[0], "parent": value[1]}
        elif isinstance(value, int | float):
            sides = {"candidate": value, "parent": arm.get(f"parent_{key}")}
        else:
            raise DamagedFile(self._path, f"arms.{self._arm}.{key}: holds neither a figure nor a pair of them")
        self._put(panel, metric, key, sides)

    def _put_nested(self, panel: str, metric: str, key: str, value: Any) -> None:
        figures = dict(self._object(key, value))
        interval = figures.pop("delta", None)
        self._put(panel, metric, key, figures)
        if interval is not None:
            self._put(panel, metric, f"{key}.delta", interval)

    def _put_external(self, panel: str, key: str, value: Any) -> None:
        figures = dict(self._object(key, value))
        for remark in ("n", "gating"):
            if remark in figures:
                self._panel(panel)[remark] = figures.pop(remark)
        self._put(panel, "acc", key, figures)

    def _panel(self, name: str) -> dict[str, Any]:
        return self._found.setdefault(name, {})

    def _object(self, key: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise DamagedFile(self._path, f"arms.{self._arm}.{key}: holds no object of figures")
        return value
