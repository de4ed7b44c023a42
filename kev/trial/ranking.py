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
    ranked = Ranked([*_rank(trials, faults), *failed], faults)
    try:
        files.create_exclusive(study / RESULTS, b"".join(map(_dump, ranked.lines)))
    except FileExistsError:
        raise Refused(f"{study / RESULTS}: was made by another process at the same time") from None
    return ranked


def rank_again(study: Path) -> Ranked:
    """Bring results.jsonl of a study up to the trials that are here; what it has of others stays, behind them.

    A trial whose result cannot be read is a line with the reason: it hides no other. Nothing is written where nothing
    is new. Raises NotFound without the directory.
    """
    if not study.is_dir():
        raise NotFound(f"{study}: no such directory")
    trials, failed, faults = _collect(study)
    damaged = [_damaged(getattr(fault, "path", study).parent.name, fault) for fault in faults]
    lines = [*_rank(trials, faults), *failed, *damaged]
    old = _read_bytes(study / RESULTS)
    data = b"".join(_dump(line) for line in lines) + _others(old, {line["id"] for line in lines})
    if data != old:
        files.write_atomic(study / RESULTS, data)
    return Ranked(lines, faults)


def _rank(trials: list[Trial], faults: list[KevError]) -> list[dict[str, Any]]:
    baselines = _baselines(trials)
    lines = [_line(trial, baselines.get(_kind(trial)), faults) for trial in trials]
    # Python's sort is stable, so trials without a figure stay behind, in the order of their names.
    return sorted(lines, key=lambda line: -line["objective"] if line["objective"] is not None else float("inf"))


def _damaged(trial: str, why: object) -> dict[str, Any]:
    return {"id": trial, "status": "damaged", "error": str(why)}


def _dump(line: dict[str, Any]) -> bytes:
    """The line, with null for a figure that is none: one such figure hides neither its trial nor another."""
    return files.dump_json_line(files.without_non_finite(line))


def _read_bytes(path: Path) -> bytes:
    try:
        return files.read_bytes(path)
    except NotFound:
        return b""


def _others(data: bytes, known: set[str]) -> bytes:
    """The lines of results.jsonl that are about other trials than the `known` ones, as they are."""
    # What follows the last newline was cut off while it was appended: nothing rests on it.
    return b"".join(line + b"\n" for line in data.split(b"\n")[:-1] if line.strip() and _id_of(line) not in known)


def _id_of(line: bytes) -> str | None:
    try:
        value = files.parse_json(line)
    except ValueError:
        return None
    found = value.get("id") if isinstance(value, dict) else None
    return found if isinstance(found, str) else None


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
    files.write_atomic(trial.directory / COMPARISON, files.dump_json(files.without_non_finite(comparison)))
    return gates, difference


def _development(trial: Trial) -> Rows:
    path = trial.directory / "development" / "rows.json"
    return scored(rows_from_json(files.read_json(path), str(path)))
