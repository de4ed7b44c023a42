"""`moment`: the Snapshot of any moment of a night, by the same code that makes those of now."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from kev import files
from kev.errors import DamagedFile, NotFound
from kev.records.base import parse_record
from kev.records.resume import ResumePoint
from kevtui.observe.lister import Folder, Lister, Rule, Signature
from kevtui.observe.log_tail import FIRST_READ, LONGEST_LINE, Tail
from kevtui.observe.observer import Observer
from kevtui.observe.snapshot import Alert, Money, Replay, Severity, Snapshot, Study
from kevtui.observe.sources import Load, Sources
from kevtui.observe.target import Target
from kevtui.replay.history import History
from kevtui.replay.versions import Then


class StillClock:
    """Stands at one moment."""

    def __init__(self, at: datetime) -> None:
        self._at = at

    def now(self) -> datetime:
        return self._at

    def monotonic(self) -> float:
        return self._at.timestamp()


class PastLister(Lister):
    """Lists what was there at one moment."""

    def __init__(self, trees: dict[Path, tuple[Rule, Rule]], then: Mapping[str, Then]) -> None:
        super().__init__(trees)
        for top in trees:
            self.folders[str(top)] = Folder(())
        below: dict[str, set[str]] = {}
        for path, held in then.items():
            folder, _, name = path.rpartition("/")
            size = 1 if held.data is None else len(held.data)
            signature: Signature = (held.stamp_ns, held.stamp_ns, size, 0)
            self._enter(folder, trees, below).files[name] = signature
        for folder, names in below.items():
            self.folders[folder].folders = tuple(sorted(names))
        for folder in self.folders:
            self._mark(folder)

    def _enter(self, folder: str, trees: Mapping[Path, object], below: dict[str, set[str]]) -> Folder:
        known = self.folders.get(folder)
        if known is None:
            top = max((str(top) for top in trees if folder.startswith(f"{top}/")), key=len, default=folder)
            parts = tuple(folder.removeprefix(f"{top}/").split("/")) if top != folder else ()
            known = self.folders[folder] = Folder(parts)
            if parts:
                above, _, name = folder.rpartition("/")
                self._enter(above, trees, below)
                below.setdefault(above, set()).add(name)
        return known

    def sweep(self) -> bool:
        return False

    def look(self, paths: object) -> bool:  # noqa: ARG002
        return False


class PastTail:
    """All whole lines of a file that does not grow, within what a first look reads."""

    def __init__(self, path: Path, then: Then | None, *, carriage_returns: bool, first_read: int) -> None:
        self._path, self._then = path, then
        self._carriage_returns, self._first_read = carriage_returns, first_read

    def read(self) -> Tail:
        if self._then is None or self._then.data is None:
            raise NotFound(f"{self._path}: no such file at this moment")
        data = self._then.data
        start = max(0, len(data) - self._first_read)
        skipped = bool(start) and data[start - 1 : start] != b"\n"
        data = data[start:]
        lines = (data.replace(b"\r", b"\n") if self._carriage_returns else data).split(b"\n")
        *whole, partial = [line[:LONGEST_LINE] for line in lines]
        self._then = Then(self._then.stamp_ns, b"")
        return Tail(tuple(whole[skipped:]), partial, None if start else 1)


class PastSources(Sources):
    """The files of a night at one moment. Nothing of the disk is looked at."""

    def __init__(
        self, target: Target, leases: Path, then: Mapping[str, Then], *, asked: set[str] | None = None
    ) -> None:
        """`then`: full path to what it held. `asked` takes the directories of reads that are looked for."""
        self._then = then
        self._asked = asked
        super().__init__(target, leases)

    def _make_lister(self, trees: dict[Path, tuple[Rule, Rule]]) -> Lister:
        return PastLister(trees, self._then)

    def look_again(self) -> Target:
        # What is on the disk now says nothing of which session the round had then.
        return self.target

    def load(self, path: Path, *, limit: int = files.MAX_JSON_BYTES) -> Any:
        then = self._then.get(str(path))
        if then is None:
            raise NotFound(f"{path}: no such file at this moment")
        if then.data is not None and len(then.data) > limit:
            raise DamagedFile(path, f"{len(then.data):,} bytes, more than the {limit:,} a record may have")
        try:
            return then.load()
        except ValueError as error:
            raise DamagedFile(path, str(error)) from None

    def has_rows(self, directory: str) -> bool:
        if self._asked is not None:
            self._asked.add(directory.rstrip("/"))
        return super().has_rows(directory)

    def tail(self, path: Path, *, carriage_returns: bool = True, first_read: int = FIRST_READ) -> PastTail:
        return PastTail(path, self._then.get(str(path)), carriage_returns=carriage_returns, first_read=first_read)

    def _read_resume_point(self, path: Path, load: Load) -> ResumePoint:
        # Which shards lay beside it then is not known.
        return parse_record(path, load(path), ResumePoint)


def moment(history: History, at: datetime, *, asked: set[str] | None = None) -> Snapshot:
    """What was known at `at`, and nothing later. It depends on its arguments alone.

    `asked` takes the directories of all reads that were looked for, relative to the root.
    """
    night = history.night
    target = _at_home(night.target, night.state, night.spec)
    then = {}
    for path, version in history.versions.items():
        if (held := version.at(at)) is not None:
            then[f"{target.root}/{path}"] = held
    sources = PastSources(target, night.leases, then, asked=asked)
    observer = Observer(target, clock=StillClock(at), leases=night.leases, poll=True, sources=sources)
    snapshot = observer.observe()
    state = history.state
    money = snapshot.money
    if state is not None and state.opened <= at < state.written and state.untimed:
        money = _without_committed(money)
    return replace(
        snapshot,
        polling="",
        money=money,
        studies=tuple(map(_without_logs, snapshot.studies)),
        alerts=(*snapshot.alerts, *_untimed(history)),
        replay=Replay(history.begins_at, history.ends_at, untimed=history.untimed),
    )


def _at_home(target: Target, state: str | None, spec: str | None) -> Target:
    """`target` with its named files in the trees of the night, wherever they lie on the disk."""
    return replace(
        target,
        state=None if state is None else target.root / state,
        spec=None if spec is None else target.root / spec,
    )


def _without_committed(money: Money) -> Money:
    note = "when studies were launched is not recorded"
    return replace(
        money, committed=None, committed_complete=False, committed_note=note, headroom=None, exhausted_in_s=None,
        exhaustion_note="the headroom is not known",
    )  # fmt: skip


def _without_logs(study: Study) -> Study:
    # The log on the disk goes on past this moment, and its lines do not say where.
    return replace(study, trials=tuple(replace(trial, log=None) for trial in study.trials))


def _untimed(history: History) -> list[Alert]:
    if not history.untimed:
        return []
    text = "no time is recorded of, so not shown: " + "; ".join(history.untimed)
    return [Alert("untimed", Severity.INFO, "replay", text)]
