"""The studies of a target, derived again only where their files moved or an age that is shown has grown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kev.errors import DamagedFile
from kevtui.observe import derive
from kevtui.observe.history import points_per_trial
from kevtui.observe.snapshot import Lease, Point, Study, Trial, TrialState
from kevtui.observe.sources import Load, Sources, read_small
from kevtui.observe.study_view import index_of, state_of_status, view_study
from kevtui.observe.trial_log import TrialLog
from kevtui.observe.trial_view import TrialFacts, view_trial

if TYPE_CHECKING:
    from kev.records.spawn import SpawnRecord
    from kev.records.spec import Study as SpecStudy
    from kev.records.watch import WatchRecord
    from kev.session import Work

_FOREVER = float("inf")


@dataclass(frozen=True, slots=True)
class StudyContext:
    """What is known of a study beside its own files."""

    listed: Work | None = None
    registered: SpecStudy | None = None
    planned: tuple[tuple[str, str], ...] = ()
    """(label, directory name) of the trials that the spec's arms name."""
    read_out: frozenset[str] = frozenset()
    """Labels of the trials that the round's read-out has figures for."""


@dataclass(slots=True)
class _TrialEntry:
    log: TrialLog | None = None
    view: Trial | None = None
    points: tuple[Point, ...] = ()
    due: float = 0.0
    """Monotonic moment at which the view must be derived again, though no file moved."""


@dataclass(slots=True)
class _StudyEntry:
    view: Study | None = None
    spawn: SpawnRecord | None = None
    watch: WatchRecord | None = None
    context: StudyContext = field(default_factory=StudyContext)
    trials: dict[str, _TrialEntry] = field(default_factory=dict)
    leases: dict[str, Lease] = field(default_factory=dict)
    damaged: bool = False
    due: float = 0.0


