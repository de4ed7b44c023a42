"""Panels: rows of one or more reads, filtered alike on both sides, and what a read-out says of them."""

import hashlib
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kev.errors import BadRows, Refused, UsageError
from kev.metrics import (
    LENGTH_EDGES,
    Baseline,
    Resamples,
    Rows,
    bucket_values,
    check_edges,
    concatenate,
    metric,
    paired_bootstrap,
    scored,
    tokens_of,
)
from kev.metrics.rows import CLEAN
from kev.records import spec as records
from kev.rounds.exclusions import Exclusions, parse_exclusions
from kev.rounds.rowstore import RowStore
from kev.rounds.temperatures import ServedSide

DEFAULT_TOKENIZER = ("Qwen/Qwen3.5-4B-Base", "1001bb4d826a52d1f399e183466143f4da7b741b")

CountTokens = Callable[[records.Read, tuple[str, str]], Mapping[str, int]]
"""Record id to the tokens of its state, for the suite and split that a read names, with a tokenizer at a revision."""


@dataclass(frozen=True)
class ParentPanel:
    """A parent's rows of one panel, and the same prepared for comparing arms with them."""

    rows: Rows
    baseline: Baseline


@dataclass
class PanelInputs:
    """What the panels of one comparison share."""

    candidate: ServedSide
    parent: ServedSide
    store: RowStore
    resamples: Resamples
    drop_ids: Collection[str] = ()
    reads: Mapping[str, records.Read] = field(default_factory=dict)
    count_tokens: CountTokens | None = None
    dropped: set[str] = field(default_factory=set)
    """Which of `drop_ids` some row had."""
    parents: dict[Hashable, ParentPanel] = field(default_factory=dict)
    """The parent's side of panels that an earlier arm was already compared on."""
    stage: str | None = None


@dataclass(frozen=True)
class PanelResult:
    """A panel's block of the read-out, or None with what is missing for it."""

    values: dict[str, Any] | None
    missing: list[str]
    missing_references: list[str] = field(default_factory=list)
    """References to compare with that have no rows. No criterion can read them, so nothing waits for them."""


def read_panel(name: str, panel: records.Panel, inputs: PanelInputs) -> PanelResult:
    """Everything a panel computes. Raises BadRows, naming the panel, where its rows cannot be measured or paired;
    Refused if its exclude file is not the registered one.
    """
    if not panel.reads:
        raise BadRows(f"panel {name}: lists no reads")
    missing = [*inputs.candidate.missing(panel.reads), *inputs.parent.missing(panel.reads)]
    exclusions = Exclusions()
    if panel.exclude_file is not None:
        data = inputs.store.bytes_of(panel.exclude_file.path)
        if data is None:
            missing.append(f"exclude_file:{panel.exclude_file.path}")
        else:
            exclusions = registered_exclusions(panel.exclude_file, data, inputs)
    if missing:
        return PanelResult(None, missing)
    try:
        return _PanelReading(name, panel, inputs, exclusions).result()
    except (BadRows, UsageError) as error:
        raise BadRows(f"panel {name}: {error}") from None


def registered_exclusions(entry: records.ExcludeFile, data: bytes, inputs: PanelInputs) -> Exclusions:
    """The exclusions in the bytes of an exclude file. Raises Refused if they are not the registered ones."""
    found = hashlib.sha256(data).hexdigest()
    if found != entry.sha256.lower():
        raise Refused(
            f"{entry.path}: sha256 is {found}, registered is {entry.sha256}; an exclude file may not change after "
            "registration, so bring the registered one back"
        )
    return parse_exclusions(inputs.store.root / entry.path, data)


