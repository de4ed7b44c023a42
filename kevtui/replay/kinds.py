"""Which files a night is made of. What has no kind here is neither replayed nor recorded."""

import re
from enum import StrEnum


class Kind(StrEnum):
    """Of a file, by its place."""

    STATE = "state"
    LEDGER = "ledger"
    WATCH = "watch"
    WATCHER = "watcher"
    READ = "read"
    INTENT = "intent"
    JOURNAL = "journal"
    UNITS = "units of work"
    SPEC = "spec"
    METRICS = "metrics"
    LOG = "log"
    READ_LOG = "read log"
    RESULT = "result"
    FAILURE = "failure"
    RESUME = "resume point"
    LEASE = "lease"
    ROWS = "rows"
    USAGE = "usage"
    READOUT = "read-out"
    VERDICT = "verdict"
    PRESENT = "present"
    """Only that it is there says anything."""


RUNS, SPECS, LEASES = "runs", "experiments/rounds", "leases"
"""The three trees of a night, as the first parts of every path in it."""

LINES = frozenset({Kind.JOURNAL, Kind.METRICS, Kind.UNITS})
"""Grown line by line, with a time in each."""

LOGS = frozenset({Kind.LOG, Kind.READ_LOG})
"""Lines without times."""

_NAME = r"[^/]+"
_TRIAL = rf"runs/{_NAME}/\d{{2,}}-{_NAME}"
_PLACES = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (rf"runs/{_NAME}-state\.json", Kind.STATE),
        (rf"runs/{_NAME}\.spawn\.json", Kind.LEDGER),
        (rf"runs/{_NAME}\.watch\.json", Kind.WATCH),
        (rf"runs/{_NAME}-watcher\.json", Kind.WATCHER),
        (rf"runs/{_NAME}\.read\.json", Kind.READ),
        (r"runs/r\d+-reads-[^/]+\.json", Kind.INTENT),
        (r"runs/r\d+-reads-[^/]+-\d+\.log", Kind.READ_LOG),
        (rf"runs/{_NAME}-events\.jsonl", Kind.JOURNAL),
        (r"runs/autoresearch-sessions\.jsonl", Kind.JOURNAL),
        (r"runs/ledger\.jsonl", Kind.UNITS),
        (rf"experiments/rounds/{_NAME}\.json", Kind.SPEC),
        (rf"{_TRIAL}/metrics\.jsonl", Kind.METRICS),
        (rf"{_TRIAL}/train\.log", Kind.LOG),
        (rf"{_TRIAL}/result\.json", Kind.RESULT),
        (rf"{_TRIAL}/failed\.json", Kind.FAILURE),
        (rf"{_TRIAL}/checkpoint/resume/latest\.json", Kind.RESUME),
        (rf"leases/{_NAME}/{_NAME}/attempt\.json", Kind.LEASE),
        (rf"runs/{_NAME}/usage\.json", Kind.USAGE),
        (r"runs/r\d+-readout/round\d+\.json", Kind.READOUT),
        (rf"runs/r\d+-verdict/{_NAME}\.json", Kind.VERDICT),
        (rf"runs/{_NAME}/rows\.json", Kind.ROWS),
        (rf"runs/locked/{_NAME}/(?:summary\.json|(?:decision|transfer)/rows\.json)", Kind.PRESENT),
        (rf"{_TRIAL}/(?:transfer|development)/rows\.json", Kind.PRESENT),
        (rf"{_TRIAL}/snapshots/step-\d{{1,12}}/checkpoint/snapshot\.json", Kind.PRESENT),
    )
)

WITHOUT_CONTENT = frozenset({Kind.ROWS, Kind.PRESENT})


def kind_of(path: str) -> Kind | None:
    """The kind of the file at `path`, relative to the night; None for one that is no part of it."""
    if any(part in ("", ".", "..") or part.startswith(".") for part in path.split("/")):
        return None
    return next((kind for pattern, kind in _PLACES if pattern.fullmatch(path)), None)
