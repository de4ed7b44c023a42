"""Accepted actions on disk, under `runs/.actions/`: what makes one at most once, for any number of dashboards.

    <verb>-<target>.lock          held from acceptance until the engine's command has ended
    <verb>-<target>-<state>-<n>   .json what was accepted, .run.json who does it, .out and .log what it says,
                                  .result.json how it ended

The lock's descriptor is inherited by the process that does it, so there is no moment without a holder; the kernel
lets it go when that process has ended, however it ends.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from kev import files
from kev.errors import KevError, NotFound
from kev.records.base import read_record
from kev.records.request import ActionRequest, ActionResult, ActionRun
from kev.text import shorten
from kevtui.actions.alive import is_process
from kevtui.actions.proposal import ID_DIGITS

DIRECTORY = ".actions"
REQUEST = re.compile(rf"(?P<place>.+)-(?P<state>[0-9a-f]{{{ID_DIGITS}}})-(?P<number>[0-9]+)\.json")

LARGEST_ANSWER = 1_000_000
LONGEST_WORDS = 400

ACCEPTING_S = 30.0
"""Accepting takes no longer: after it a request that nobody does was interrupted before it began."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """One accepted action, as its files say now."""

    request: ActionRequest
    run: ActionRun | None = None
    result: ActionResult | None = None

    @property
    def ok(self) -> bool:
        return self.result is not None and self.result.code == 0

    def alive(self, now: float) -> bool:
        """Whether somebody may still be doing it, as far as can be told without its lock."""
        if self.result is not None:
            return False
        holder = self.run or self.request
        if holder.host != os.uname().nodename:
            return True
        if is_process(holder.process):
            return True
        return self.run is None and now - self.request.at < ACCEPTING_S

    def state(self, now: float) -> str:
        """`pending`, `done`, `failed` or `interrupted`."""
        if self.result is not None:
            return "done" if self.ok else "failed"
        return "pending" if self.alive(now) else "interrupted"


def directory_of(runs: Path) -> Path:
    return runs / DIRECTORY


def lock_of(runs: Path, place: str) -> Path:
    """Of all actions of one verb on one target: one at a time, whatever state they rest on."""
    return directory_of(runs) / f"{place}.lock"


def read_accepted(runs: Path, name: str) -> Accepted:
    """The action with the id `name`. Raises NotFound or DamagedFile."""
    directory = directory_of(runs)
    request = read_record(directory / f"{name}.json", ActionRequest)
    return Accepted(
        request,
        _or_none(directory / f"{name}.run.json", ActionRun),
        _or_none(directory / f"{name}.result.json", ActionResult),
    )


def find_latest(runs: Path, place: str, state: str | None = None) -> Accepted | None:
    """The newest action of one verb on one target, on that state if one is given; None where there is none."""
    found = [
        (int(match["number"]), name)
        for name in files.list_names(directory_of(runs))
        if (match := REQUEST.fullmatch(name)) and match["place"] == place
        and (state is None or match["state"] == state[:ID_DIGITS])
    ]  # fmt: skip
    return read_accepted(runs, max(found)[1].removesuffix(".json")) if found else None


def next_number(runs: Path, place: str) -> int:
    """One more than any action of that verb on that target has."""
    names = [REQUEST.fullmatch(name) for name in files.list_names(directory_of(runs))]
    return max((int(match["number"]) for match in names if match and match["place"] == place), default=0) + 1


def read_recent(runs: Path, since: float) -> list[Accepted]:
    """Actions accepted since then (Unix seconds), and older ones without a result, oldest first. Damaged ones are
    passed over: the observer names them."""
    found = []
    names = set(files.list_names(directory_of(runs)))
    for name in names:
        if REQUEST.fullmatch(name) is None:
            continue
        stem = name.removesuffix(".json")
        try:
            if f"{stem}.result.json" in names and (directory_of(runs) / name).stat().st_mtime < since:
                continue
            found.append(read_accepted(runs, stem))
        except (KevError, OSError):
            continue
    return sorted(found, key=lambda accepted: accepted.request.at)


def last_words(runs: Path, name: str, limit: int = 4096) -> str:
    """The last line that an action's command has printed to either of its outputs; "" before the first."""
    for suffix in (".log", ".out"):
        try:
            data = files.read_end(directory_of(runs) / f"{name}{suffix}", limit)
        except KevError:
            continue
        # At newlines and nowhere else: other separators are text of the message.
        lines = [line for line in data.decode(errors="backslashreplace").split("\n") if line.strip()]
        if lines:
            return lines[-1].strip()
    return ""


def summary(runs: Path, name: str) -> str:
    """What an action's command has answered, on one line: the figures of the object that it printed, else its last
    line."""
    try:
        answer = files.parse_json(files.read_bytes(directory_of(runs) / f"{name}.out", limit=LARGEST_ANSWER))
    except (KevError, ValueError):
        return last_words(runs, name)
    words = in_words(answer) if isinstance(answer, dict) else ""
    return words or last_words(runs, name)


def in_words(value: dict[str, Any]) -> str:
    """The figures and texts of a JSON object: "fetched 12, kept 0"; of a list or object in it, each or its size."""
    parts = []
    for name, each in value.items():
        if isinstance(each, dict):
            inner = in_words(each)
            parts.append(f"{name}: {inner}" if inner else f"{name} none")
        elif isinstance(each, list):
            parts.append(f"{name} {len(each)}")
        elif each not in (None, ""):
            parts.append(f"{name} {each}")
    return shorten(", ".join(parts), LONGEST_WORDS)


def read_output(runs: Path, name: str, limit: int = 65_536) -> list[str]:
    """The last lines of what an action's command has printed, to either output."""
    lines: list[str] = []
    for suffix in (".out", ".log"):
        try:
            data = files.read_end(directory_of(runs) / f"{name}{suffix}", limit)
        except KevError:
            continue
        lines += [line for line in data.decode(errors="backslashreplace").split("\n") if line.strip()]
    return lines or ["nothing yet"]


_Shape = TypeVar("_Shape", ActionRun, ActionResult)


def _or_none(path: Path, shape: type[_Shape]) -> _Shape | None:
    try:
        return read_record(path, shape)
    except NotFound:
        return None
