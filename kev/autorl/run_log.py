"""`run.log`: the life cycle of a run, a line each, `YYYY-MM-DD HH:MM:SS | LEVEL | message` in local time."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kev import files
from kev.clock import Clock
from kev.text import visible

Level = Literal["DEBUG", "INFO", "WARNING", "ERROR"]
_LINE = re.compile(r"(\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2})(?:\.\d+)?\s*\|\s*([A-Z]+)\s*\|\s?(.*)")


@dataclass(frozen=True, slots=True)
class RunLine:
    """A line of the log: its number from 1, its local time as text, its level and its message."""

    number: int
    time: str
    level: str
    message: str


class RunLog:
    """Writes the log in `path`; each line is on the disk when the call returns."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock

    def write(self, level: Level, message: str) -> None:
        local = self._clock.now().astimezone()
        files.append(self._path, f"{local:%Y-%m-%d %H:%M:%S} | {level} | {visible(message)}\n".encode())

    def info(self, message: str) -> None:
        self.write("INFO", message)

    def warning(self, message: str) -> None:
        self.write("WARNING", message)

    def error(self, message: str) -> None:
        self.write("ERROR", message)


def parse_run_log(data: bytes) -> Iterator[RunLine]:
    """The lines of a log that have its form; others, such as the rest of a traceback, are passed over."""
    for number, line in enumerate(data.split(b"\n"), start=1):
        found = _LINE.match(line.decode(errors="backslashreplace").rstrip("\r"))
        if found is not None:
            yield RunLine(number, *found.groups())
