"""Files become Snapshots: one pass looks at what moved and derives again only what that touches."""

import os
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from kev.clock import Clock, SystemClock
from kev.session import events_path
from kevtui.observe import derive
from kevtui.observe.acknowledged import alerts_path, is_known, parse_known
from kevtui.observe.alerts import find_alerts
from kevtui.observe.changes import Changes
from kevtui.observe.events_view import ROUNDS_FILE, JournalTail, Transitions, merged
from kevtui.observe.far_sources import sources_of
from kevtui.observe.frame import Frame, read_frame, readout_path
from kevtui.observe.lease_view import LeaseBook
from kevtui.observe.money_view import view_money
from kevtui.observe.readout_view import view_readout
from kevtui.observe.reads_book import ReadsBook
from kevtui.observe.snapshot import (
    Alert,
    Event,
    Finding,
    Readout,
    Section,
    Snapshot,
    Study,
)
from kevtui.observe.sources import Sources
from kevtui.observe.study_book import StudyBook
from kevtui.observe.target import STATE_SUFFIX, Target
from kevtui.observe.trial_alerts import StudyAlerts
from kevtui.observe.watcher_view import view_watcher

POLL_S = 2.0
"""The slow look at every file, behind the events that may not come."""

SWEEP_SHARE = 0.005
"""A sweep may take this share of the CPU: with thousands of files the poll slows down instead of costing more."""

RESTS = 4.0
"""And it is left alone for so many times as long as it took: a slow link has other things to do, too."""

MOST_REST_S = 30.0

SLOW_S = 1.0
"""A sweep that takes longer is not made again for ages alone, only when it is due."""

LEASES_VARIABLE = "KEV_LEASES_DIR"


