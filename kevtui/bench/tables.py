"""A BenchSnapshot as tables, printed once."""

from collections.abc import Iterator

from kevtui import format as figures
from kevtui.bench import words
from kevtui.bench.snapshot import BenchSnapshot, Comparison, Run, RunRow, RunState
from kevtui.headless.output import Output
from kevtui.headless.paint import Paint, Row, as_text
from kevtui.headless.styled import Text
from kevtui.plotting import plot

PLOT_SIZE = (72, 12)
LOG_LINES = 10
_STYLES = {
    "gain": "green", "above": "green", "tie": "dim", "no change": "dim", "loss": "yellow", "below": "yellow",
    "error": "bold red", "foreign": "bold red", "not finite": "bold red",
}  # fmt: skip


def render(snapshot: BenchSnapshot, output: Output) -> str:
    """Everything known, as text for `output`."""
    return as_text(lines(snapshot, Paint(output.ascii_only, output.width)), output)


def lines(snapshot: BenchSnapshot, paint: Paint) -> Iterator[Text]:
    """The lines in the order a reader asks: where am I, what is wrong, how much time, how good, what happened."""
    yield paint.text(snapshot.title, "bold")
    told = [snapshot.path, f"taken {snapshot.taken_at:%Y-%m-%dT%H:%M:%SZ}", snapshot.polling]
    yield paint.text("   ".join(part for part in told if part), "dim")
    if snapshot.findings:
        rows: list[Row] = [(each.path, each.reason, figures.age(each.last_good_age_s)) for each in snapshot.findings]
        yield from paint.section(
            "Findings",
            paint.table(("file", "why it cannot be believed", "last good"), rows),
            note="what such a file last held stays in use",
        )
    if snapshot.run is not None:
        yield from _run(snapshot.run, paint)
    if snapshot.comparison is not None:
        yield from _comparison(snapshot.comparison, paint)
    machine: list[Row] = list(words.machine(snapshot.machine))
    yield from paint.section("This machine", paint.table(("", ""), machine))


def _run(run: Run, paint: Paint) -> Iterator[Text]:
    time, best = run.time, run.best
    known: list[Row] = [
        ("task", run.task),
        ("agent", run.agent),
        ("state", str(time.state)),
        ("began", _moment(time.started_at)),
        ("used", words.used(time.used_s, time.timeout_s)),
        ("left", figures.age(time.left_s)),
        ("last submission", _moment(time.last_submit_at)),
        ("ended", _moment(time.ended_at)),
        ("baseline", words.score(run.baseline)),
        ("best", f"{words.score(best.score)} (submission {best.number})" if best else figures.MISSING),
        ("improvement", words.gain(best.improvement if best else None)),
        ("being graded", words.evaluation(run.evaluation)),
    ]
    if run.final is not None:
        final = run.final
        told = f"{final.verdict}: {words.score(final.score)} against {words.score(final.baseline)} on hidden items"
        known.append(("final", f"{told}; {final.words}" if final.words else told))
    yield from paint.section("Run", paint.table(("", ""), known))
    yield from _submissions(run, paint)
    yield from _journal(run, paint)
    if run.failures:
        counts: list[Row] = [(each.kind, str(each.count)) for each in run.failures]
        yield from paint.section("Failures", paint.table(("type", ">times"), counts))
    if run.log.lines:
        age = f"last written {figures.age(run.log.age_s)} ago"
        yield from paint.section("Agent log", paint.lines(run.log.lines[-LOG_LINES:]), note=age)


def _submissions(run: Run, paint: Paint) -> Iterator[Text]:
    if not run.submissions:
        return paint.section("Submissions", paint.lines(["none graded yet"], "dim"))
    rows: list[Row] = [
        (
            str(each.number),
            figures.age(each.at_s),
            words.score(each.score),
            words.gain(each.improvement),
            paint.text(words.standing(each), _STYLES.get(words.standing(each), "")),
            "best" if each.best else "",
            each.model_path,
            each.error or "",
        )
        for each in run.submissions
    ]
    table = paint.table((">no.", ">after", ">score", ">improvement", "is", "", "model", "error"), rows)
    width = PLOT_SIZE[0] if paint.width is None else max(12, min(PLOT_SIZE[0], paint.width - 4))
    samples = [(each.at_s / 60, each.score) for each in run.submissions if each.at_s is not None]
    curve = plot(samples, width, PLOT_SIZE[1], x="min", y="score", ascii_only=paint.ascii_only)
    shown = [line.rstrip() for line in curve] if len(samples) > 1 else []
    return paint.section("Submissions", table, paint.lines(shown))


def _journal(run: Run, paint: Paint) -> Iterator[Text]:
    journal = run.journal
    if not journal.entries:
        return paint.section("Journal", paint.lines(["no iteration written yet"], "dim"))
    rows: list[Row] = [
        (
            words.check_mark(entry),
            str(entry.number),
            entry.at,
            figures.age(entry.duration_s),
            words.outcome(entry),
            words.score(entry.score),
            words.gain(entry.improvement),
            entry.train_type,
            entry.failure_named,
            entry.what,
            "; ".join(entry.breaches),
        )
        for entry in journal.entries
    ]
    columns = ("", ">iteration", "at", ">took", "status", ">score", ">improvement", "type", "failure", "what", "breach")
    breaches = paint.lines(journal.breaches, "bold red")
    return paint.section("Journal", paint.table(columns, rows), breaches, note=journal.note)


def _comparison(several: Comparison, paint: Paint) -> Iterator[Text]:
    if not several.rows:
        yield from paint.section("Runs", paint.lines(["none yet"], "dim"))
        return
    matrix: list[Row] = [(agent, *(_cell(several, agent, task) for task in several.tasks)) for agent in several.agents]
    tasks = [f">{task}" for task in several.tasks]
    yield from paint.section(
        "Best improvement", paint.table(("agent", *tasks), matrix), note="over the runs of an agent on a task"
    )
    columns = (
        "run", "task", "agent", "driver", "base", "state", ">baseline", ">best", ">improvement", ">submissions",
        ">used", "final", "rules", "began",
    )  # fmt: skip
    yield from paint.section("Runs", paint.table(columns, [_row(row) for row in several.rows]))


def _cell(several: Comparison, agent: str, task: str) -> str:
    cell = several.cell(agent, task)
    if cell is None:
        return figures.MISSING
    running = f", {cell.running} running" if cell.running else ""
    return f"{words.gain(cell.improvement)} ({cell.runs}{running})"


def _row(row: RunRow) -> Row:
    return (
        row.run_id,
        row.task,
        row.agent,
        row.driver_model,
        row.base_model,
        str(row.state),
        words.score(row.baseline),
        words.score(row.best),
        words.gain(row.improvement),
        figures.MISSING if row.submissions is None else str(row.submissions),
        figures.age(row.used_s) if row.state is not RunState.RUNNING else words.used(row.used_s, row.timeout_s),
        row.verdict,
        row.rules,
        row.started,
    )


def _moment(moment: object) -> str:
    return figures.MISSING if moment is None else f"{moment:%Y-%m-%d %H:%M}Z"
