"""The files that decide a score: a read is only continued, and a trial only scored again, by the same ones."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from kev import files

EVALUATOR_FILES = (
    "kev/benchmark.py",
    "kev/calibrate.py",
    "kev/checkpoint.py",
    "kev/data",
    "kev/evaluators.py",
    "kev/experiment.py",
    "kev/files/json_values.py",
    "kev/linear.py",
    "kev/metrics",
    "kev/model",
    "kev/predictors",
    "kev/reads",
    "kev/records/rows.py",
    "kev/records/suite.py",
    "kev/report.py",
    "kev/rounds/comparison.py",
    "kev/rounds/criteria.py",
    "kev/rounds/exclusions.py",
    "kev/rounds/panels.py",
    "kev/rounds/rowstore.py",
    "kev/rounds/sides.py",
    "kev/rounds/temperatures.py",
    "kev/suite.py",
    "kev/torch_files.py",
    "kev/trial",
)
"""Paths in the checkout; a directory stands for every module under it. What a model is shown, how it computes, how its
answers become rows, and how rows become figures, intervals and verdicts."""

HERE = Path(__file__).parent.parent


def evaluator_hashes(root: Path = HERE) -> dict[str, str]:
    """The SHA-256 of every evaluator file under `root`, by its path; files that are not there are left out."""
    found: dict[str, str] = {}
    for name in EVALUATOR_FILES:
        place = root / name
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            if path.is_file():
                found[path.relative_to(root).as_posix()] = hashlib.sha256(files.read_bytes(path)).hexdigest()
    return found


SINGLE_FILES = ("constraints.txt", "modal_app.py", "pyproject.toml", "uv.lock")
"""Files beside the package that decide what runs; one that a checkout lacks is left out."""


def source_hashes(root: Path = HERE) -> dict[str, str]:
    """The SHA-256 of every module of kev and of what pins its dependencies, by path in the checkout `root`.

    Where `root` is only the working directory of a container, without kev in it, the modules are those that run here.
    """
    package = root if (root / "kev").is_dir() else HERE
    found = {path.relative_to(package): path for path in (package / "kev").rglob("*.py")}
    found |= {Path(name): root / name for name in SINGLE_FILES if (root / name).is_file()}
    hashes = {name.as_posix(): hashlib.sha256(files.read_bytes(path)).hexdigest() for name, path in found.items()}
    return dict(sorted(hashes.items()))


NAMED = 3
"""Differing files that a message names."""


def differing(ours: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """The files that are not the same on both sides, or are on one side only."""
    return sorted(path for path in ours.keys() | theirs.keys() if ours.get(path) != theirs.get(path))


def describe(paths: list[str]) -> str:
    """Some of `paths`, and how many more there are."""
    more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
    return ", ".join(paths[:NAMED]) + more


def is_evaluator_file(name: str) -> bool:
    """Whether a path in the checkout is one of EVALUATOR_FILES, or lies in one."""
    return any(name == each or name.startswith(f"{each}/") for each in EVALUATOR_FILES)


def evaluator_digest(root: Path = HERE) -> str:
    """One hash over all of them."""
    lines = "".join(f"{sha256}  {path}\n" for path, sha256 in sorted(evaluator_hashes(root).items()))
    return hashlib.sha256(lines.encode()).hexdigest()
