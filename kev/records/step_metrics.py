"""`metrics.jsonl` of a trial: one object per optimizer step, as our trainer writes it.

Several ranks may have written without a lock, and a machine may have died mid-write. `StepMetricsReader` uses what
can be believed, names each damaged line, and sees a repeated record, so that no point is drawn twice and nothing is
dropped in silence.
"""

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic import Field, ValidationError

from kev import files
from kev.records.base import Number, StrictRecord, reason_of
from kev.records.instant import Instant, read_instant

MAX_LINE_BYTES = 64 * 1024
"""A step is some 250 bytes; a longer line is damage and is not parsed."""


MOST_STEPS = 10**12
"""No run has more; a larger figure is damage, and no table has room for it."""


class StepMetrics(StrictRecord):
    """One optimizer step of one rank."""

    step: int = Field(ge=0, le=MOST_STEPS)
    """Optimizer steps done over the whole run; goes on across attempts."""
    steps: int | None = Field(default=None, ge=0, le=MOST_STEPS)
    """All steps of the run, over all epochs."""
    at: str | None = None
    """When the step ended, ISO 8601, UTC."""
    t: Number | None = None
    """The same in Unix seconds, in files of other writers."""
    monotonic: Number | None = None
    """Seconds of the writer's monotonic clock; comparable within one attempt only."""
    loss: Number | None = None
    """None where it was not a finite number."""
    lr: Number | None = None
    grad_norm: Number | None = None
    """Before clipping."""
    clipped: bool | None = None
    step_seconds: Number | None = None
    attempt: int | None = None
    rank: int = Field(default=0, ge=0)

    @property
    def instant(self) -> Instant:
        return read_instant(self.at if self.at is not None else self.t)

    @property
    def ended(self) -> datetime | None:
        """When the step ended, UTC; None where the record does not say a moment."""
        return self.instant.at

    @property
    def identity(self) -> tuple[int, int, str]:
        """What makes two records the same one: rank, step and time as written."""
        return self.rank, self.step, str(self.t if self.at is None else self.at)


@dataclass(frozen=True, slots=True)
class LineDamage:
    """A line of which part or all could not be used."""

    number: int
    """Counts from 1."""
    reason: str
    recovered: int = 0
    """Records that could be taken from it all the same."""


@dataclass(slots=True)
class StepMetricsReading:
    """What some lines gave."""

    points: list[StepMetrics] = field(default_factory=list)
    """In file order, each once."""
    damage: list[LineDamage] = field(default_factory=list)
    repeats: list[int] = field(default_factory=list)
    """Numbers of the lines that repeat an earlier record."""


class StepMetricsReader:
    """Reads a growing file piece by piece; remembers the line number, the unfinished tail and the newest records.

    A record is known as a repeat while it is among the `remember` newest, which bounds the memory of a long watch: a
    writer that tries again repeats what it has just written.
    """

    def __init__(self, *, remember: int = 4096) -> None:
        self._remember = remember
        self._line = 0
        self._tail = b""
        self._seen: dict[tuple[int, int, str], None] = {}

    def feed(self, data: bytes) -> StepMetricsReading:
        """What the lines completed by `data` gave; an unfinished last line waits for the rest of it."""
        *lines, tail = (self._tail + data).split(b"\n")
        # A tail past the limit is damage already; what is dropped of it could only have been named, not used.
        self._tail = tail[: MAX_LINE_BYTES + 1]
        return self._read(lines)

    def finish(self) -> StepMetricsReading:
        """What the last line gave, where the file ends without a newline."""
        lines, self._tail = [self._tail], b""
        return self._read(lines if lines[0] else [])

    def _read(self, lines: list[bytes]) -> StepMetricsReading:
        reading = StepMetricsReading()
        for line in lines:
            self._line += 1
            if line.strip():
                self._read_line(line, reading)
        return reading

    def _read_line(self, line: bytes, reading: StepMetricsReading) -> None:
        try:
            values, damage = [files.parse_json(line)] if len(line) <= MAX_LINE_BYTES else [], None
            if not values:
                damage = f"{len(line):,} bytes, more than the {MAX_LINE_BYTES:,} a step may have"
        except ValueError as error:
            values, damage = _recover(line, str(error).replace("line 1, ", ""))
        recovered = 0
        for value in values:
            try:
                point = StepMetrics.model_validate(value)
            except ValidationError as error:
                damage = damage or reason_of(error)
                continue
            if point.ended is None:
                damage = damage or _no_moment(point)
                continue
            recovered += 1
            if self._is_new(point.identity):
                reading.points.append(point)
            else:
                reading.repeats.append(self._line)
        if damage is not None:
            reading.damage.append(LineDamage(self._line, damage, recovered))

    def _is_new(self, identity: tuple[int, int, str]) -> bool:
        if identity in self._seen:
            return False
        self._seen[identity] = None
        if len(self._seen) > self._remember:
            del self._seen[next(iter(self._seen))]
        return True


def read_step_metrics(data: bytes) -> StepMetricsReading:
    """What a whole file gave. Never raises."""
    reader = StepMetricsReader(remember=len(data))
    reading = reader.feed(data)
    last = reader.finish()
    return StepMetricsReading(
        reading.points + last.points, reading.damage + last.damage, reading.repeats + last.repeats
    )


def _no_moment(point: StepMetrics) -> str:
    if point.at is None and point.t is None:
        return f"step {point.step}: has no at or t, the moment it ended"
    return f"step {point.step}: {'t' if point.at is None else 'at'}: {point.instant.problem}"


def _recover(line: bytes, reason: str) -> tuple[list[Any], str]:
    """The complete objects that stand at the start of a damaged line, and the damage in words."""
    text = line.strip(b"\0 \t\r").decode(errors="replace")
    values, rest = _leading_objects(text)
    if not values:
        return values, reason
    after = f", then {len(rest):,} characters that are none" if rest else ""
    if len(values) > 1:
        return values, f"{len(values)} records on one line{after}"
    if line.startswith(b"\0"):
        return values, f"starts with NUL bytes, as a block that was never written{after}"
    return values, f"{reason}, after a whole record"


def _leading_objects(text: str) -> tuple[list[dict[str, Any]], str]:
    """The objects, and what follows them."""
    decoder = json.JSONDecoder(parse_constant=_refuse)
    values: list[dict[str, Any]] = []
    position = 0
    while position < len(text):
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        if not isinstance(value, dict):
            break
        values.append(value)
        position = end
        while position < len(text) and text[position] in " \t\r\0\ufeff":
            position += 1
    return values, text[position:]


def _refuse(name: str) -> None:
    raise ValueError(name)
