"""One arm against its parent: temperatures, panels, the unknowable share, and the criteria of a stage."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kev.errors import BadRows
from kev.metrics import Resamples, raw, tempered, unknowable_share
from kev.records import spec as records
from kev.rounds.criteria import evaluate_all, verdict
from kev.rounds.guards import sides_of
from kev.rounds.panels import CountTokens, PanelInputs, ParentPanel, read_panel
from kev.rounds.rowstore import RowStore
from kev.rounds.sides import Side
from kev.rounds.temperatures import CANDIDATE, PARENT, Fitted, ServedSide, Unfitted, fit_side, missing_read


@dataclass
class Comparer:
    """Compares the arms of a round; rows and resamples are shared between them."""

    spec: records.RoundSpec
    store: RowStore
    resamples: Resamples = field(default_factory=Resamples)
    count_tokens: CountTokens | None = None
    dropped: set[str] = field(default_factory=set)
    """Which of the round's `drop_ids` some row had."""
    parents: dict[Hashable, ParentPanel] = field(default_factory=dict)
    """The parents' sides of panels, each prepared once for all arms."""

    def compare(self, arm: str, stage: str | None = None) -> dict[str, Any]:
        """The comparison of `arm` at the rule stage, or at a confirmation stage, as a read-out holds it.

        Whatever rows are absent, on either side, is listed in it. Raises KevError for rows that cannot be believed.
        """
        try:
            return _Comparison(self, arm, stage).to_json()
        except BadRows as error:
            raise BadRows(f"arm {arm}, {error}") from None


class _Comparison:
    def __init__(self, comparer: Comparer, arm: str, stage: str | None) -> None:
        self._comparer, self._stage = comparer, stage
        self._spec, self._store = comparer.spec, comparer.store
        self._candidate, self._parent = sides_of(comparer.spec, arm, stage)
        self._rule: records.Rule | records.Stage = self._spec.rule if stage is None else self._spec.confirm[stage]
        self._missing: list[str] = []
        self._missing_optional: list[str] = []
        self._notes: list[str] = []

    def to_json(self) -> dict[str, Any]:
        candidate = self._fit(self._candidate, CANDIDATE)
        parent = self._fit(self._parent, PARENT)
        head: dict[str, Any] = {"trial": self._candidate.trial, "parent": self._parent.trial}
        if self._candidate.checkpoint is not None:
            head["checkpoint"] = self._candidate.checkpoint
        if isinstance(candidate, Unfitted) or isinstance(parent, Unfitted):
            return self._unfitted(head, candidate, parent)
        for role, fitted in ((CANDIDATE, candidate), (PARENT, parent)):
            if fitted.note:
                self._notes.append(f"{role} temperature {fitted.temperature:.4g}: {fitted.note}")
        sides = (
            ServedSide(CANDIDATE, self._candidate, candidate, self._store),
            ServedSide(PARENT, self._parent, parent, self._store),
        )
        out = {
            **head,
            "temperature": candidate.temperature,
            "parent_temperature": parent.temperature,
            "panels": self._panels(*sides),
            "missing": self._missing,
        }
        if candidate.fit is not None:
            out["temperature_fit"] = candidate.fit
        if candidate.interval is not None:
            out["temperature_ci"] = candidate.interval
        out |= {"temperature_source": candidate.source, "parent_temperature_source": parent.source}
        if self._rule.unknowable is not None:
            out["unknowable"] = self._unknowable(self._rule.unknowable, *sides)
        return self._judged(out)

    def _fit(self, side: Side, role: str) -> Fitted | Unfitted:
        return fit_side(
            self._spec, side, role, self._store, resamples=self._comparer.resamples, interval=role == CANDIDATE
        )

    def _unfitted(
        self, head: dict[str, Any], candidate: Fitted | Unfitted, parent: Fitted | Unfitted
    ) -> dict[str, Any]:
        missing = [entry for each in (candidate, parent) if isinstance(each, Unfitted) for entry in each.missing]
        if self._spec.temperature is not None:
            head["temperature"] = candidate.temperature if isinstance(candidate, Fitted) else None
        return {**head, "missing": missing, "complete": False, "passed": None}

    def _panels(self, candidate: ServedSide, parent: ServedSide) -> dict[str, Any]:
        inputs = PanelInputs(
            candidate=candidate,
            parent=parent,
            store=self._store,
            resamples=self._comparer.resamples,
            drop_ids=self._spec.drop_ids,
            reads=self._spec.reads,
            count_tokens=self._comparer.count_tokens,
            dropped=self._comparer.dropped,
            parents=self._comparer.parents,
            stage=self._stage,
        )
        out = {}
        for name, panel in self._rule.panels.items():
            result = read_panel(name, panel, inputs)
            _add_new(self._missing_optional if panel.optional else self._missing, result.missing)
            _add_new(self._missing_optional, result.missing_references)
            if result.values is not None:
                out[name] = result.values
        return out

    def _unknowable(self, tag: str, candidate: ServedSide, parent: ServedSide) -> dict[str, float | None]:
        missing = missing_read(self._store, CANDIDATE, tag, candidate.side.directory(tag))
        if missing:
            _add_new(self._missing, [missing])
        # A parent that was never asked is reported as unknown: the rule bounds the candidate.
        return {side.role: self._share(side, tag) for side in (candidate, parent)}

    def _share(self, side: ServedSide, tag: str) -> float | None:
        directory = side.side.directory(tag)
        if directory is None or not self._store.has(directory):
            return None
        rows = self._store.rows(directory)
        rows = rows.take(rows.sources == "unknowable")
        if not len(rows):
            self._notes.append(f"{side.role}:{directory} holds no unknowable rows")
            return None
        return unknowable_share(tempered(raw(rows), side.fitted.temperature))

    def _judged(self, out: dict[str, Any]) -> dict[str, Any]:
        criteria: Mapping[str, Any] = {name: entry.to_json() for name, entry in self._rule.criteria.items()}
        outcomes = {name: outcome.passed for name, outcome in evaluate_all(criteria, out).items()}
        complete = not self._missing
        out["criteria"] = outcomes
        if self._missing_optional:
            out["missing_optional"] = self._missing_optional
        if self._notes:
            out["notes"] = self._notes
        return {**out, "complete": complete, "passed": verdict(outcomes.values(), complete=complete)}


def _add_new(known: list[str], entries: list[str]) -> None:
    known.extend(entry for entry in entries if entry not in known)
