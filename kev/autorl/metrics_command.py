"""`python -m kev.autorl metrics WORKSPACE`: the figures of a run and its curve of scores.

It writes reports/metrics.json, with `--png` reports/figures/score_trajectory.png too, and prints the curve; `--json`
prints the figures instead, and writes nothing.
"""

import argparse
import sys
from pathlib import Path

from kev import files
from kev.autorl.metrics import Metrics, check_reports, compute_metrics, write_metrics
from kev.autorl.scores import Scores, read_scores
from kev.autorl.trajectory import draw_picture, draw_text
from kev.autorl.workspace import Workspace, open_workspace
from kev.console import run as run_command
from kev.errors import NotFound
from kev.records.autorl import RunMeta
from kev.records.base import read_record
from kev.text import visible


def main(arguments: list[str]) -> int:
    """The command line. Returns 0, or 1 where the workspace cannot be read or the reports cannot be written."""
    parser = argparse.ArgumentParser(prog="python -m kev.autorl metrics", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("workspace", type=Path)
    parser.add_argument("--png", action="store_true", help="draw the curve as a picture too (needs matplotlib)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON and write nothing")
    options = parser.parse_args(arguments)
    return run_command(lambda: _metrics(open_workspace(options.workspace), png=options.png, as_json=options.json))


def read_run(workspace: Workspace) -> tuple[Scores, RunMeta | None]:
    """The scores and the clock's copy of a workspace; a file that is not there yet is empty. Raises DamagedFile."""
    try:
        scores = read_scores(workspace.scores)
    except NotFound:
        scores = Scores([])
    try:
        meta = read_record(workspace.run_meta, RunMeta)
    except NotFound:
        meta = None
    return scores, meta


def _metrics(workspace: Workspace, *, png: bool, as_json: bool) -> int:
    scores, meta = read_run(workspace)
    metrics = compute_metrics(scores, meta)
    for finding in scores.findings:
        print(visible(f"{workspace.scores}: {finding}"), file=sys.stderr)
    if as_json:
        print(files.dump_json(metrics.to_json()).decode(), end="")
        return 0
    picture = draw_picture(scores) if png else None
    write_metrics(workspace, metrics)
    if picture is not None:
        check_reports(workspace)
        files.write_atomic(workspace.trajectory, picture)
    print("\n".join([*draw_text(scores), *_lines(metrics)]))
    return 0


def _lines(metrics: Metrics) -> list[str]:
    figures = metrics.to_json()
    del figures["score_trajectory"]
    width = max(map(len, figures))
    return [f"{name:<{width}}  {_figure(value)}" for name, value in figures.items()]


def _figure(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.4g}" if isinstance(value, float) else str(value)
