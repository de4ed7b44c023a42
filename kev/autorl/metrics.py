"""`reports/metrics.json`: what a run's submissions add up to. None where a figure cannot be computed, never 0.

Times are `elapsed_seconds` of the entries and whole seconds of `run_meta.json`, never the local text of a timestamp,
which an hour repeats in autumn.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import PurePosixPath

from kev import files
from kev.autorl.scores import Scores, improvement_of
from kev.autorl.workspace import Workspace
from kev.errors import Refused
from kev.records.autorl import RunMeta, ScoreEntry
from kev.records.base import StrictRecord


class Metrics(StrictRecord):
    """Figures of one run. Rates are shares from 0 to 1, times are seconds since the run began."""

    submissions: int
    errors: int
    """Gradings that failed: they are in `submissions`, and in no score."""
    not_finite: int
    valid_submission_rate: float | None
    """Scores above 0, of all submissions."""
    first_valid_idx: int | None
    """From 1, in order of the submissions."""
    first_valid_delay: float | None
    score_trajectory: list[float | None]
    time_to_first_improvement: float | None
    time_to_best: float | None
    best_score: float | None
    monotonic_ratio: float | None
    """Steps upward, of all steps from one score to the next; what has no score is stepped over."""
    copy_model_count: int | None
    """None where the grader did not say of each submission whether it was the base."""
    time_used_ratio: float | None
    last_submit_gap: float | None


def compute_metrics(scores: Scores, meta: RunMeta | None) -> Metrics:
    """The figures of a run from its entries and, where there is one, its `run_meta.json`."""
    entries = scores.entries
    values = [entry.score if entry.is_valid else None for entry in entries]
    above = [place for place, value in enumerate(values, start=1) if value is not None and value > 0]
    best = scores.best
    return Metrics(
        submissions=len(entries),
        errors=len(scores.errors),
        not_finite=len(scores.not_finite),
        valid_submission_rate=len(above) / len(entries) if entries else None,
        first_valid_idx=above[0] if above else None,
        first_valid_delay=entries[above[0] - 1].elapsed_seconds if above else None,
        score_trajectory=values,
        time_to_first_improvement=_first_improvement(entries),
        time_to_best=best.elapsed_seconds if best else None,
        best_score=best.score if best else None,
        monotonic_ratio=_monotonic_ratio([value for value in values if value is not None]),
        copy_model_count=_copies(entries),
        time_used_ratio=_time_used(meta),
        last_submit_gap=_last_gap(meta),
    )


def write_metrics(workspace: Workspace, metrics: Metrics) -> None:
    """Write `reports/metrics.json`. Raises Refused where the folder is a link, which could lead anywhere."""
    check_reports(workspace)
    files.write_atomic(workspace.metrics, files.dump_json(metrics.to_json()))


def check_reports(workspace: Workspace) -> None:
    """Raises Refused where `reports/` or what lies in it to be written through is a link out of the workspace."""
    for path in (workspace.reports, workspace.trajectory.parent):
        if path.is_symlink():
            raise Refused(f"{path}: a link; reports are written into the workspace only, make it a folder")


def _first_improvement(entries: Sequence[ScoreEntry]) -> float | None:
    for entry in entries:
        gain = improvement_of(entry.score, entry.baseline_score) if entry.is_valid else None
        if gain is not None and gain > 0:
            return entry.elapsed_seconds
    return None


def _monotonic_ratio(values: Sequence[float]) -> float | None:
    if len(values) < 2:
        return None
    return sum(after > before for before, after in pairwise(values)) / (len(values) - 1)


def _copies(entries: Sequence[ScoreEntry]) -> int | None:
    """The base, by the grader's label or by a path under `models/`; an unlabelled score may be a copy unseen."""
    count = 0
    for entry in entries:
        if entry.label == "no change" or PurePosixPath(entry.model_path).parts[:1] == ("models",):
            count += 1
        elif entry.label is None and entry.is_valid:
            return None
    return count


def _time_used(meta: RunMeta | None) -> float | None:
    if meta is None or meta.end_time is None or not meta.timeout_s or meta.end_time < meta.start_time:
        return None
    return (meta.end_time - meta.start_time) / meta.timeout_s


def _last_gap(meta: RunMeta | None) -> float | None:
    if meta is None or meta.end_time is None or meta.last_submit_time is None:
        return None
    gap = float(meta.end_time - meta.last_submit_time)
    return gap if gap >= 0 else None