class _PanelReading:
    def __init__(self, name: str, panel: records.Panel, inputs: PanelInputs, exclusions: Exclusions) -> None:
        self._name, self._panel, self._inputs, self._exclusions = name, panel, inputs, exclusions

    def result(self) -> PanelResult:
        panel = self._panel
        kept = self._kept(self._joined(self._inputs.candidate))
        candidate, against = self._excluded(kept), self._parent()
        parent = against.rows
        values: dict[str, Any] = {"n": len(candidate)}
        if panel.exclude_sources or panel.exclude_tasks or panel.exclude_file:
            values["excluded"] = len(kept) - len(candidate)
        paired = against.baseline.compare(candidate, panel.metrics) if panel.metrics else {}
        for name in [*panel.metrics, *panel.report]:
            values[name] = {"candidate": metric(candidate, name), "parent": metric(parent, name)}
            if name in paired:
                values[name] |= {"delta": paired[name].delta, "ci95": paired[name].ci95}
        if panel.by_length:
            values |= self._by_length(candidate, parent)
        references, missing = self._versus(candidate)
        if references:
            values["versus"] = references
        return PanelResult(values, [], missing)

    def _parent(self) -> ParentPanel:
        side = self._inputs.parent
        directories = tuple(side.side.directory(tag) for tag in self._panel.reads)
        key = (self._inputs.stage, self._name, directories, side.fitted.temperature)
        if key not in self._inputs.parents:
            rows = self._excluded(self._kept(self._joined(side)))
            self._inputs.parents[key] = ParentPanel(rows, Baseline(rows, resamples=self._inputs.resamples))
        return self._inputs.parents[key]

    def _joined(self, side: ServedSide) -> Rows:
        """The side's served rows of every read, without `drop_ids`."""
        rows = concatenate([side.rows(tag) for tag in self._panel.reads])
        return self._without_dropped(rows)

    def _without_dropped(self, rows: Rows) -> Rows:
        drop = set(self._inputs.drop_ids)
        if not drop:
            return rows
        hit = _mask(identifier in drop for identifier in rows.ids)
        self._inputs.dropped.update(rows.ids[hit])
        return rows.take(~hit)

    def _kept(self, rows: Rows) -> Rows:
        """The rows of the sources that the panel names, if it names any."""
        if self._panel.source is None:
            return rows
        wanted = {self._panel.source} if isinstance(self._panel.source, str) else set(self._panel.source)
        return rows.take(_mask(source in wanted for source in rows.sources))

    def _excluded(self, rows: Rows) -> Rows:
        sources = self._exclusions.sources | set(self._panel.exclude_sources or ())
        tasks = self._exclusions.tasks | set(self._panel.exclude_tasks or ())
        ids = self._exclusions.ids
        columns = zip(rows.ids, rows.groups, rows.sources, rows.tasks, strict=True)
        return rows.take(
            _mask(
                source not in sources and task not in tasks and identifier not in ids and group not in ids
                for identifier, group, source, task in columns
            )
        )

    def _versus(self, candidate: Rows) -> tuple[dict[str, Any], list[str]]:
        """Each reference as saved: its own value over all its clean rows, the difference over the scored ones.

        `drop_ids` leave the reference's value alone, and only keep a duplicate from spoiling the pairing.
        """
        out, missing = {}, []
        for name, directory in (self._panel.versus or {}).items():
            if not self._inputs.store.has(directory):
                missing.append(f"versus:{directory}")
                continue
            rows = self._inputs.store.rows(directory)
            clean = self._excluded(self._kept(rows.take(rows.variants == CLEAN)))
            reference = scored(self._without_dropped(clean))
            paired = paired_bootstrap(candidate, reference, self._panel.metrics, resamples=self._inputs.resamples)
            out[name] = {
                key: {"reference": metric(clean, key), "delta": found.delta, "ci95": found.ci95}
                for key, found in paired.items()
            }
        return out, missing

    def _by_length(self, candidate: Rows, parent: Rows) -> dict[str, Any]:
        setting = self._panel.by_length if isinstance(self._panel.by_length, records.ByLength) else records.ByLength()
        edges = tuple(setting.edges or LENGTH_EDGES)
        check_edges(edges)
        tokens: Any = "rows"
        counts: Mapping[str, int] = {}
        if (candidate.state_tokens < 0).any() or (parent.state_tokens < 0).any():
            name, revision = setting.tokenizer or DEFAULT_TOKENIZER
            counts = self._suite_tokens((name, revision))
            tokens = {"records": "suite", "tokenizer": [name, revision]}
        sides = tokens_of(candidate, counts), tokens_of(parent, counts)
        for rows, found in zip((candidate, parent), sides, strict=True):
            if (found < 0).any():
                raise BadRows(f"{rows.where(int((found < 0).argmax()))}: no length is known for its record")
        buckets = bucket_values(candidate, parent, sides, edges)
        return {**buckets, "by_length": {"edges": list(edges), "tokens": tokens}}

    def _suite_tokens(self, tokenizer: tuple[str, str]) -> dict[str, int]:
        if self._inputs.count_tokens is None:
            raise BadRows(
                "its rows carry no state_tokens, and no tokenizer is at hand to count them from the suite; "
                "read them again with state_tokens, or take by_length out"
            )
        counts: dict[str, int] = {}
        for tag in self._panel.reads:
            counts |= self._inputs.count_tokens(self._inputs.reads[tag], tokenizer)
        return counts


def _mask(values: Any) -> NDArray[np.bool_]:
    return np.array(list(values), dtype=np.bool_)
