"""Figures of a bench as people read them, and what is known of a picture, one fact a line."""

from collections.abc import Iterator

from kevtui import format as figures
from kevtui.bench.snapshot import BenchSnapshot, Evaluation, JournalEntry, Machine, Run, RunRow, RunState, Submission
from kevtui.headless.facts import Fact


def score(value: float | None) -> str:
    """0 to 100, to two decimals."""
    return figures.MISSING if value is None else f"{value:.2f}"


def gain(value: float | None) -> str:
    """With its sign: "+3.20", "−1.00", "0.00"."""
    if value is None:
        return figures.MISSING
    text = f"{abs(value):.2f}"
    return text if float(text) == 0 else ("+" if value > 0 else "−") + text


def used(value: float | None, of: float | None) -> str:
    return f"{figures.age(value)} of {figures.age(of)}"


def left(run: Run) -> str:
    """How much time is left, or what ended it."""
    time = run.time
    if time.state is RunState.RUNNING:
        return f"{figures.age(time.left_s)} left"
    if time.state is RunState.ENDED:
        return f"ended {figures.clock(time.ended_at)}"
    return str(time.state) if time.state is RunState.TIME_UP else "time not known"


def standing(each: Submission) -> str:
    """What a submission is: its label, or what its numbers say where the grader gave it none."""
    if each.error is not None:
        return each.label if each.label not in (None, "") else "error"
    if each.not_finite:
        return "not finite"
    if each.label:
        return each.label
    if each.improvement is None:
        return "scored" if each.score is not None else "no score"
    return "above" if each.improvement > 0 else "below" if each.improvement < 0 else "no change"


def evaluation(now: Evaluation) -> str:
    if now.note:
        return now.note
    if now.number is None:
        return "nothing is being graded"
    since = "" if now.accepted_s is None else f", accepted {figures.age(now.accepted_s)} ago"
    more = f"; {now.waiting} more waiting" if now.waiting else ""
    return f"submission {now.number} {now.model_path}{since}{more}"


def machine(known: Machine) -> list[tuple[str, str]]:
    """(name, words) of what this machine shows."""
    memory = figures.MISSING
    if known.memory_used is not None and known.memory_total is not None:
        memory = f"{known.memory_used / 2**30:.1f} of {known.memory_total / 2**30:.1f} GiB"
    load = figures.MISSING if known.load is None else f"{known.load:.2f}"
    cores = "" if known.cores is None else f" of {known.cores} cores"
    rows = [("CPU", f"{figures.percent(known.cpu_busy)}{cores}, load {load}"), ("memory", memory)]
    rows += [("GPU", f"{gpu.name}, busy {figures.percent(gpu.busy)}") for gpu in known.gpus]
    return rows if known.gpus else [*rows, ("GPU", f"{figures.MISSING} none that the kernel shows")]


def check_mark(entry: JournalEntry) -> str:
    return {True: "✓", False: "✗", None: "·"}[entry.holds]


def outcome(entry: JournalEntry) -> str:
    return {True: "success", False: "failure", None: figures.MISSING}[entry.succeeded]


def facts(snapshot: BenchSnapshot) -> Iterator[Fact]:
    """Every fact, in the order they are worth reading."""
    yield Fact("bench", snapshot.title, snapshot.path, snapshot.path)
    for finding in snapshot.findings:
        yield Fact("finding", finding.path, finding.reason, finding.reason)
    if snapshot.run is not None:
        yield from _of_run(snapshot.run)
    if snapshot.comparison is not None:
        yield from map(_of_row, snapshot.comparison.rows)


def summary(snapshot: BenchSnapshot) -> str:
    """Everything in one line."""
    run, several = snapshot.run, snapshot.comparison
    parts = []
    if run is not None:
        best = run.best
        parts += [
            f"time {used(run.time.used_s, run.time.timeout_s)}, {left(run)}",
            f"baseline {score(run.baseline)}, best {score(best.score if best else None)}, "
            f"improvement {gain(best.improvement if best else None)}",
            f"submissions {len(run.submissions)}, errors {sum(each.error is not None for each in run.submissions)}",
            f"iterations {len(run.journal.entries)}",
        ]
    if several is not None:
        running = sum(row.state is RunState.RUNNING for row in several.rows)
        parts.append(f"runs {len(several.rows)}, {running} running")
    return "summary: " + "; ".join([*parts, f"findings {len(snapshot.findings)}"])


def _of_run(run: Run) -> Iterator[Fact]:
    time = run.time
    words = f"{time.state}, {used(time.used_s, time.timeout_s)}, {left(run)}"
    yield Fact("run", f"{run.task}/{run.agent}", words, time.state, str(time.state))
    yield Fact("baseline", "", score(run.baseline), run.baseline)
    grading = run.evaluation
    yield Fact("grading", "", evaluation(grading), (grading.number, grading.waiting, grading.note))
    for each in run.submissions:
        said = [score(each.score), f"improvement {gain(each.improvement)}", standing(each), each.model_path]
        said += [each.error] if each.error else []
        said += ["best"] if each.best else []
        line = ", ".join(said)
        yield Fact("submission", str(each.number), line, line)
    for entry in run.journal.entries:
        said = [outcome(entry), f"score {score(entry.score)}", entry.train_type, entry.failure_named, entry.what]
        said += [f"breach: {breach}" for breach in entry.breaches]
        line = ", ".join(word for word in said if word)
        yield Fact("iteration", str(entry.number), line, line)
    for breach in run.journal.breaches:
        yield Fact("breach", "journal", breach, breach)
    for failure in run.failures:
        yield Fact("failures", failure.kind, str(failure.count), failure.count)
    if run.final is not None:
        final = run.final
        words = f"{final.verdict}, {score(final.score)} against {score(final.baseline)} on hidden items"
        yield Fact("final", "", words + (f"; {final.words}" if final.words else ""), final)


def _of_row(row: RunRow) -> Fact:
    words = (
        f"{row.state}, baseline {score(row.baseline)}, best {score(row.best)}, improvement {gain(row.improvement)}, "
        f"submissions {figures.MISSING if row.submissions is None else row.submissions}"
    )
    words += f", final {row.verdict}" if row.verdict else ""
    return Fact("run", f"{row.task} {row.agent} {row.run_id}", words, words, str(row.state))
