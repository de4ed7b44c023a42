"""What happened in a session, one line each, only ever appended to."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from kev import files
from kev.records.base import reason_of
from kev.records.event import Event, EventSeverity
from kev.session.state import utc_text
from kev.session.view import session_name

EVENTS_SUFFIX = "-events.jsonl"


@dataclass(frozen=True, slots=True)
class Journal:
    """What a journal's lines gave: the events in file order, and every line that could not be read, by number."""

    events: tuple[Event, ...]
    damage: tuple[files.Line, ...] = ()


def events_path(state_path: Path) -> Path:
    """The journal beside a state file."""
    return state_path.with_name(session_name(state_path) + EVENTS_SUFFIX)


def append_event(
    path: Path, at: datetime, kind: str, text: str, *, severity: EventSeverity = "info", subject: str = "",
    who: str | None = None,
) -> Event:  # fmt: skip
    """Write one event to the end of the journal in `path` and return it. Raises OSError if it could not be kept."""
    values = {"at": utc_text(at), "kind": kind, "severity": severity, "subject": subject, "text": text}
    event = Event.model_validate(values if who is None else values | {"who": who})
    files.append(path, files.dump_json_line(event.to_json()))
    return event


def parse_events(data: bytes, *, first: int = 1) -> Journal:
    """The events in whole lines of a journal, the first of which is number `first`. Never raises."""
    events: list[Event] = []
    damage: list[files.Line] = []
    for line in files.parse_json_lines(data, first=first):
        if line.damage is not None:
            damage.append(line)
            continue
        try:
            events.append(Event.model_validate(line.value))
        except ValidationError as error:
            damage.append(files.Line(line.number, damage=reason_of(error)))
    return Journal(tuple(events), tuple(damage))


def read_events(path: Path) -> Journal:
    """The journal in `path`, as far as it can be read. Raises NotFound, or DamagedFile if its bytes cannot be had."""
    return parse_events(files.read_bytes(path))
