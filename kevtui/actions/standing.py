"""Writing down which alerts stand and which of them somebody knows of, and telling the session's journal."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from kev import files
from kev.clock import Clock
from kev.errors import DamagedFile, KevError, NotFound
from kev.records.alerts import Acknowledgement, StandingAlert, StandingAlerts
from kev.records.event import EventSeverity
from kev.session import append_event, events_path
from kev.text import shorten
from kevtui.actions.accept import who
from kevtui.observe.acknowledged import alerts_path, covers, read_standing
from kevtui.observe.snapshot import Alert, Severity

MOST_LINES: Final = 20
"""Journal lines for one change; the rest is counted in one more. A hundred trials can fail in the same second."""

KIND: Final = "alert"

MOST_TEXT: Final = 500

_SEVERITY: Final[dict[Severity, EventSeverity]] = {
    Severity.INFO: "info", Severity.WARNING: "warning", Severity.CRITICAL: "critical",
}  # fmt: skip


class StandingFile:
    """The standing alerts of one session, or of what is watched without one; changed under a lock."""

    def __init__(self, runs: Path, session: str | None, state_file: Path | None, clock: Clock) -> None:
        """`state_file` is the session's; beside it lies the journal. Without one nothing is journalled."""
        self._path = alerts_path(runs, session)
        self._lock = runs / ".actions" / f"{self._path.name}.lock"
        self._state = state_file
        self._clock = clock

    def keep(self, alerts: Iterable[Alert]) -> bool:
        """Write down that exactly `alerts` stand; whether that was a change. Raises KevError."""
        present = {alert.id: alert for alert in alerts}

        def change(known: dict[str, StandingAlert], now: datetime) -> Iterator[_Line]:
            for name in [name for name in known if name not in present]:
                gone = known.pop(name)
                yield _Line(name, f"over: {gone.text}")
            for name, alert in present.items():
                before = known.get(name)
                if before is None:
                    yield _Line(name, f"raised: {alert.text}", alert.severity)
                elif (before.severity, before.condition) == (alert.severity, alert.condition):
                    continue
                else:
                    yield _Line(name, f"now {alert.severity}: {alert.text}", alert.severity)
                at = now.timestamp() if before is None else before.raised_at
                kept = before.acknowledged if before else None
                if kept is not None and not covers(kept.condition, kept.severity, alert):
                    kept = None
                known[name] = _entry(alert, at, kept)

        return self._change(change)

    def acknowledge(self, alerts: Iterable[Alert], *, reason: str = "") -> list[str]:
        """Put on record that somebody knows of `alerts` as they are; the ids of those of which it is news."""
        new: list[str] = []

        def change(known: dict[str, StandingAlert], now: datetime) -> Iterator[_Line]:
            for alert in alerts:
                before = known.get(alert.id)
                kept = before.acknowledged if before else None
                if kept is not None and covers(kept.condition, kept.severity, alert):
                    continue
                at = now.timestamp()
                mark = Acknowledgement(
                    at=at, who=who(), reason=reason, severity=str(alert.severity), condition=alert.condition
                )
                known[alert.id] = _entry(alert, before.raised_at if before else at, mark)
                new.append(alert.id)
                why = f"; why: {reason}" if reason else ""
                yield _Line(alert.id, f"acknowledged: {alert.text}{why}")

        self._change(change)
        return new

    def withdraw(self, names: Iterable[str] | None = None, *, reason: str = "") -> list[str]:
        """Take acknowledgements back, all of them or those of `names`; the ids that had one."""
        wanted = None if names is None else set(names)
        gone: list[str] = []

        def change(known: dict[str, StandingAlert], _: datetime) -> Iterator[_Line]:
            for name, entry in known.items():
                if entry.acknowledged is not None and (wanted is None or name in wanted):
                    known[name] = entry.model_copy(update={"acknowledged": None})
                    gone.append(name)
                    why = f"; why: {reason}" if reason else ""
                    yield _Line(name, f"acknowledgement withdrawn: {entry.text}{why}")

        self._change(change)
        return gone

    def standing(self) -> dict[str, StandingAlert]:
        """What the file says, by id. Raises DamagedFile."""
        try:
            return dict(read_standing(self._path).alerts)
        except NotFound:
            return {}

    def _change(self, change: "_Change") -> bool:
        try:
            with files.locked(self._lock, wait=True):
                known, now = self.standing(), self._clock.now()
                lines = list(change(known, now))
                if not lines:
                    return False
                files.write_atomic(self._path, files.dump_json(StandingAlerts(alerts=known).to_json()))
        except DamagedFile as error:
            raise KevError(f"{error}; remove it, and no alert counts as acknowledged") from None
        except OSError as error:
            raise KevError(f"{self._path}: cannot be written ({error.strerror or error})") from None
        self._tell(lines, now)
        return True

    def _tell(self, lines: "list[_Line]", now: datetime) -> None:
        if self._state is None or not self._state.exists():
            return
        if len(lines) > MOST_LINES + 1:
            rest = len(lines) - MOST_LINES
            lines = [*lines[:MOST_LINES], _Line("", f"and {rest} more alerts were raised, or are over")]
        # The file says what stands; a journal that takes no line must not undo it.
        with suppress(OSError):
            for line in lines:
                kind, _, subject = line.id.partition(":")
                text = shorten(f"{kind} {line.text}".strip(), MOST_TEXT)
                append_event(
                    events_path(self._state), now, KIND, text, severity=_SEVERITY[line.severity], subject=subject,
                    who=who(),
                )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Line:
    """One line for the journal. What is no trouble any more, or is known, is no incident."""

    id: str
    text: str
    severity: Severity = Severity.INFO


_Change = Callable[[dict[str, StandingAlert], datetime], Iterable[_Line]]


def _entry(alert: Alert, raised_at: float, acknowledged: Acknowledgement | None) -> StandingAlert:
    return StandingAlert(
        severity=str(alert.severity), condition=alert.condition, text=shorten(alert.text, MOST_TEXT),
        raised_at=raised_at, acknowledged=acknowledged,
    )  # fmt: skip
