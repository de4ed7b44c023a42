"""A checkpoint's answers to a partition, as files: predictions.jsonl, rows.json, and last report.json."""

import hashlib
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kev import files
from kev.baseline import answer, read_records
from kev.data.record import DataRecord, check_record
from kev.errors import DamagedLine, Refused
from kev.metrics import rows_from_json
from kev.predictor import Predictor
from kev.report import build_report
from kev.suite import Suite
from kev.worker.manifest import write_with_manifest

PROGRESS_EVERY = 50


@dataclass(frozen=True, slots=True)
class Partition:
    """What is to be answered."""

    records: list[DataRecord]
    sha256: str
    """Of the suite's manifest, or of the single file."""
    split: str


@dataclass(slots=True)
class Progress:
    """How far a read has come; a failed one says so in its failure.json."""

    requested: int = 0
    evaluated: int = 0
    record_id: str | None = None
    seconds: list[float] = field(default_factory=list)

    def coverage(self, rows: list[dict[str, Any]], requested_questions: int) -> dict[str, int]:
        return {
            "requested_records": self.requested,
            "requested_questions": requested_questions,
            "evaluated_records": self.evaluated,
            "evaluated_questions": len(rows),
            "rejected_records": 0,
            "truncated_records": 0,
        }


def partition_of(suite: Suite, split: str, *, allow_test: bool = False) -> Partition:
    """A suite's partition. Raises what reading it raises."""
    return Partition(read_records(suite, split, allow_test=allow_test), suite.sha256, split)


def partition_of_file(path: Path) -> Partition:
    """A file of records that belongs to no suite. Raises NotFound, DamagedFile or DamagedLine."""
    data = files.read_bytes(path)
    records = []
    for line in files.parse_json_lines(data):
        if line.damage is not None:
            raise DamagedLine(path, line.number, line.damage)
        try:
            records.append(DataRecord.model_validate(line.value))
            check_record(records[-1])
        except ValueError as error:
            raise DamagedLine(path, line.number, str(error).partition("\n")[0]) from None
    return Partition(records, hashlib.sha256(data).hexdigest(), "custom")


def score(
    predictor: Predictor, partition: Partition, out: Path, show: Callable[[str], None], *,
    extra: dict[str, Any] | None = None, progress: Progress | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Answer every question of `partition` into `out`, which must not exist, and return the report.

    `show` takes `evaluated k/n` as it goes; `extra` is added to the report. Raises Refused where `out` is there.
    """
    if out.exists():
        raise Refused(f"{out.name}: is there already; a read never replaces another")
    progress = progress if progress is not None else Progress()
    progress.requested = len(partition.records)
    rows, predictions = _answer_all(predictor, partition.records, progress, show)
    questions = sum(len(record.questions) for record in partition.records)
    report = build_report(rows_from_json(rows, str(out)), progress.coverage(rows, questions))
    report |= {"suite_sha256": partition.sha256, "split": partition.split, "latency_ms": _latency(progress.seconds)}
    report |= extra or {}
    files.write_atomic(out / "predictions.jsonl", b"".join(files.dump_json_line(each) for each in predictions))
    files.write_atomic(out / "rows.json", files.dump_json(rows))
    write_with_manifest(out, "report.json", files.dump_json(report))
    return report


def _answer_all(
    predictor: Predictor, records: list[DataRecord], progress: Progress, show: Callable[[str], None]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = []
    predictions = []
    for record in records:
        progress.record_id = record.meta.id
        began = time.perf_counter()
        answered = answer(predictor, record)
        progress.seconds.append(time.perf_counter() - began)
        rows += answered
        predictions.append(_prediction(record, answered))
        progress.evaluated += 1
        if progress.evaluated % PROGRESS_EVERY == 0 or progress.evaluated == progress.requested:
            show(f"evaluated {progress.evaluated}/{progress.requested}")
    return rows, predictions


def _prediction(record: DataRecord, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "request_sha256": request_sha256(record),
        "id": record.meta.id,
        "prediction": {row["question"]: dict(zip(row["keys"], row["p"], strict=True)) for row in rows},
        "rows": rows,
    }


def request_sha256(record: DataRecord) -> str:
    """A hash of what a model is shown of a record: everything but the labels."""
    questions = {
        name: {"type": each.type, "instructions": each.instructions, "criteria": each.criteria}
        for name, each in record.questions.items()
    }
    shown = json.dumps({"state": record.state, "questions": questions}, ensure_ascii=False)
    return hashlib.sha256(shown.encode(errors="surrogatepass")).hexdigest()


def _latency(seconds: list[float]) -> dict[str, float] | None:
    if not seconds:
        return None
    ordered = sorted(each * 1000 for each in seconds)
    return {"median": statistics.median(ordered), "p95": ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))]}
