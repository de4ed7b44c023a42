"""results.jsonl of a study, and each trial beside the study's baseline of the same base and seed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kev import files
from kev.errors import KevError, NotFound, Refused
from kev.metrics import Difference, Resamples, Rows, paired_bootstrap, rows_from_json, scored
from kev.trial.gates import gates_against
from kev.trial.job import FAILED
from kev.trials import Trial, read_trial

RESULTS = "results.jsonl"
COMPARISON = "comparison.json"
SAMPLES = 1000
"""Resamples of a study's own comparisons, macro over tasks, of NLL: for looking at, not for a round's verdict."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """One line of results.jsonl, and what could not be read."""

    lines: list[dict[str, Any]]
    faults: list[KevError]


def aggregate(study: Path) -> Ranked:
    """Write results.jsonl of the study in a directory, best objective first, and comparison.json of its trials.

    Raises NotFound without the directory, and Refused if results.jsonl is there already.
    """
    if not study.is_dir():
        raise NotFound(f"{study}: no such directory")
    if (study / RESULTS).exists():
        raise Refused(f"{study / RESULTS}: is there already; remove it to rank the study again")
    trials, failed, faults = _collect(study)
    baselines = _baselines(trials)
    lines = [_line(trial, baselines.get(_kind(trial)), faults) for trial in trials]
    # Python's sort is stable, so trials without a figure stay behind, in the order of their names.
    lines.sort(key=lambda line: -line["objective"] if line["objective"] is not None else float("inf"))
    everything = [*lines, *failed]
    try:
        files.create_exclusive(study / RESULTS, b"".join(files.dump_json_line(line) for line in everything))
    except FileExistsError:
        raise Refused(f"{study / RESULTS}: was made by another process at the same time") from None
    return Ranked(everything, faults)


def note_failure(study: Path, identifier: str, error: str) -> None:
    """Append a failed trial to results.jsonl."""
    files.append(study / RESULTS, files.dump_json_line({"id": identifier, "status": "failed", "error": error}))


def _collect(study: Path) -> tuple[list[Trial], list[dict[str, Any]], list[KevError]]:
    trials: list[Trial] = []
    failed: list[dict[str, Any]] = []
    faults: list[KevError] = []
    for directory in sorted(path for path in study.iterdir() if path.is_dir()):
        try:
            trials.append(read_trial(directory))
        except NotFound:
            failed += _failed(directory)
        except KevError as error:
            faults.append(error)
    return trials, failed, faults


def _failed(directory: Path) -> Iterator[dict[str, Any]]:
    try:
        value = files.read_json(directory / FAILED)
    except KevError:
        return
    error = value.get("error") if isinstance(value, dict) else None
    yield {"id": directory.name, "status": "failed", "error": str(error)}


def _kind(trial: Trial) -> tuple[str, str]:
    """Trials of one base and seed are compared with each other."""
    return str(trial.config.get("base")), str(trial.config.get("seed", 0))


def _is_legacy(trial: Trial) -> bool:
    return bool(trial.find("provenance", "legacy_checkpoint"))


def _baselines(trials: list[Trial]) -> dict[tuple[str, str], Trial]:
    found: dict[tuple[str, str], Trial] = {}
    for trial in trials:
        if not _is_legacy(trial):
            found.setdefault(_kind(trial), trial)
    return found


def _line(trial: Trial, baseline: Trial | None, faults: list[KevError]) -> dict[str, Any]:
    gates = trial.find("gates")
    difference = None
    if baseline is not None and baseline is not trial:
        try:
            gates, difference = _compare(trial, baseline)
        except KevError as error:
            faults.append(error)
    return {
        "id": trial.name,
        "status": "complete",
        "path": str(trial.directory),
        "objective": trial.figure("objective").value,
        "clean": trial.find("clean"),
        "transfer_clean": trial.find("transfer", "clean"),
        "transfer_paired_flip": trial.find("transfer", "paired_flip"),
        "gates": gates,
        "promotable": False,
        "paired_ci95": difference.ci95 if difference is not None else None,
        "config": trial.config,
        "legacy": _is_legacy(trial),
    }


def _compare(trial: Trial, baseline: Trial) -> tuple[dict[str, Any], Difference]:
    """The trial's gates with those against the baseline, and its difference in NLL; both go to comparison.json."""
    own = trial.find("gates")
    checks = dict(own["checks"]) if isinstance(own, Mapping) and isinstance(own.get("checks"), Mapping) else {}
    checks |= gates_against(trial.result, baseline.result)
    gates = {**(own if isinstance(own, Mapping) else {}), "checks": checks, "passed": all(checks.values())}
    ours, theirs = _development(trial), _development(baseline)
    difference = paired_bootstrap(ours, theirs, ["nll"], resamples=Resamples(SAMPLES), average="macro")["nll"]
    comparison = {
        "baseline": baseline.name,
        "gates": gates,
        "nll": {"delta": difference.delta, "ci95": difference.ci95, "average": "macro", "samples": SAMPLES, "seed": 0},
        "candidate_for_locked_test": bool(gates["passed"] and difference.upper < 0),
    }
    files.write_atomic(trial.directory / COMPARISON, files.dump_json(comparison))
    return gates, difference


def _development(trial: Trial) -> Rows:
    path = trial.directory / "development" / "rows.json"
    return scored(rows_from_json(files.read_json(path), str(path)))
