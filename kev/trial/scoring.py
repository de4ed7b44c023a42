"""The in-trial reads: calibration, development and transfer, with raw logits, each in its suite's own context.

They screen. A read that was cut off goes on where it was; one that is there and of the very same checkpoint, records
and evaluator files is not made again.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from kev import files
from kev.errors import KevError, NotFound
from kev.metrics import fit_temperature, rows_from_json
from kev.predictors.local import LocalPredictor, Scorer
from kev.reads.attempt import Options, identity_of, read
from kev.reads.journal import ABOUT, REPORT
from kev.reads.mechanism import MechanismCheck, check_mechanism
from kev.reads.read import Say
from kev.reads.records import Selection, select_partition
from kev.report import QUICK_POINTS
from kev.suite import Suite

ROLE = "in-trial screening on the calibration partition; it is neither served nor shipped"


class TrialScorer(Scorer, Protocol):
    """A checkpoint that is read in several suites' contexts."""

    @property
    def dtype(self) -> str: ...

    @property
    def measured(self) -> dict[str, Any]:
        """Which weights are scored, as provenance.json says it."""
        ...

    def in_context(self, manifest: Mapping[str, Any]) -> "TrialScorer": ...

    def environment(self) -> dict[str, Any]: ...


OpenScorer = Callable[[Path], TrialScorer]
"""Opens a checkpoint raw, whatever temperature it carries."""


@dataclass(frozen=True, slots=True)
class Scored:
    """What a trial's own reads came to."""

    development: dict[str, Any]
    transfer: dict[str, Any] | None
    calibration_fit: dict[str, Any] | None
    mechanism: MechanismCheck


def score_trial(
    directory: Path, scorer: TrialScorer, suite: Suite, transfer: Suite | None, say: Say, *, size: int | None = None
) -> Scored:
    """Make the reads of the trial in `directory`; `size` is about how many records each has, None for all."""
    calibration = None
    if "calibration.jsonl" in suite.manifest.files:
        _read(directory / "calibration", scorer, select_partition(suite, "calibration").sample(size), say)
        calibration = _fit(directory / "calibration", suite)
    chosen = select_partition(suite, "development").sample(size)
    development = _read(directory / "development", scorer, chosen, say)
    transferred = None
    if transfer is not None:
        held_out = select_partition(transfer, "development").sample(size)
        transferred = _read(directory / "transfer", scorer, held_out, say)
    predictor = LocalPredictor(scorer.in_context(chosen.manifest), batch=1)
    return Scored(development, transferred, calibration, check_mechanism(predictor, chosen.records, scorer.dtype))


def _read(out: Path, scorer: TrialScorer, selection: Selection, say: Say) -> dict[str, Any]:
    predictor = LocalPredictor(scorer.in_context(selection.manifest))
    identity = identity_of(predictor, selection, Options())
    try:
        about = files.read_json(out / ABOUT)
    except NotFound:
        about = None
    except KevError:
        about = {}
    if about is not None and (not isinstance(about, dict) or about.get("identity") != identity):
        # Left by an attempt that had other weights, or by something that was no read: its answers are worth nothing.
        files.remove(out)
    elif (out / REPORT).exists():
        report = files.read_json(out / REPORT)
        if isinstance(report, dict):
            return report
    return read(predictor, selection, out, say)


def _fit(directory: Path, suite: Suite) -> dict[str, Any]:
    path = directory / "rows.json"
    data = files.read_bytes(path)
    found = fit_temperature(rows_from_json(files.parse_json(data), str(path)), points=QUICK_POINTS)
    fit: dict[str, Any] = {
        "temperature": found.temperature,
        "aggregation": "micro",
        "objective": "raw-logit NLL",
        "split": "calibration",
        "role": ROLE,
        "rows_sha256": hashlib.sha256(data).hexdigest(),
        "suite_sha256": suite.sha256,
        "n": found.questions,
    }
    if found.note:
        fit["note"] = found.note
    files.write_atomic(directory / "temperature.json", files.dump_json(fit))
    return fit
