"""`results.jsonl` of a study that was pulled: one line for each trial that is over, the best objective first."""

from pathlib import Path
from typing import Any

from kev import files
from kev.errors import KevError
from kev.trials import Trial, find_trials

MOST = float("-inf")


def write_results(study: Path) -> int:
    """Write `results.jsonl` anew, whatever it held, and return how many trials it names.

    Damaged results are lines with the reason: they hide no other trial.
    """
    trials, faults = find_trials(study.parent, study.name)
    ranked = sorted(trials, key=_objective, reverse=True)
    lines = [_line(_complete(trial)) for trial in ranked]
    lines += [
        _line({"id": path.parent.name, "status": "failed", "error": _error(path)})
        for path in sorted(study.glob("*/failed.json"))
    ]
    lines += [_line(_damaged(getattr(fault, "path", study).parent.name, fault)) for fault in faults]
    files.write_atomic(study / "results.jsonl", b"".join(lines))
    return len(lines)


def _line(value: dict[str, Any]) -> bytes:
    try:
        return files.dump_json_line(value)
    except ValueError:
        return files.dump_json_line(_damaged(value["id"], "its result holds a figure that is no finite number"))


def _damaged(trial: str, why: object) -> dict[str, Any]:
    return {"id": trial, "status": "damaged", "error": str(why)}


def _objective(trial: Trial) -> float:
    found = trial.figure("objective").value
    return MOST if found is None else found


def _complete(trial: Trial) -> dict[str, Any]:
    return {
        "id": trial.name,
        "status": "complete",
        "path": str(trial.directory),
        "objective": trial.figure("objective").value,
        "clean": trial.find("clean"),
        "transfer_clean": trial.find("transfer", "clean"),
        "transfer_paired_flip": trial.find("transfer", "paired_flip"),
        "gates": trial.find("gates"),
        "promotable": trial.find("promotable"),
        "paired_ci95": None,
        "config": trial.config,
        "legacy": bool(trial.find("provenance", "legacy_checkpoint")),
    }


def _error(path: Path) -> str:
    try:
        value = files.read_json(path)
    except KevError as error:
        return str(error)
    return str(value.get("error")) if isinstance(value, dict) else "its failed.json says nothing"
