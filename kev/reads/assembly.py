"""The files of a finished read, from its journal: rows.json, rejected.json, and last report.json."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kev import files
from kev.metrics import rows_from_json
from kev.reads.journal import REPORT
from kev.reads.read import Progress, latency_of
from kev.reads.records import CUSTOM, Selection
from kev.report import build_report

ROWS = "rows.json"
REJECTED = "rejected.json"
FAILURE = "failure.json"

LONG_ROW_TOKENS = 16_384
"""Beyond this a row on an accelerator is not computed exactly; its rows say so under `kernels`."""


def coverage_of(selection: Selection, progress: Progress) -> dict[str, int]:
    """How much of what was asked has an answer, in records and in questions."""
    entries = progress.entries
    return {
        "requested_records": progress.requested,
        "requested_questions": selection.questions,
        "evaluated_records": sum(entry.error is None for entry in entries),
        "evaluated_questions": sum(len(entry.rows) for entry in entries),
        "rejected_records": sum(entry.error is not None for entry in entries),
        "truncated_records": 0,
    }


def write_read(
    out: Path, selection: Selection, progress: Progress, about: Mapping[str, Any], *, attempt: int = 1
) -> dict[str, Any]:
    """Write the files of a finished read, report.json last, and return the report. Raises BadRows.

    `about` are the report's keys that say who answered and how.
    """
    entries = progress.entries
    rows = [row for entry in entries for row in entry.rows]
    report = build_report(rows_from_json(rows, str(out / ROWS)), coverage_of(selection, progress))
    report |= {
        "heldout_tasks": _heldout(report["tasks"], rows, selection),
        "latency_ms": latency_of(entries),
        **_long_rows(rows),
        "suite_sha256": selection.sha256,
        "data": str(selection.origin) if selection.split == CUSTOM else None,
        "split": selection.split,
        **about,
    }
    if attempt > 1:
        report["resumed"] = {"attempts": attempt, "records_read_before": progress.recorded_before}
    files.write_atomic(out / ROWS, files.dump_json(rows))
    rejected = [{"id": entry.id, "error": entry.error} for entry in entries if entry.error is not None]
    if rejected:
        files.write_atomic(out / REJECTED, files.dump_json(rejected))
    files.remove(out / FAILURE)
    files.write_atomic(out / REPORT, files.dump_json(report))
    return report


def write_failure(out: Path, selection: Selection, progress: Progress, error: BaseException) -> None:
    """Say in failure.json how far a read came, and what ended it. Its outcomes stay; repeating it goes on from them."""
    failure = {
        "coverage": coverage_of(selection, progress),
        "record_id": getattr(error, "record_id", None),
        "error_type": type(error).__name__,
        "error": str(error),
    }
    files.write_atomic(out / FAILURE, files.dump_json(failure))


def _heldout(tasks: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], selection: Selection) -> dict[str, Any]:
    """The metrics of the tasks of held-out sources."""
    held_out = set(selection.manifest.get("holdout_sources") or ())
    names = {row["task"] for row in rows if row["source"] in held_out}
    return {task: metrics for task, metrics in tasks.items() if task in names}


def _long_rows(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    long = [row for row in rows if row.get("kernels")]
    if not long:
        return {}
    return {
        "long_rows": {
            "count": len(long),
            "records": len({row["id"] for row in long}),
            "kernels": long[0]["kernels"],
            "threshold": LONG_ROW_TOKENS,
        }
    }
