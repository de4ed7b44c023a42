"""The parts of the page about trials, criteria and stages, from a Snapshot. Pure."""

from collections.abc import Iterable

from kevtui.format import MISSING
from kevtui.observe.snapshot import Arm, Criterion, Snapshot, StageVerdict, Trial
from kevtui.report import charts
from kevtui.report.charts import number
from kevtui.report.markup import Markup, tag
from kevtui.report.tables import table

PLOTTED = 60
"""Trials with a plot of their own; the table has them all."""

OUTCOME = {True: "✓ passed", False: "✗ did not pass", None: "? not decided"}


def trials(snapshot: Snapshot) -> Iterable[Markup]:
    """Every trial, then the step rates of those whose log has a clock."""
    if not snapshot.trials:
        return
    yield table(("trial", "state", "step", "loss", "steps per minute", "remark"), map(_trial, snapshot.trials))
    plots = (charts.step_rate(trial, identity=f"rate-{place}") for place, trial in enumerate(snapshot.trials))
    drawn = [(trial.id, plot) for trial, plot in zip(snapshot.trials, plots, strict=True) if plot is not None]
    if not drawn:
        yield tag("p", "No log here says when its steps were made: there are no rates to plot.", class_="missing")
    for name, plot in drawn[:PLOTTED]:
        yield tag("h3", name)
        yield plot
    if len(drawn) > PLOTTED:
        yield tag("p", f"and {len(drawn) - PLOTTED} more trials, of which the table has the rates.")


def _trial(trial: Trial) -> tuple[str, ...]:
    done = MISSING if trial.step is None else f"{trial.step:,} of {count(trial.steps)}"
    rate = f"{trial.rate.steps_per_minute:.2f} ({trial.rate.basis})" if trial.rate else trial.rate_note or MISSING
    return (trial.id, trial.state.value, done, number(trial.loss), rate, trial.error or trial.note)


def criteria(snapshot: Snapshot) -> Iterable[Markup]:
    """The criteria of every arm, as a plot and as numbers."""
    readout = snapshot.readout
    if readout is None:
        return
    chosen = ", ".join(f"{size}: {arm or 'none'}" for size, arm in readout.candidates) or "none"
    yield tag("p", f"Candidates: {chosen}. " + (f"From {readout.source}." if readout.source else "Not read out yet."))
    for place, arm in enumerate(readout.arms):
        yield from _arm(arm, place)


def _arm(arm: Arm, place: int) -> Iterable[Markup]:
    mark = "" if arm.selectable else "; never a candidate"
    yield tag("h3", f"{arm.name}: {OUTCOME[arm.passed]}{mark}")
    if arm.note or arm.missing:
        lacks = f"Missing: {', '.join(arm.missing)}." if arm.missing else ""
        yield tag("p", f"{arm.note}{'. ' if arm.note else ''}{lacks}")
    plot = charts.criteria(arm, identity=f"criteria-{place}")
    if plot is not None:
        yield plot
        yield _numbers(arm.criteria)


def verdicts(snapshot: Snapshot) -> Iterable[Markup]:
    """The confirmation stages, decided or not."""
    for place, each in enumerate(snapshot.verdicts):
        yield from _verdict(each, place)


def _verdict(each: StageVerdict, place: int) -> Iterable[Markup]:
    yield tag("h3", f"{each.size}, {each.stage}: {OUTCOME[each.passed] if each.source else 'not decided yet'}")
    if each.criteria and each.source:
        as_arm = Arm(f"{each.size} at {each.stage}", each.size, criteria=each.criteria)
        yield charts.criteria(as_arm, identity=f"stage-{place}") or tag("p")
        yield _numbers(each.criteria)


def _numbers(found: Iterable[Criterion]) -> Markup:
    return table(
        ("criterion", "verdict", "rule", "figure", "threshold", "candidate", "parent", "difference", "95 % interval"),
        [
            (each.name, tag("span", charts.SIGN[each.verdict], class_=each.verdict.value),
             f"{each.left} {each.op} {each.right}".strip() or MISSING, number(each.value), number(each.threshold),
             number(each.candidate), number(each.parent), number(each.delta), interval(each.lower, each.upper))
            for each in found
        ],
    )  # fmt: skip


def interval(lower: float | None, upper: float | None) -> str:
    """Both bounds, or the sign of what is missing."""
    return MISSING if lower is None or upper is None else f"[{lower:+.4f}, {upper:+.4f}]"


def count(value: int | None) -> str:
    return MISSING if value is None else f"{value:,}"