class StudyBook:
    """Remembers each study's trials, logs and last view between passes."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._entries: dict[str, _StudyEntry] = {}
        self._most_points = points_per_trial(1)

    def update(
        self,
        names: list[str],
        contexts: Mapping[str, StudyContext],
        leases: Mapping[str, Lease],
        changed: set[str],
        *,
        now: datetime,
    ) -> tuple[Study, ...]:
        """The studies of `names`; `changed` are the folders in which anything moved since the last pass."""
        moved = self._moved_studies(changed)
        self._most_points = points_per_trial(sum(len(self._sources.children(name)) for name in names))
        by_study: dict[str, dict[str, Lease]] = {}
        for trial, lease in leases.items():
            study, _, label = trial.partition("/")
            by_study.setdefault(study, {})[label] = lease
        studies = [
            self._update_study(name, contexts.get(name) or StudyContext(), by_study.get(name, {}), moved, now)
            for name in names
        ]
        for gone in self._entries.keys() - set(names):
            del self._entries[gone]
        return tuple(studies)

    def stood_still(self) -> None:
        for entry in self._entries.values():
            for trial in entry.trials.values():
                trial.due = 0.0
                if trial.log:
                    trial.log.stood_still()

    def findings(self) -> list[tuple[str, str]]:
        """(path, reason) of logs that cannot be read and damaged lines in metrics."""
        return [
            (f"{trial.log.directory}/{name}", reason)
            for entry in self._entries.values()
            for trial in entry.trials.values()
            if trial.log
            for name, reason in trial.log.findings.items()
        ]

    def _moved_studies(self, changed: set[str]) -> dict[str, set[str]]:
        """Study -> its trial folders in which anything moved."""
        prefix = f"{self._sources.runs}/"
        moved: dict[str, set[str]] = {}
        for folder in changed:
            if folder.startswith(prefix):
                study, _, rest = folder.removeprefix(prefix).partition("/")
                trial = rest.partition("/")[0]
                moved.setdefault(study, set()).add(f"{prefix}{study}/{trial}" if trial else "")
        return moved

    def _update_study(
        self, name: str, context: StudyContext, leases: dict[str, Lease], moved: dict[str, set[str]], now: datetime
    ) -> Study:
        sources = self._sources
        entry = self._entries.get(name)
        fresh = entry is None
        if entry is None:
            entry = self._entries[name] = _StudyEntry()
        spawn, watch = sources.spawn(name), sources.watch(name)
        damaged = sources.spawn_damaged(name)
        anew = (
            fresh
            or damaged != entry.damaged
            or spawn is not entry.spawn
            or watch is not entry.watch
            or context != entry.context
        )
        if entry.view and not anew and name not in moved and leases == entry.leases and sources.monotonic < entry.due:
            return entry.view
        entry.spawn, entry.watch, entry.context, entry.damaged = spawn, watch, context, damaged
        folders = dict(sources.trial_directories(name))
        trials = []
        for label in _labels(spawn, watch, context, folders):
            trial = entry.trials.setdefault(label, _TrialEntry())
            directory = folders.get(label)
            stale = anew or leases.get(label) != entry.leases.get(label) or sources.monotonic >= trial.due
            if stale or trial.view is None or directory in moved.get(name, ()):
                self._update_trial(name, label, trial, entry, directory, leases.get(label), now)
            if trial.view is not None:
                trials.append(trial.view)
        entry.leases = leases
        for gone in entry.trials.keys() - {trial.label for trial in trials}:
            del entry.trials[gone]
        entry.due = min((trial.due for trial in entry.trials.values()), default=_FOREVER)
        study = view_study(name, tuple(trials), spawn=spawn, listed=context.listed, registered=context.registered,
                           damaged=damaged, watch=entry.watch)  # fmt: skip
        if study != entry.view:
            entry.view = study
        return entry.view or study

    def _update_trial(
        self,
        study: str,
        label: str,
        trial: _TrialEntry,
        entry: _StudyEntry,
        directory: str | None,
        lease: Lease | None,
        now: datetime,
    ) -> None:
        sources = self._sources
        facts = self._facts(study, label, trial, entry, directory, lease)
        if directory is not None and facts.log is not None:
            files = sources.lister.files(directory)
            if facts.log.follow(files, now=now, monotonic=sources.monotonic) or not trial.points:
                trial.points = facts.log.history.points(self._most_points)
        view = view_trial(facts, trial.points, now=now)
        trial.due = sources.monotonic + _until_due(facts, view, now)
        if view != trial.view:
            trial.view = view

    def _facts(
        self,
        study: str,
        label: str,
        trial: _TrialEntry,
        entry: _StudyEntry,
        directory: str | None,
        lease: Lease | None,
    ) -> TrialFacts:
        sources, context = self._sources, entry.context
        planned = dict(context.planned).get(label)
        files = sources.lister.files(directory) if directory else {}
        if directory and trial.log is None and ("train.log" in files or "metrics.jsonl" in files):
            trial.log = TrialLog(directory, open_tail=sources.tail)
        log_path = f"{directory}/train.log" if "train.log" in files else None
        ages = [sources.age_s(f"{directory}/{name}") for name in ("train.log", "metrics.jsonl") if name in files]
        resume = sources.resume_point(directory) if directory else None
        return TrialFacts(
            study=study,
            label=label,
            index=index_of(label, directory.rpartition("/")[2] if directory else planned),
            spawn=entry.spawn,
            watched=entry.watch.calls.get(label) if entry.watch else None,
            listed_call=context.listed.calls.get(label) if context.listed else None,
            listed=state_of_status(context.listed.status) if context.listed else None,
            read_out=label in context.read_out,
            planned=context.registered is not None or planned is not None,
            has_result=directory is not None and sources.value(f"{directory}/result.json", _read_result) is not None,
            failure=sources.value(f"{directory}/failed.json", _read_failure) if directory else None,
            resume=resume,
            resume_age_s=sources.age_s(f"{directory}/checkpoint/resume/latest.json") if resume else None,
            lease=lease,
            log=trial.log,
            log_path=log_path,
            log_age_s=min((age for age in ages if age is not None), default=None),
        )


def _labels(
    spawn: SpawnRecord | None, watch: WatchRecord | None, context: StudyContext, folders: dict[str, str]
) -> list[str]:
    labels = dict.fromkeys(
        [
            *(spawn.calls if spawn else ()),
            *(spawn.attempts if spawn else ()),
            *(watch.calls if watch else ()),
            *(context.listed.calls if context.listed else ()),
            *folders,
            *(label for label, _ in context.planned),
        ]
    )
    return sorted(labels, key=lambda label: (index_of(label, None) is None, index_of(label, None) or 0, label))


def _until_due(facts: TrialFacts, view: Trial, now: datetime) -> float:
    """Seconds after which the view differs though no file moved: an age shown grows, or a verdict ripens."""
    if view.state in (TrialState.DONE, TrialState.FAILED, TrialState.CANCELLED, TrialState.PLANNED):
        return 60.0 if facts.log_age_s is None else derive.until_coarser(facts.log_age_s)
    ages = [facts.log_age_s, facts.resume_age_s]
    if view.started_at is not None and facts.resume_age_s is None:
        ages.append((now - view.started_at).total_seconds())
    return min((derive.until_coarser(age) for age in ages if age is not None), default=60.0)


def _read_result(path: Path, load: Load) -> bool:
    read_small(path, load)
    return True


def _read_failure(path: Path, load: Load) -> str:
    error = read_small(path, load).get("error")
    if not isinstance(error, str):
        raise DamagedFile(path, "error: no text in it")
    return error
