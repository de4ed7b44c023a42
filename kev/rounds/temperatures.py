"""The temperature a side is served at, and where it came from.

With a pool, an arm's temperature is fitted on the pool's reads of its own checkpoint, always those of the rule
stage; a parent's too if the spec says it is pooled. Otherwise it is fitted on the trial's development rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kev import files
from kev.errors import KevError
from kev.metrics import Resamples, Rows, fit_temperature, pool, raw, served, temperature_interval
from kev.records import spec as records
from kev.rounds.rowstore import ROWS, RowStore
from kev.rounds.sides import Side
from kev.suite import read_suite

CANDIDATE, PARENT = "candidate", "parent"


@dataclass(frozen=True)
class Fitted:
    """A temperature with its `temperature_source`, and for a pool `temperature_fit` and `temperature_ci`."""

    temperature: float
    source: dict[str, Any]
    fit: dict[str, Any] | None = None
    interval: dict[str, Any] | None = None
    note: str | None = None


@dataclass(frozen=True)
class Unfitted:
    """What is missing for a temperature, as a read-out lists it."""

    missing: list[str]


@dataclass
class ServedSide:
    """One checkpoint with the temperature it answers at."""

    role: str
    side: Side
    fitted: Fitted
    store: RowStore
    _served: dict[str, Rows] = field(default_factory=dict)

    def missing(self, tags: list[str]) -> list[str]:
        """The reads of `tags` that have no rows, as a read-out lists them."""
        return [entry for tag in tags if (entry := missing_read(self.store, self.role, tag, self.side.directory(tag)))]

    def rows(self, tag: str) -> Rows:
        """The scored rows of a read, served at this side's temperature."""
        directory = self.side.directory(tag) or ""
        if directory not in self._served:
            self._served[directory] = served(self.store.rows(directory), self.fitted.temperature)
        return self._served[directory]


def missing_read(store: RowStore, role: str, tag: str, directory: str | None) -> str | None:
    """How a read-out names a read that has no rows; None if it has them."""
    if directory is None:
        return f"{role}:no directory for the read {tag}"
    return None if store.has(directory) else f"{role}:{directory}"


def fit_side(
    spec: records.RoundSpec, side: Side, role: str, store: RowStore, *, resamples: Resamples, interval: bool
) -> Fitted | Unfitted:
    """The temperature of a side. `interval` asks for the pool's registered interval too.

    Raises BadRows or DamagedFile for rows that cannot be believed.
    """
    pooled = spec.temperature
    if pooled is not None and (role == CANDIDATE or spec.parents[side.name].pooled):
        return _fit_pool(pooled, side, role, store, resamples, interval=interval)
    return _fit_development(spec, side, role, store)


def _fit_pool(
    entry: records.Pool, side: Side, role: str, store: RowStore, resamples: Resamples, *, interval: bool
) -> Fitted | Unfitted:
    directories = {tag: side.rule_directory(tag) for tag in [*entry.reads, *(entry.exclude_reads or [])]}
    missing = [said for tag, directory in directories.items() if (said := missing_read(store, role, tag, directory))]
    if missing:
        return Unfitted(missing)
    place: Mapping[str, str] = {tag: directory or "" for tag, directory in directories.items()}
    sources = {place[tag]: names for tag, names in (entry.sources or {}).items() if tag in place}
    excluding = [place[tag] for tag in entry.exclude_reads or []]
    pooled = pool(
        [(place[tag], store.rows(place[tag])) for tag in entry.reads],
        sources=sources,
        exclude={identifier for directory in excluding for identifier in store.rows(directory).ids},
    )
    fit = fit_temperature(pooled.rows)
    reads = [place[tag] for tag in entry.reads]
    return Fitted(
        fit.temperature,
        source={"kind": "pool", "reads": reads, "questions": fit.questions},
        fit={
            "reads": reads,
            **({"sources": sources} if sources else {}),
            "exclude_reads": excluding,
            "questions": fit.questions,
            "excluded_questions": pooled.excluded,
        },
        interval=_interval(entry.ci, pooled.rows, resamples) if interval and entry.ci else None,
        note=fit.note,
    )


def _interval(entry: records.TemperatureInterval, rows: Rows, resamples: Resamples) -> dict[str, Any]:
    same = (entry.samples, entry.seed) == (resamples.samples, resamples.seed)
    drawn = resamples if same else Resamples(entry.samples, entry.seed)
    found = temperature_interval(rows, level=float(entry.level), resamples=drawn)
    return {
        "level": found.level,
        "samples": found.samples,
        "seed": found.seed,
        "lower": found.lower,
        "upper": found.upper,
        "questions": found.questions,
        "resampled": "(source, group) clusters within each source",
    }


def _fit_development(spec: records.RoundSpec, side: Side, role: str, store: RowStore) -> Fitted | Unfitted:
    directory = side.development_directory()
    if directory is None:
        return Unfitted([f"{role}:development rows ({side.name} has no trial, and the round no pool)"])
    if not store.has(directory):
        return Unfitted([f"{role}:{directory}/{ROWS}"])
    fit = fit_temperature(raw(store.rows(directory)))
    suite = _training_suite(spec, side)
    source: dict[str, Any] = {
        "kind": "trial development rows",
        "rows": f"{directory}/{ROWS}",
        "suite": suite,
        "training_corpus": _is_training_corpus(store, suite),
    }
    shipped = _shipped(store, side)
    if shipped is not None:
        source["shipped"] = shipped
    return Fitted(fit.temperature, source, note=fit.note)


def _shipped(store: RowStore, side: Side) -> float | None:
    """The temperature that the checkpoint is shipped with, where the table beside its weights is here."""
    try:
        head = files.read_json(store.root / f"{side.trial}/checkpoint/head.json")
    except KevError:
        return None
    return files.as_finite(head.get("temperature")) if isinstance(head, dict) else None


def _training_suite(spec: records.RoundSpec, side: Side) -> str | None:
    for name, study in spec.studies.items():
        if side.trial is not None and side.trial.startswith(f"runs/{name}/"):
            return study.suite
    return None


def _is_training_corpus(store: RowStore, suite: str | None) -> bool | None:
    if suite is None:
        return None
    try:
        return read_suite(store.root / suite).manifest.is_training_corpus()
    except KevError:
        return None
