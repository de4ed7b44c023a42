"""Several runs compared: the rows of `results.csv`, and the workspaces beside it that have no row yet."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from kev.autorl.results import Results, read_results
from kev.autorl.scores import Scores, read_scores
from kev.autorl.workspace import Workspace
from kev.text import shorten, visible
from kevtui.bench.files_cache import FilesCache
from kevtui.bench.snapshot import Cell, Comparison, RunRow, RunState
from kevtui.bench.workspace_view import agent_of, read_meta, submissions_of, time_of
from kevtui.observe.snapshot import Finding

MOST_ROWS = 2000
MOST_WORKSPACES = 300
"""Workspaces looked into for their submissions, the latest rows first."""
MOST_FINDINGS = 20
FIGURES = ("baseline", "best_score", "improvement", "submissions", "duration_s", "final_score", "final_baseline")


class ComparisonView:
    """Looks at a file of results and the workspaces beside it; a look costs what changed and a stat for each file."""

    def __init__(self, results: Path, cache: FilesCache) -> None:
        self._path = results
        self._root = results.parent
        self._cache = cache
        self._more = ""

    def look(self, now: datetime) -> Comparison:
        results = self._cache.get(self._path, read_results) or Results([], [], [])
        once = list({tuple(cells.items()): cells for cells in results.rows}.values())
        rows = [self._row(cells) for cells in once[-MOST_ROWS:]]
        left_out = len(once) - len(rows)
        self._more = f"only the last {MOST_ROWS:,} rows are shown; {left_out:,} more are there" if left_out else ""
        looked = [self._with_trajectory(row) for row in rows[-MOST_WORKSPACES:]]
        rows = [*rows[: len(rows) - len(looked)], *looked]
        known = {Path(row.workspace).name for row in rows if row.workspace} | {row.run_id for row in rows}
        for directory in self._workspaces():
            if directory.name not in known:
                rows.append(self._live(directory, now))
        return Comparison(tuple(rows), cells_of(rows))

    def findings(self) -> Iterator[Finding]:
        results = self._cache.get(self._path, read_results)
        for words in [*results.findings, *doubtful(results.rows)][:MOST_FINDINGS] if results else ():
            yield Finding(self._path.name, words)
        if self._more:
            yield Finding(self._path.name, self._more)

    def _row(self, cells: Mapping[str, str]) -> RunRow:
        def word(name: str) -> str:
            return shorten(cells.get(name) or "", 200)

        submissions, success = figure(cells.get("submissions")), word("success").lower()
        # What was counted from a figure that is none is none either, and must not be the best of anything.
        sound = not any(is_no_figure(cells.get(name)) for name in ("baseline", "best_score"))
        return RunRow(
            run_id=word("run_id"),
            task=word("task"),
            agent=word("agent"),
            state=RunState.ENDED,
            started=word("timestamp"),
            driver_model=word("driver_model"),
            base_model=word("base_model"),
            baseline=figure(cells.get("baseline")),
            best=figure(cells.get("best_score")),
            improvement=figure(cells.get("improvement")) if sound else None,
            submissions=None if submissions is None else int(submissions),
            used_s=figure(cells.get("duration_s")),
            verdict=word("verdict"),
            rules=word("rules"),
            success={"true": True, "false": False}.get(success),
            workspace=cells.get("workspace") or "",
        )

    def _with_trajectory(self, row: RunRow) -> RunRow:
        directory = self._place_of(row)
        scores = self._cache.get(directory / "scores.json", read_scores) if directory is not None else None
        if scores is None or directory is None:
            return row
        return replace(row, trajectory=trajectory_of(scores), workspace=str(directory))

    def _place_of(self, row: RunRow) -> Path | None:
        """The workspace of a row: where it says, or beside the file, for files move between machines."""
        if "\0" in row.workspace:
            return None
        said = Path(row.workspace) if row.workspace else None
        if said is not None and said.is_absolute() and said.is_dir():
            return said
        name = said.name if said is not None else row.run_id
        if not name or not row.task or "/" in row.task or row.task.startswith("."):
            return None
        beside = self._root / row.task / name
        return beside if beside.is_dir() else None

    def _workspaces(self) -> list[Path]:
        """Directories `<root>/<task>/<run>` that have begun, the latest ones."""
        try:
            found = [path.parent for path in self._root.glob("[!.]*/*/run_meta.json")]
        except OSError:
            return []
        return sorted(found, key=lambda path: path.name)[-MOST_WORKSPACES:]

    def _live(self, directory: Path, now: datetime) -> RunRow:
        workspace = Workspace(directory)
        time = time_of(self._cache.get(workspace.run_meta, read_meta), now)
        scores = self._cache.get(workspace.scores, read_scores) or Scores([])
        best = next((each for each in submissions_of(scores) if each.best), None)
        return RunRow(
            run_id=directory.name,
            task=directory.parent.name,
            agent=agent_of(directory.name),
            state=time.state,
            started="" if time.started_at is None else time.started_at.astimezone(UTC).isoformat(timespec="seconds"),
            baseline=scores.baseline,
            best=None if best is None else best.score,
            improvement=None if best is None else best.improvement,
            submissions=len(scores.entries),
            used_s=time.used_s,
            timeout_s=time.timeout_s,
            workspace=str(directory),
            trajectory=trajectory_of(scores),
        )


def trajectory_of(scores: Scores) -> tuple[tuple[float, float | None], ...]:
    """(seconds since the start, score) of each submission that has a time."""
    return tuple(
        (each.elapsed_seconds, each.score if each.is_valid else None)
        for each in scores.entries
        if each.elapsed_seconds is not None
    )


def cells_of(rows: list[RunRow]) -> tuple[Cell, ...]:
    """Each agent on each task, in the order they first appear."""
    groups: dict[tuple[str, str], list[RunRow]] = {}
    for row in rows:
        groups.setdefault((row.agent, row.task), []).append(row)
    return tuple(
        Cell(
            agent,
            task,
            len(group),
            max((row.improvement for row in group if row.improvement is not None), default=None),
            sum(row.state is RunState.RUNNING for row in group),
        )
        for (agent, task), group in groups.items()
    )


def doubtful(rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """A line for each cell that is no figure where one belongs, and for each run that is there again."""
    seen: dict[str, Mapping[str, str]] = {}
    for cells in rows:
        run = shorten(visible(cells.get("run_id") or ""), 80)
        for name in FIGURES:
            if is_no_figure(cells.get(name)):
                yield f"{run}: {name} {shorten(visible(repr(cells[name])), 40)} is no finite number, and counts nothing"
        first = seen.setdefault(run, cells)
        if first is not cells:
            yield f"{run}: a row is there twice, and counts once" if first == cells else f"{run}: is the id of two rows"


def is_no_figure(text: str | None) -> bool:
    """Whether a cell holds something, and that is no finite number."""
    return bool(text and text.strip()) and figure(text) is None


def figure(text: str | None) -> float | None:
    """A finite number; None for an empty cell and for what is no number."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None
