"""`runs/r<N>-readout/round<N>.json`: every arm of a round against its parent, in one shape whatever the file's age.

Three shapes are on record. The current one is `ReadOut`. The two older ones (skills: rounds 10 to 18; documents:
round 11) are recognised by their keys and turned into it, so that a criterion path of the same round's spec, such as
`hard.acc.lower`, resolves; the file's own value is kept beside the result and is what gets written back.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from kev import files
from kev.errors import DamagedFile
from kev.records import old_readout
from kev.records.base import Number, StrictRecord, parse_record


class Metric(StrictRecord):
    """One metric of a panel on both sides. What the file lacks is None."""

    candidate: Number | None = None
    parent: Number | None = None
    delta: Number | None = None
    """Candidate minus parent, over paired rows."""
    ci95: Annotated[list[Number], Field(min_length=2, max_length=2)] | None = None
    """Lower and upper bound."""
    n: int | None = None
    """Questions, where the metric covers a part of the panel (a length bucket)."""

    def side(self, name: str) -> float | None:
        """The value under `candidate`, `parent`, `delta`, `lower` or `upper`; None if absent or unknown."""
        if name in ("lower", "upper"):
            return None if self.ci95 is None else float(self.ci95[0 if name == "lower" else 1])
        value = getattr(self, name) if name in ("candidate", "parent", "delta") else None
        return None if value is None else float(value)


METRIC_KEYS = frozenset({"candidate", "parent", "delta", "ci95"})


def _kind_of_panel_value(value: object) -> str:
    if isinstance(value, Metric):
        return "metric"
    return "metric" if isinstance(value, dict) and not METRIC_KEYS.isdisjoint(value) else "other"


PanelValue = Annotated[
    Annotated[Metric, Tag("metric")] | Annotated[Any, Tag("other")], Discriminator(_kind_of_panel_value)
]


class Panel(StrictRecord):
    """Metrics over the rows of one or more reads; every key that is not named here is a metric or a remark."""

    n: int | None = None
    excluded: int | None = None
    """Questions left out by the panel's exclusions."""
    versus: dict[str, dict[str, Any]] | None = None
    """Name of a reference to its metrics: `reference`, `delta`, `ci95`."""
    by_length: dict[str, Any] | None = None

    __pydantic_extra__: dict[str, PanelValue]

    def metrics(self) -> dict[str, Metric]:
        """Name to metric, in file order; length buckets are named `<metric>_<bucket>`."""
        return {name: value for name, value in (self.model_extra or {}).items() if isinstance(value, Metric)}


class TemperatureInterval(StrictRecord):
    """Bootstrap interval of a fitted temperature; a report, never a criterion."""

    level: Number | None = None
    lower: Number
    upper: Number
    questions: int | None = None


class Shares(StrictRecord):
    """Share of unknowable questions answered at p >= 0.9, per side."""

    candidate: Number | None = None
    parent: Number | None = None


class Comparison(StrictRecord):
    """One arm against its parent. An arm not read yet has only `missing`, and `complete` false."""

    trial: str | None = None
    parent: str | None = None
    """The parent's trial."""
    checkpoint: str | None = None
    temperature: Number | None = None
    parent_temperature: Number | None = None
    temperature_fit: dict[str, Any] | None = None
    temperature_ci: TemperatureInterval | None = None
    temperature_source: dict[str, Any] | None = None
    parent_temperature_source: dict[str, Any] | None = None
    panels: dict[str, Panel] = {}
    unknowable: Shares | None = None
    criteria: dict[str, bool | None] = {}
    """None where an operand is missing."""
    missing: list[str] = []
    missing_optional: list[str] = []
    complete: bool | None = None
    passed: bool | None = None

    def resolve(self, path: str) -> float | None:
        """The value under a criterion path: `<panel>.<metric>.<side>` or `unknowable.<side>`; None if absent."""
        parts = path.split(".")
        if len(parts) == 2 and parts[0] == "unknowable" and parts[1] in ("candidate", "parent"):
            share = getattr(self.unknowable, parts[1], None)
            return None if share is None else float(share)
        if len(parts) != 3:
            return None
        panel = self.panels.get(parts[0])
        metric = panel.metrics().get(parts[1]) if panel else None
        return metric.side(parts[2]) if metric else None


class ReadOut(StrictRecord):
    """All arms of a round, and what the rule makes of them."""

    round: int | None = None
    registered: str | None = None
    drop_ids: list[str] = []
    arms: dict[str, Comparison]
    ranking: dict[str, list[str]] = {}
    """Size to passing arms, best first."""
    candidates: dict[str, str | None] = {}
    """Size to the arm the rule selected, or None."""


Shape = Literal["current", "skills", "documents"]


@dataclass(frozen=True, slots=True)
class StoredReadOut:
    """A read-out and the file value it was read from."""

    shape: Shape
    readout: ReadOut
    original: dict[str, Any]


def parse_readout(path: Path, value: Any) -> StoredReadOut:
    """The read-out that `path` held, whichever of the three shapes it has. Raises DamagedFile."""
    if not isinstance(value, dict) or not isinstance(value.get("arms"), dict):
        raise DamagedFile(path, "holds no object of arms, so it is no read-out")
    shape = old_readout.shape_of(value)
    current = value if shape == "current" else old_readout.to_current(path, value)
    if "round" not in current and (named := re.fullmatch(r"round(\d+)\.json", path.name)):
        current = {"round": int(named[1]), **current}
    return StoredReadOut(shape, parse_record(path, current, ReadOut), value)


def read_readout(path: Path) -> StoredReadOut:
    """The read-out in `path`. Raises NotFound or DamagedFile."""
    return parse_readout(path, files.read_json(path))
