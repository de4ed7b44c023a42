"""What happened: the session's journal, the rounds an unattended run completed, and changes seen while watching."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kev import files
from kev.errors import DamagedFile, NotFound
from kevtui.observe.lister import Signature
from kevtui.observe.log_tail import LogTail, OpenTail
from kevtui.observe.records_cache import reason_of
from kevtui.observe.snapshot import Event, Severity, Study, TrialState

if TYPE_CHECKING:
    from kev.records.autoresearch import SessionRound

MOST_NAMED = 8
MOST_EVENTS = 200
ROUNDS_FILE = "autoresearch-sessions.jsonl"

_SEVERITIES = {
    "info": Severity.INFO, "warning": Severity.WARNING, "critical": Severity.CRITICAL, "error": Severity.CRITICAL,
}  # fmt: skip
_BAD = frozenset({TrialState.FAILED, TrialState.TIMED_OUT, TrialState.REFUSED, TrialState.UNREACHABLE})


class JournalTail:
    """Follows one line-delimited file of events; keeps the newest."""

    def __init__(self, path: Path, open_tail: OpenTail = LogTail) -> None:
        self._path = path
        self._tail = open_tail(path, carriage_returns=False, first_read=512 * 1024)
        self._signature: Signature | None = None
        self._events: deque[Event] = deque(maxlen=MOST_EVENTS)
        self._damage: list[str] = []
        self.finding: str | None = None

    def follow(self, signature: Signature | None) -> tuple[Event, ...]:
        """The newest events, oldest first."""
        if signature is not None and signature != self._signature:
            self._signature = signature
            self._read()
        return tuple(self._events)

    def _read(self) -> None:
        more = True
        while more:
            try:
                tail = self._tail.read()
            except NotFound:
                self._signature = None
                return
            except DamagedFile as error:
                self._signature, self.finding = None, reason_of(error)
                return
            more = tail.more
            if tail.restarted:
                self._events.clear()
                self._damage.clear()
            # The unfinished tail is not read: an appended line is whole once its newline is there.
            for number, line in enumerate(tail.lines, start=tail.first_line or 0):
                if line.strip():
                    self._take(line, number if tail.first_line else None)
        unnamed = len(self._damage) - MOST_NAMED
        self.finding = (
            "; ".join(self._damage[:MOST_NAMED]) + (f"; and {unnamed:,} more lines" if unnamed > 0 else "") or None
        )

    def _take(self, line: bytes, number: int | None) -> None:
        where = f"line {number}: " if number else ""
        try:
            value = files.parse_json(line)
        except ValueError as error:
            # The parser counts lines within what it was given, which is always one.
            self._damage.append(f"{where}{error}".replace("line 1, ", ""))
            return
        event = read_event(value)
        if event is None:
            self._damage.append(f"{where}no event in it")
        else:
            self._events.append(event)


def read_event(value: Any) -> Event | None:
    """One line of a journal, or of the list of completed rounds."""
    from pydantic import ValidationError

    from kev.records.autoresearch import SessionRound
    from kev.records.event import Event as EventRecord

    try:
        if isinstance(value, dict) and "round" in value and "text" not in value:
            return _completed(SessionRound.model_validate(value))
        record = EventRecord.model_validate(value)
    except ValidationError:
        return None
    severity = _SEVERITIES.get(record.severity, Severity.INFO)
    instant = record.instant
    text = record.text if instant.at else f"{record.text} ({instant.text}: {instant.problem})"
    return Event(severity, text, instant.at, record.subject)


def _completed(record: SessionRound) -> Event:
    candidates = ", ".join(f"{size}: {arm or 'none'}" for size, arm in record.candidates.items())
    text = f"round {record.round} completed" + (f", candidates {candidates}" if candidates else "")
    if record.instant.at is None:
        text += f" ({record.instant.text}: {record.instant.problem})"
    return Event(Severity.INFO, text, record.instant.at, f"r{record.round}")


class Transitions:
    """Trials whose state changed while we watched."""

    def __init__(self) -> None:
        self._studies: dict[str, Study] | None = None
        self._events: deque[Event] = deque(maxlen=MOST_EVENTS)

    def follow(self, studies: Iterable[Study], *, now: datetime) -> tuple[Event, ...]:
        """The changes so far, oldest first."""
        known = {}
        for study in studies:
            known[study.name] = study
            before = self._studies.get(study.name) if self._studies else None
            if before is not None and before is not study:
                self._compare(before, study, now)
        self._studies = known
        return tuple(self._events)

    def _compare(self, before: Study, after: Study, now: datetime) -> None:
        states = {trial.label: trial.state for trial in before.trials}
        for trial in after.trials:
            state = states.get(trial.label, trial.state)
            if state is not trial.state:
                severity = Severity.WARNING if trial.state in _BAD else Severity.INFO
                self._events.append(Event(severity, f"{state} → {trial.state}", now, trial.id))


def merged(*sources: tuple[Event, ...]) -> tuple[Event, ...]:
    """The newest of all, oldest first; those without a moment come first, in their own order."""
    beginning = datetime.min.replace(tzinfo=UTC)
    together = sorted((event for source in sources for event in source), key=lambda event: event.at or beginning)
    return tuple(together[-MOST_EVENTS:])
