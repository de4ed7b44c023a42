"""Read once: whether a checkpoint was already scored on a suite and split, whatever the read was called.

A read says what it was in its own report (`run`, `suite_sha256`, `split`), and a locked read in its summary; names
of directories prove nothing, since a second read of the same test only needs a second name.
"""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from kev import files
from kev.errors import KevError
from kev.records.spec import Read
from kev.rounds.checks.reads import read_split
from kev.suite import read_suite

REPORT = "report.json"
SUMMARY = "summary.json"


@dataclass(frozen=True, slots=True)
class ReadKey:
    """What was scored on what: the checkpoint's path, the hash of the suite's manifest, the split."""

    run: str
    suite_sha256: str
    split: str


def planned_key(root: Path, read: Read, run: str) -> ReadKey | None:
    """What a read that was not made yet would score; None if its suite is not at hand to be recognised."""
    if read.suite is None:
        return None
    try:
        return ReadKey(run, read_suite(root / read.suite).sha256, read_split(read))
    except KevError:
        return None


def other_locked_reads(root: Path, run: str, directory: str) -> list[str]:
    """The locked reads of a checkpoint under another name than that of `directory`, whatever suites they had."""
    own = _locked_name(directory)
    return [
        summary.parent.relative_to(root).as_posix()
        for summary in sorted(root.glob(f"runs/locked/*/{SUMMARY}"))
        if summary.parent.name != own and any(key.run == run for key in _locked_keys(summary.parent).values())
    ]


def checkpoint_of(trial: str | None, checkpoint: str | None) -> str | None:
    """The path under which a checkpoint is scored: the declared one, else the trial's own."""
    if checkpoint is not None:
        return _normal(checkpoint)
    return _normal(f"/{trial}/checkpoint") if trial is not None else None


def key_of_read(root: Path, directory: str) -> ReadKey | None:
    """What the read in `directory` (relative to `root`) scored; None if it does not say."""
    locked = _locked_name(directory)
    if locked is not None:
        found = _locked_keys(root / "runs" / "locked" / locked)
        return found.get(PurePosixPath(directory).name)
    return _report_key(root / directory / REPORT)


def other_reads(root: Path, key: ReadKey, directory: str) -> list[str]:
    """The directories under runs/ that hold a read of `key`, besides `directory` itself."""
    plain = [report.parent for report in sorted(root.glob(f"runs/*/{REPORT}")) if _report_key(report) == key]
    locked = [
        summary.parent / label
        for summary in sorted(root.glob(f"runs/locked/*/{SUMMARY}"))
        for label, found in _locked_keys(summary.parent).items()
        if found == key
    ]
    own = root / directory
    return [path.relative_to(root).as_posix() for path in [*plain, *locked] if path != own]


def unreadable_reads(root: Path) -> list[str]:
    """What is wrong with each report and summary that cannot be read: it may be that of any read of any test."""
    found = []
    for path in [*sorted(root.glob(f"runs/*/{REPORT}")), *sorted(root.glob(f"runs/locked/*/{SUMMARY}"))]:
        try:
            value = files.read_json(path)
        except KevError as error:
            found.append(str(error))
            continue
        if not isinstance(value, dict):
            found.append(f"{path}: holds no object")
    return found


def _report_key(path: Path) -> ReadKey | None:
    report = _object(path)
    run, suite, split = report.get("run"), report.get("suite_sha256"), report.get("split")
    if isinstance(run, str) and isinstance(suite, str) and isinstance(split, str):
        return ReadKey(_normal(run), suite, split)
    return None


def _locked_keys(directory: Path) -> dict[str, ReadKey]:
    """Label (`decision`, `transfer`) to what a locked read scored: always the test split."""
    summary = _object(directory / SUMMARY)
    trial, suites = summary.get("trial"), summary.get("suites")
    if not isinstance(trial, str) or not isinstance(suites, dict):
        return {}
    # A summary writes the trial relative to the volume, with or without its mount.
    run = _normal(f"/runs/{trial.removeprefix('/').removeprefix('runs/').removesuffix('/checkpoint')}/checkpoint")
    return {
        label: ReadKey(run, entry["suite_sha256"], "test")
        for label, entry in suites.items()
        if isinstance(entry, dict) and isinstance(entry.get("suite_sha256"), str)
    }


def _locked_name(directory: str) -> str | None:
    parts = PurePosixPath(directory).parts
    return parts[2] if len(parts) == 4 and parts[:2] == ("runs", "locked") else None


def _object(path: Path) -> dict[str, Any]:
    # `unreadable_reads` names what cannot be read.
    try:
        value = files.read_json(path)
    except KevError:
        return {}
    return value if isinstance(value, dict) else {}


def _normal(run: str) -> str:
    return PurePosixPath(run).as_posix()
