"""Whether the argument of `kevtui session` means a bench: the workspace of a run, or the results of several."""

import re
from dataclasses import dataclass
from pathlib import Path

RUN_META, SCORES, RESULTS = "run_meta.json", "scores.json", "results.csv"
_RUN_NAME = re.compile(r"\d{8}T\d{6}(?:_p\d{1,5})?_.+")


@dataclass(frozen=True, slots=True)
class BenchTarget:
    path: Path
    """The directory of a workspace, or a file of results."""
    title: str
    is_results: bool


def bench_at(argument: str, *, root: Path | None, cwd: Path) -> BenchTarget | None:
    """The bench that `argument` names as a path, from `cwd` or under `root`; None where it names something else."""
    if not argument or "\0" in argument:
        return None
    places = [root / argument, cwd / argument] if root is not None else [cwd / argument]
    for place in places:
        try:
            found = _bench(place.absolute())
        except (OSError, ValueError):
            continue
        if found is not None:
            return found
    return None


def _bench(path: Path) -> BenchTarget | None:
    if path.is_file():
        if path.name in (RUN_META, SCORES):
            return _workspace(path.parent)
        return _results(path) if path.suffix == ".csv" else None
    if not path.is_dir():
        return None
    path = path.resolve()
    if (path / RUN_META).exists() or (path / SCORES).exists():
        return _workspace(path)
    if _RUN_NAME.fullmatch(path.name) and (path / "output").is_dir():
        return _workspace(path)  # the run has not begun
    if (path / RESULTS).is_file() and not (path / "runs").is_dir():
        return _results(path / RESULTS)
    return None


def _workspace(path: Path) -> BenchTarget:
    return BenchTarget(path, f"{path.parent.name}/{path.name}", is_results=False)


def _results(path: Path) -> BenchTarget:
    return BenchTarget(path, f"{path.parent.name}/{path.name}", is_results=True)
