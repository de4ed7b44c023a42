"""The rows of the studies: which there are, which of them a filter leaves, and in which order."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from kevtui.observe.snapshot import Lease, Snapshot, Study, Trial
from kevtui.widgets.line import Role
from kevtui.widgets.state import lease_of, state, trial_state, urgency


@dataclass(frozen=True, slots=True)
class Entry:
    """One row: a trial, or a study that has none yet."""

    study: Study
    trial: Trial | None
    lease: Lease | None
    first: bool
    """True on the first row of its study, where what belongs to the study as a whole is shown."""

    @property
    def key(self) -> str:
        return self.trial.id if self.trial else self.study.name

    @property
    def name(self) -> str:
        if self.trial is None:
            return self.study.name
        plain = self.trial.index is not None and self.trial.label == f"trial-{self.trial.index}"
        return f"{self.study.name}/{self.trial.index if plain else self.trial.label}"

    @property
    def state(self) -> tuple[str, str, Role]:
        return trial_state(self.trial) if self.trial else state(self.study.state)


def entries(snapshot: Snapshot) -> list[Entry]:
    leases = lease_of(snapshot)
    rows = []
    for study in snapshot.studies:
        for position, trial in enumerate(study.trials):
            rows.append(Entry(study, trial, leases.get(trial.id), position == 0))
        if not study.trials:
            rows.append(Entry(study, None, None, True))
    return rows


def matching(rows: list[Entry], words: str) -> list[Entry]:
    """The entries that hold every word of `words` in study, trial or state; `!word` must not be held."""
    wanted = words.casefold().split()

    def holds(row: Entry) -> bool:
        text = f"{row.key} {row.name} {row.state[1]} {row.study.state}".casefold()
        return all((word[1:] not in text) if word.startswith("!") and word[1:] else word in text for word in wanted)

    return [row for row in rows if holds(row)] if wanted else rows


class Sort(NamedTuple):
    name: str
    key: Callable[[Entry], object] | None


def _missing_last(value: float | None, *, largest_first: bool = False) -> tuple[bool, float]:
    if value is None:
        return True, 0.0
    return False, -value if largest_first else value


def share_of(row: Entry) -> float | None:
    trial = row.trial
    return trial.step / trial.steps if trial and trial.step is not None and trial.steps else None


def rate_of(row: Entry) -> float | None:
    return row.trial.rate.steps_per_minute if row.trial and row.trial.rate else None


def _finish(row: Entry) -> float | None:
    return row.trial.projection.finish_at.timestamp() if row.trial and row.trial.projection else None


SORTS = (
    Sort("", None),
    Sort("state", lambda row: urgency(row.state[1])),
    Sort("name", lambda row: row.name.casefold()),
    Sort("progress", lambda row: _missing_last(share_of(row))),
    Sort("rate", lambda row: _missing_last(rate_of(row))),
    Sort("finish", lambda row: _missing_last(_finish(row), largest_first=True)),
    Sort("lease age", lambda row: _missing_last(row.lease.unchanged_s if row.lease else None, largest_first=True)),
    Sort("bound", lambda row: _missing_last(None if row.study.bound is None else float(row.study.bound),
                                            largest_first=True)),
)  # fmt: skip
"""Slowest, latest and dearest first; the first entry is the order of the files."""
