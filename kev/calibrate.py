"""Setting the temperature that a checkpoint ships with: fitted on held-out rows, or by hand with a reason."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from kev import files
from kev.checkpoint import Head, read_head, write_head
from kev.errors import KevError, Refused, UsageError
from kev.metrics import (
    Rows,
    TemperatureFit,
    cross_validate,
    fit_temperature,
    look_alikes,
    measure,
    pool,
    raw,
    rows_from_json,
    scored,
    tempered,
)
from kev.placement import Placement, held_out_problems, place_rows, training_of
from kev.rounds.checkout import Checkout
from kev.rounds.pools import Training

METHOD = "least mean NLL of raw logits over 121 temperatures, equally spaced in the logarithm from 0.25 to 4"
SHOWN = ("nll", "ece", "brier", "confident_error_rate")


@dataclass(frozen=True)
class FitRows:
    """A file of rows to fit on, and the sources of it that are kept (None for all)."""

    path: Path
    sources: tuple[str, ...] | None = None

    @classmethod
    def parse(cls, text: str) -> "FitRows":
        """`PATH` or `PATH:source,source`. A colon in the name of a file that exists belongs to the name."""
        path, colon, names = text.rpartition(":")
        if not colon or Path(text).exists():
            return cls(Path(text))
        sources = tuple(name for name in names.split(",") if name)
        if not sources:
            raise UsageError(f"--rows {text}: names no source after the colon")
        return cls(Path(path), sources)

    @cached_property
    def rows(self) -> Rows:
        """The rows, checked. Raises NotFound, DamagedFile or BadRows."""
        return read_rows(self.path)


def read_rows(path: Path) -> Rows:
    """The rows in `path`. Raises NotFound, DamagedFile or BadRows."""
    return rows_from_json(files.read_json(path), str(path))


@dataclass(frozen=True)
class Request:
    """What is asked of a calibration."""

    run: Path
    rows: tuple[FitRows, ...]
    exclude_rows: tuple[Path, ...] = ()
    transfer: Path | None = None
    temperature: float | None = None
    reason: str | None = None
    allow_in_distribution: bool = False
    folds: int = 5
    seed: int = 0
    root: Path = field(default=Path())


def calibrate(request: Request, say: Callable[[str], None]) -> Head:
    """Fit, or take, the temperature, write it into the checkpoint, and tell `say` what was found, line by line.

    Raises Refused, in this order: for a source that the rows do not have; unless the temperature is given, for rows
    that are not held out from the checkpoint's training, or cannot be seen to be. NotFound, DamagedFile and BadRows
    as the files deserve. Nothing is written then.
    """
    checkout = Checkout(request.root)
    places = {entry.path: place_rows(entry.path, checkout) for entry in request.rows}
    for entry in request.rows:
        _check_sources(entry, places[entry.path], checkout)
    head = read_head(request.run)
    if request.temperature is not None:
        fit = {"method": "manual", "reason": str(request.reason).strip()}
        served = request.temperature
    else:
        training = training_of(request.run, head, checkout)
        problems = _held_out(request, places, training, checkout, say)
        served, fit = _fit(request, places, training, problems, say)
    _report(request, head.temperature, served, say)
    changed = head.changed(temperature=served, temperature_fit=fit)
    write_head(request.run, changed)
    say(f"{request.run}: T {head.temperature:.4f} -> {served:.4f}")
    return changed


def _check_sources(entry: FitRows, place: Placement | None, checkout: Checkout) -> None:
    if entry.sources is None:
        return
    suite = checkout.suite(place.suite) if place is not None else None
    listed = suite.manifest.listed_sources() if suite is not None else set(entry.rows.sources.tolist())
    where = place.suite if place is not None and suite is not None else str(entry.path)
    unknown = [name for name in entry.sources if name not in listed]
    if unknown:
        raise Refused(f"{entry.path}: {where} has no source {unknown[0]!r}; it has {', '.join(sorted(listed))}")


def _held_out(
    request: Request,
    places: dict[Path, Placement | None],
    training: Training | None,
    checkout: Checkout,
    say: Callable[[str], None],
) -> list[str]:
    reads = [(str(entry.path), places[entry.path], entry.sources) for entry in request.rows]
    problems = held_out_problems(reads, training, checkout)
    if problems and not request.allow_in_distribution:
        raise Refused(
            "the rows are not shown to be held out: " + "; ".join(problems) + "; fit on other rows, or pass "
            "--allow-in-distribution, which is recorded in the checkpoint"
        )
    for problem in problems:
        say(f"!!! not shown to be held out, allowed: {problem}")
    return problems


def _fit(
    request: Request,
    places: dict[Path, Placement | None],
    training: Training | None,
    problems: list[str],
    say: Callable[[str], None],
) -> tuple[float, dict[str, Any]]:
    pooled = _pooled(request)
    _say_unmatched(request, say)
    fitted = fit_temperature(pooled)
    if fitted.note:
        say(f"!!! T = {fitted.temperature:g}: {fitted.note}")
    names = [str(entry.path) for entry in request.rows]
    record: dict[str, Any] = {
        "rows": names[0] if len(names) == 1 else names,
        **({"exclude_rows": [str(path) for path in request.exclude_rows]} if request.exclude_rows else {}),
        "n": fitted.questions,
        "method": METHOD,
        "cross_validation": _cross_validation(request, pooled, say),
        "fit_rows": [_fit_rows(request, entry, places[entry.path]) for entry in request.rows],
        "training_suites": list(training.suites) if training is not None else [],
        **({"in_distribution": {"allowed": True, "problems": problems}} if problems else {}),
        **_noted(fitted),
    }
    return fitted.temperature, record


def _noted(fitted: TemperatureFit) -> dict[str, str]:
    return {"note": fitted.note} if fitted.note else {}


def _pooled(request: Request, only: FitRows | None = None) -> Rows:
    excluded = {identifier for path in request.exclude_rows for identifier in read_rows(path).ids}
    reads, sources = [], {}
    for number, entry in enumerate(request.rows if only is None else (only,)):
        # Numbered, since one file may be given twice with other sources each time.
        name = f"{entry.path} ({number + 1})"
        reads.append((name, entry.rows))
        if entry.sources is not None:
            sources[name] = entry.sources
    return pool(reads, sources=sources, exclude=excluded).rows


def _say_unmatched(request: Request, say: Callable[[str], None]) -> None:
    """Say which files of records to leave out have none that is among the fit rows, and what may be the reason."""
    fitted = {identifier for entry in request.rows for identifier in entry.rows.ids}
    for path in request.exclude_rows:
        there = set(read_rows(path).ids)
        if there & fitted:
            continue
        pairs = look_alikes([*sorted(there), *sorted(fitted)])
        alike = next(((one, other) for one, other in pairs if one in there and other in fitted), None)
        why = f"; {alike[0]!a} there and {alike[1]!a} here look alike and are two records" if alike else ""
        say(f"!!! {path}: none of its {len(there)} records is among the fit rows, so it leaves nothing out{why}")


def _fit_rows(request: Request, entry: FitRows, place: Placement | None) -> dict[str, Any]:
    try:
        questions = len(scored(_pooled(request, entry)))
    except KevError:
        questions = 0
    return {
        "rows": str(entry.path),
        "suite": place.suite if place is not None else None,
        "split": place.split if place is not None else None,
        **({"sources": list(entry.sources)} if entry.sources is not None else {}),
        "questions": questions,
    }


def _cross_validation(request: Request, rows: Rows, say: Callable[[str], None]) -> dict[str, Any] | None:
    try:
        found = cross_validate(rows, folds=request.folds, seed=request.seed)
    except KevError as error:
        say(f"!!! no cross-validation: {error}")
        return None
    lower, upper = found.ece_delta_ci95
    verdict = "separated from 0" if found.separated else "not separated from 0"
    say(f"out of fold: ECE {found.raw['ece']:.4f} -> {found.out_of_fold['ece']:.4f}, difference [{lower:+.4f}, "
        f"{upper:+.4f}], {verdict}")  # fmt: skip
    return found.to_json()


def _report(request: Request, before: float, after: float, say: Callable[[str], None]) -> None:
    shown = [("fit rows", _pooled(request))]
    if request.transfer is not None:
        shown.append(("transfer", raw(read_rows(request.transfer))))
    for name, rows in shown:
        rows = scored(rows)
        old, new = measure(tempered(rows, before)), measure(tempered(rows, after))
        figures = ", ".join(f"{metric} {old[metric]:.4f} -> {new[metric]:.4f}" for metric in SHOWN)
        say(f"{name}, {len(rows)} questions at T {before:.4f} -> {after:.4f}: {figures}")
