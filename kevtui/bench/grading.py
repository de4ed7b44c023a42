"""What the grader of a run is busy with, from the events of its own store, where that may be read.

The workspace says nothing of it: an entry comes to `scores.json` only once it is graded. The store is followed from
its end and not verified, which takes the grader's secret; nothing but this is taken from it.
"""

import json
from pathlib import Path
from typing import Any

from kev.errors import DamagedFile, NotFound
from kev.files import as_finite
from kev.text import shorten
from kevtui.bench.snapshot import Evaluation
from kevtui.observe.log_tail import LogTail, Tail

FIRST_READ = 4 * 1024 * 1024
NO_STORE = "not known: no grader's store beside this workspace"


class GradingWatch:
    """Follows one store; `look` costs what was appended since."""

    def __init__(self, path: Path) -> None:
        self._tail = LogTail(path, carriage_returns=False, first_read=FIRST_READ)
        self._waiting: dict[int, tuple[str, float | None]] = {}

    def look(self, elapsed_s: float | None) -> Evaluation:
        """What is being graded, `elapsed_s` seconds into the run."""
        try:
            tail = self._tail.read()
            self._take(tail)
            while tail.more:
                tail = self._tail.read()
                self._take(tail)
        except NotFound:
            self._waiting.clear()
            return Evaluation(note=NO_STORE)
        except DamagedFile as error:
            return Evaluation(note=f"not known: the grader's store {error.reason}")
        if not self._waiting:
            return Evaluation(waiting=0)
        number, (path, accepted) = next(iter(self._waiting.items()))
        since = None if accepted is None or elapsed_s is None else max(0.0, elapsed_s - accepted)
        return Evaluation(number, path, since, len(self._waiting) - 1)

    def _take(self, tail: Tail) -> None:
        if tail.restarted:
            self._waiting.clear()
        for line in tail.lines:
            kind, facts = _event(line)
            number = facts.get("number")
            if type(number) is not int:
                continue
            if kind == "accepted":
                self._waiting[number] = shorten(str(facts.get("said", "")), 300), as_finite(facts.get("elapsed"))
            elif kind == "graded":
                self._waiting.pop(number, None)


def _event(line: bytes) -> tuple[str, dict[str, Any]]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return "", {}
    facts = value.get("facts") if isinstance(value, dict) else None
    return (str(value.get("kind")), facts) if isinstance(facts, dict) else ("", {})
