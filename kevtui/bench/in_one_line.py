"""A BenchSnapshot in one line: for the status bar of tmux, a prompt, a phone."""

from kevtui import glyphs
from kevtui.bench import words
from kevtui.bench.snapshot import BenchSnapshot, Comparison, Run, RunState
from kevtui.headless.status_line import Part, join
from kevtui.observe.snapshot import Severity


def render(snapshot: BenchSnapshot, *, width: int | None = None, tmux: bool = False, ascii_only: bool = False) -> str:
    """The line, without its end, at most `width` columns wide (as long as it is if None)."""
    return join(_parts(snapshot), width=width, tmux=tmux, ascii_only=ascii_only)


def _parts(snapshot: BenchSnapshot) -> list[Part]:
    worst = Severity.WARNING if snapshot.findings else Severity.INFO
    sign = glyphs.RISK if snapshot.findings else glyphs.GOOD
    title = f"{snapshot.run.task} {snapshot.run.agent}" if snapshot.run is not None else snapshot.title
    parts = [Part(f"{sign} {title}", 0, worst)]
    if snapshot.run is not None:
        parts += _of_run(snapshot.run)
    if snapshot.comparison is not None:
        parts += _of_several(snapshot.comparison)
    if snapshot.findings:
        count = len(snapshot.findings)
        parts.append(Part(f"{count} finding{'s' if count > 1 else ''}", 3, Severity.WARNING))
    return parts


def _of_run(run: Run) -> list[Part]:
    best = run.best
    parts = [
        Part(words.left(run), 1),
        Part(f"best {words.score(best.score if best else None)} ({words.gain(best.improvement if best else None)})", 1),
        Part(f"{len(run.submissions)} submissions", 2),
    ]
    if run.evaluation.number is not None:
        parts.append(Part(f"grading {run.evaluation.number}", 3))
    if run.final is not None:
        parts.append(Part(f"final {run.final.verdict}", 1))
    return parts


def _of_several(several: Comparison) -> list[Part]:
    running = sum(row.state is RunState.RUNNING for row in several.rows)
    gains = [row for row in several.rows if row.improvement is not None]
    parts = [Part(f"{len(several.rows)} runs, {running} running", 1)]
    if gains:
        top = max(gains, key=lambda row: row.improvement or 0.0)
        parts.append(Part(f"best {words.gain(top.improvement)} {top.agent} on {top.task}", 2))
    return parts