class Observer:
    """Observes one target. `observe` and `wait` belong to one thread; `close` may be called from any."""

    pace_s: Final = None

    def __init__(
        self,
        target: Target,
        *,
        clock: Clock | None = None,
        leases: Path | None = None,
        poll: bool = False,
        sources: Sources | None = None,
    ) -> None:
        """`leases` defaults to `leases_of` the root; `poll` asks for no events; `sources` stand for the disk."""
        self._target = target
        self._clock = clock or SystemClock()
        leases = leases or leases_of(target.root)
        self._sources = sources or sources_of(target, leases)
        self._changes = Changes(self._folders_watched(leases), poll=poll)
        self._book = StudyBook(self._sources)
        self._leases = LeaseBook(self._sources)
        self._study_alerts = StudyAlerts()
        self._reads = ReadsBook(self._sources)
        self._journals: dict[str, JournalTail] = {}
        self._transitions = Transitions()
        self._last: Snapshot | None = None
        self._swept_at: float | None = None
        self._sweep_cpu_s = 0.0
        self._sweeps_took_s = (0.0, 0.0)
        self._fresh = False
        self._asked_s = 0.0
        self._passed: tuple[datetime, float] | None = None
        self._frame: Frame | None = None
        self._states: dict[str, Any] = {}
        """The state files in which no session of the round was found."""
        self._readout: tuple[Frame, float | None, Readout | None] | None = None

    # ---- waiting

    def wait(self, timeout_s: float) -> bool:
        """Block until a file moved, `close`, or the timeout; true if a pass may bring something new.

        Whether or not events come, every file is looked at every two seconds. After a False no file has moved, and
        a pass brings only ages that have grown.
        """
        self._asked_s += timeout_s
        # Waiting is in real time, whatever clock the Snapshots are made by.
        end = time.monotonic() + timeout_s
        while not self._changes.closed:
            now = time.monotonic()
            due = self._swept_at + self._interval_s() if self._swept_at is not None else now
            if now >= due and self._sweep():
                self._fresh = True
                return True
            if self._last is not None and self._last.polling != self._changes.polling:
                return True
            if self._changes.wait(max(0.0, min(end, self._next_sweep()) - time.monotonic())):
                if self._look():
                    self._fresh = True
                    return True
            elif time.monotonic() >= end:
                return False
        return False

    def close(self) -> None:
        """End every wait now. May be called from any thread, more than once."""
        self._changes.close()

    # ---- looking

    def observe(self) -> Snapshot:
        """One pass over what moved. Never raises for bad files: they become findings."""
        now, monotonic = self._clock.now(), self._clock.monotonic()
        self._notice_suspension(now, monotonic)
        self._sources.begin(now_unix=now.timestamp(), monotonic=monotonic)
        if not self._fresh and not self._may_rest():
            self._sweep()
        self._fresh = False
        self._last = renewed(self._last, self._fold(now, self._sources.take_changed()))
        return self._last

    def _notice_suspension(self, now: datetime, monotonic: float) -> None:
        if self._passed is not None:
            before, at = self._passed
            gap_s, wall_s = monotonic - at, (now - before).total_seconds()
            if derive.was_suspended(monotonic_gap_s=gap_s, wall_gap_s=wall_s, asked_s=self._asked_s):
                self._sources.stood_still(gap_s)
                self._leases.stood_still(gap_s)
                self._book.stood_still()
        self._passed, self._asked_s = (now, monotonic), POLL_S

    def _interval_s(self) -> float:
        return max(POLL_S, self._sweep_cpu_s / SWEEP_SHARE, min(self._sweep_took_s * RESTS, MOST_REST_S))

    @property
    def _sweep_took_s(self) -> float:
        # Of the last two the quicker one: a volume that hung and is back is not a slow one.
        return min(self._sweeps_took_s)

    def _may_rest(self) -> bool:
        """Whether the volume is slow, and not to be asked again yet."""
        return self._sweep_took_s > SLOW_S and time.monotonic() < self._next_sweep()

    def _next_sweep(self) -> float:
        return (self._swept_at or 0.0) + self._interval_s()

    def _sweep(self) -> bool:
        # The watcher's words are taken first: what moves during the sweep is then told of again.
        self._changes.take()
        start, cpu = time.monotonic(), time.thread_time()
        unreadable = len(self._sources.lister.unreadable)
        moved = self._sources.lister.sweep()
        if len(self._sources.lister.unreadable) < unreadable:
            self._changes.renew()
        self._swept_at = time.monotonic()
        self._sweep_cpu_s = time.thread_time() - cpu
        self._sweeps_took_s = (self._sweeps_took_s[1], self._swept_at - start)
        return moved

    def _look(self) -> bool:
        return self._sources.lister.look(self._changes.take())

    def _folders_watched(self, leases: Path) -> list[Path]:
        target = self._target
        folders = [target.root / "runs", target.root / "experiments" / "rounds", leases]
        return folders + [named.parent for named in (target.spec, target.state) if named is not None
                          and not any(named.is_relative_to(folder) for folder in folders)]  # fmt: skip

    # ---- folding

    def _fold(self, now: datetime, changed: set[str]) -> Snapshot:
        sources = self._sources
        self._find_session()
        target = self._target
        anew = self._frame is None or not all(self._is_inner(folder) for folder in changed)
        if self._frame is None or anew:
            self._frame = read_frame(target, sources)
        frame = self._frame
        sources.read_ahead(frame.names, changed)
        leases = self._leases.update(changed, self._nonce_of if anew else None)
        held = {trial: lease for trial, lease in leases.items() if trial.partition("/")[0] in frame.contexts}
        studies = self._book.update(frame.names, frame.contexts, held, changed, now=now)
        chosen = frame.readout.candidates.values() if frame.readout else ()
        reads = self._reads.view(frame.spec, candidates={arm for arm in chosen if arm}, now_unix=sources.now_unix)
        money = view_money(
            frame.session,
            studies,
            unreadable=frame.unreadable,
            reads=self._reads.bounds(frame.spec, reads),
            readings=frame.spending,
            gateway_spent=frame.gateway_spent,
            now=now,
        )
        watcher = view_watcher(studies, sources)
        events = self._view_events(studies, now)
        acknowledged = self._is_acknowledged()
        findings = self._findings()
        readout = self._view_readout(frame)
        alerts = find_alerts(
            money=money,
            studies=studies,
            of_studies=self._study_alerts.find(studies, now=now),
            leases=held.values(),
            watcher=watcher,
            reads=reads,
            readout=readout,
            verdicts=frame.verdicts,
            findings=findings,
            acknowledged=acknowledged,
        )
        return Snapshot(
            taken_at=now,
            title=target.title,
            root=str(target.root),
            session=target.session,
            round=frame.round,
            spec=None if frame.spec_path is None else sources.shown(frame.spec_path),
            state_file=None if target.state is None else sources.shown(str(target.state)),
            sample=frame.sample,
            polling=self._changes.polling,
            money=money,
            studies=studies,
            leases=tuple(held.values()),
            watcher=watcher,
            reads=reads,
            readout=readout,
            verdicts=frame.verdicts,
            events=events,
            findings=findings,
            alerts=alerts,
        )

    def _find_session(self) -> None:
        """Take the session of a round that had none when it was named: it may have been opened from here."""
        if self._target.spec is None or self._target.state is not None:
            return
        listed = self._sources.lister.files(self._sources.runs).items()
        states = {name: signature for name, signature in listed if name.endswith(STATE_SUFFIX)}
        if states != self._states:
            self._states = states
            found = self._sources.look_again()
            if found.state is not None:
                self._target = self._sources.target = found
                self._frame = None

    def _is_inner(self, folder: str) -> bool:
        """Whether a folder holds only the files of one trial or lease, whose change touches nothing else."""
        sources = self._sources
        return folder.startswith(f"{sources.leases}/") or (
            folder.startswith(f"{sources.runs}/") and folder.count("/") > sources.runs.count("/") + 1
            and not folder.startswith(f"{sources.runs}/locked/")
        )  # fmt: skip

    def _nonce_of(self, trial: str) -> str | None:
        study, _, label = trial.partition("/")
        spawn = self._sources.spawn(study)
        attempt = spawn.current_attempt(label) if spawn else None
        return attempt.nonce if attempt else None

    def _view_readout(self, frame: Frame) -> Readout | None:
        path = readout_path(self._sources, frame.round) if frame.round is not None and frame.readout else None
        age_s = derive.coarse(self._sources.age_s(path)) if path else None
        known = self._readout
        if known is None or known[0] is not frame or known[1] != age_s:
            source = self._sources.shown(path) if path else ""
            self._readout = (frame, age_s, view_readout(frame.spec, frame.readout, source=source, age_s=age_s))
        return self._readout[2] if self._readout else None

    def _view_events(self, studies: tuple[Study, ...], now: datetime) -> tuple[Event, ...]:
        paths = [f"{self._sources.runs}/{ROUNDS_FILE}"]
        if self._target.state is not None:
            paths.append(str(events_path(self._target.state)))
        told = []
        for path in paths:
            journal = self._journals.setdefault(path, JournalTail(Path(path), self._sources.tail))
            told.append(journal.follow(self._sources.signature(path)))
        return merged(*told, self._transitions.follow(studies, now=now))

    def _is_acknowledged(self) -> Callable[[Alert], bool]:
        path = str(alerts_path(Path(self._sources.runs), self._target.session))
        return partial(is_known, self._sources.value(path, parse_known) or {})

    def _findings(self) -> tuple[Finding, ...]:
        shown = self._sources.shown
        logs = [Finding(shown(path), reason) for path, reason in self._book.findings()]
        journals = [Finding(shown(path), tail.finding) for path, tail in self._journals.items() if tail.finding]
        several = [Finding("runs", _none_taken(self._target.untaken))] if self._target.untaken else []
        found = [*self._sources.findings(), *logs, *journals, *several]
        return tuple(sorted(found, key=lambda finding: finding.path))


def leases_of(root: Path) -> Path:
    """Where the copy of the lease volume is: KEV_LEASES_DIR, else volumes/kev-leases under the root."""
    return Path(os.environ.get(LEASES_VARIABLE) or root / "volumes" / "kev-leases")


def _none_taken(names: tuple[str, ...]) -> str:
    listed = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return f"has the state files of {listed}; none was taken, so the money is not known: name one session"


def _sections(snapshot: Snapshot) -> Iterator[tuple[str, Any]]:
    for section in Section:
        yield section.value, getattr(snapshot, section.value)


def _changed(last: Snapshot | None, snapshot: Snapshot) -> frozenset[str]:
    if last is None:
        return frozenset(section.value for section in Section)
    return frozenset(name for name, value in _sections(snapshot) if value != getattr(last, name))


def renewed(last: Snapshot | None, snapshot: Snapshot) -> Snapshot:
    """`snapshot` with what changed since `last` marked, and every other section being the very object of `last`."""
    changed = _changed(last, snapshot)
    values = {name: getattr(snapshot, name) for name in Snapshot.__dataclass_fields__}
    if last is not None:
        values |= {name: getattr(last, name) for name, _ in _sections(snapshot) if name not in changed}
    return Snapshot(**{**values, "changed": changed})
