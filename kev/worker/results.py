"""The result of a trial: its in-trial reads, its gates, and all of it together in result.json."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kev import files
from kev.data.record import DataRecord
from kev.linear import softmax
from kev.metrics import fit_temperature, rows_from_json
from kev.predictor import Predictor
from kev.report import QUICK_POINTS
from kev.suite import Suite
from kev.worker.manifest import MANIFEST, write_with_manifest
from kev.worker.scoring import Partition, partition_of, score
from kev.worker.training import TRAINING_METRICS

READS = ("calibration", "development", "transfer")
"""Directories of the in-trial reads; a continuation makes them anew."""

ROLE = "in-trial screening on the calibration partition; neither served nor shipped"
ISOLATION_TOLERANCE = 0.001
ISOLATION_RECORDS = 8
MIN_BOTH_CORRECT = 0.7
MAX_CONFIDENT_ERRORS = 0.1

GATE_POLICY = {
    "isolation_tolerance": ISOLATION_TOLERANCE,
    "heldout_pairs_at_least": MIN_BOTH_CORRECT,
    "transfer_confident_errors_below": MAX_CONFIDENT_ERRORS,
}


@dataclass(frozen=True, slots=True)
class Scored:
    """What a trial's own reads came to."""

    development: dict[str, Any]
    transfer: dict[str, Any] | None
    calibration_fit: dict[str, Any]
    mechanism_checks: dict[str, Any]


def score_trial(
    predictor: Predictor, directory: Path, suite: Suite, transfer: Suite | None, show: Callable[[str], None]
) -> Scored:
    """Make the in-trial reads of the trial in `directory`; what an earlier attempt left of them is removed first."""
    files.remove(directory / MANIFEST)
    for name in READS:
        files.remove_tree(directory / name)
    calibration = partition_of(suite, "calibration")
    score(predictor, calibration, directory / "calibration", show)
    fit = _fit_calibration(directory / "calibration", suite)
    development = partition_of(suite, "development")
    report = score(predictor, development, directory / "development", show)
    transferred = None
    if transfer is not None:
        transferred = score(predictor, partition_of(transfer, "development"), directory / "transfer", show)
    return Scored(report, transferred, fit, check_isolation(predictor, development))


def write_result(
    directory: Path, scored: Scored, provenance: dict[str, Any], wall_seconds: float, *, synthetic: bool
) -> dict[str, Any]:
    """Write result.json, which makes the trial final, and return it."""
    result = {
        **scored.development,
        "temperature": scored.calibration_fit["temperature"],
        "transfer": scored.transfer,
        "provenance": provenance,
        "mechanism_checks": scored.mechanism_checks,
        "gates": gates_of(scored),
        "calibration_fit": scored.calibration_fit,
        "wall_seconds": wall_seconds,
        "promotable": False,
        "test_evaluated": False,
        "training_resources": files.read_json(directory / "checkpoint" / TRAINING_METRICS),
    }
    if synthetic:
        result["synthetic"] = True
    write_with_manifest(directory, "result.json", files.dump_json(result))
    return result


def gates_of(scored: Scored) -> dict[str, Any]:
    """The in-trial gates. They screen; a round's rule may pass an arm whose gates failed."""
    checks = {
        "complete_coverage": _is_complete(scored.development),
        "isolation_and_packing": bool(scored.mechanism_checks["passed"]),
    }
    if scored.transfer is not None:
        flips = scored.transfer.get("paired_flip") or {}
        pairs, errors = flips.get("both_correct_rate"), scored.transfer["clean"]["confident_error_rate"]
        checks["transfer_complete"] = _is_complete(scored.transfer)
        checks["heldout_pairs_at_least_70pct"] = pairs is not None and pairs >= MIN_BOTH_CORRECT
        checks["transfer_confident_errors_below_10pct"] = errors is not None and errors < MAX_CONFIDENT_ERRORS
    return {"passed": all(checks.values()), "checks": checks, "policy": GATE_POLICY}


def check_isolation(predictor: Predictor, partition: Partition) -> dict[str, Any]:
    """How far an answer moves when its record is asked one question alone, on the first clean records."""
    clean = [record for record in partition.records if record.meta.variant == "clean"][:ISOLATION_RECORDS]
    largest = max((_sibling_delta(predictor, record) for record in clean), default=0.0)
    return {
        "n": len(clean),
        "packed_max_delta": None,
        "sibling_max_delta": largest,
        "tolerance": ISOLATION_TOLERANCE,
        "passed": largest <= ISOLATION_TOLERANCE,
    }


def _sibling_delta(predictor: Predictor, record: DataRecord) -> float:
    largest = 0.0
    for name, question in record.questions.items():
        alone = record.model_copy(update={"questions": {name: question}})
        pair = softmax(predictor.logits(record, question)), softmax(predictor.logits(alone, question))
        largest = max([largest, *(abs(a - b) for a, b in zip(*pair, strict=True))])
    return largest


def _is_complete(report: dict[str, Any]) -> bool:
    coverage = report["coverage"]
    return bool(coverage["evaluated_records"] == coverage["requested_records"])


def _fit_calibration(directory: Path, suite: Suite) -> dict[str, Any]:
    path = directory / "rows.json"
    data = files.read_bytes(path)
    found = fit_temperature(rows_from_json(files.parse_json(data), str(path)), points=QUICK_POINTS)
    fit = {
        "temperature": found.temperature,
        "aggregation": "micro",
        "objective": "nll",
        "split": "calibration",
        "role": ROLE,
        "rows_sha256": hashlib.sha256(data).hexdigest(),
        "suite_sha256": suite.sha256,
        "n": found.questions,
    }
    files.write_atomic(directory / "temperature.json", files.dump_json(fit))
    return fit
