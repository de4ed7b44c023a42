"""What validation finds, as data: a code, a message, and the place in the spec it is about."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kev.document import Document, JsonPath, format_path
from kev.text import shorten, visible

LONGEST_PLACE = 200
LONGEST_MESSAGE = 800
"""Characters that are printed: a spec may hold a text of any length where a name belongs."""


class Severity(StrEnum):
    """How much a finding matters."""

    PROBLEM = "problem"
    """The round cannot be launched."""
    WARNING = "warning"
    """The round can be launched; somebody should know."""
    ARCHIVED = "archived"
    """Missing here, and expected to be: the spec is that of a recorded round."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding. `code` is stable and for programs, `message` is for people."""

    code: str
    message: str
    where: JsonPath
    line: int | None
    severity: Severity

    def __str__(self) -> str:
        place = shorten(format_path(self.where), LONGEST_PLACE) or "the spec"
        line = f"line {self.line}, " if self.line is not None else ""
        return visible(f"{line}{place}: {shorten(self.message, LONGEST_MESSAGE)}")

    def to_json(self) -> dict[str, Any]:
        """The finding as JSON values; `path` is its place as keys and indices."""
        return {
            "severity": self.severity.value,
            "code": self.code,
            "path": list(self.where),
            "place": format_path(self.where),
            "line": self.line,
            "message": self.message,
        }


@dataclass
class Problems:
    """Collects what the checks find, each once, in the order of the spec."""

    document: Document
    recorded: bool = False
    """Whether the spec is that of a recorded round, whose missing files are no problems."""
    _found: dict[tuple[str, str, JsonPath], Problem] = field(default_factory=dict)
    _missing: dict[str, tuple[str, str, list[JsonPath]]] = field(default_factory=dict)

    def add(self, code: str, where: JsonPath, message: str, severity: Severity = Severity.PROBLEM) -> None:
        """Note a finding."""
        problem = Problem(code, message, where, self.document.line(where), severity)
        self._found.setdefault((code, message, where), problem)

    def warn(self, code: str, where: JsonPath, message: str) -> None:
        """Note something that does not stop the round."""
        self.add(code, where, message, Severity.WARNING)

    def archive(self, code: str, where: JsonPath, message: str) -> None:
        """Note what stops a round unless it is a recorded one."""
        self.add(code, where, message, Severity.ARCHIVED if self.recorded else Severity.PROBLEM)

    def missing(self, path: str, where: JsonPath, need: str, code: str = "missing-file") -> None:
        """Note a file that is not there; several places that need the same file make one finding."""
        _, _, places = self._missing.setdefault(path, (code, need, []))
        if where not in places:
            places.append(where)

    def all(self) -> list[Problem]:
        """Everything found, in the order of its lines."""
        found = [*self._found.values(), *self._missing_files()]
        return sorted(found, key=lambda problem: problem.line or 0)

    def _missing_files(self) -> Iterator[Problem]:
        severity = Severity.ARCHIVED if self.recorded else Severity.PROBLEM
        for path, (code, need, places) in self._missing.items():
            others = [format_path(place) for place in places[1:]]
            also = f"; also for {', '.join(others[:3])}" if others else ""
            more = f" and {len(others) - 3} more" if len(others) > 3 else ""
            message = f"{path} is not there: {need}{also}{more}"
            yield Problem(code, message, places[0], self.document.line(places[0]), severity)
