"""A run in four lines: its time, its scores, what is being graded, and the machine."""

from kevtui import format as figures
from kevtui import glyphs
from kevtui.bench import words
from kevtui.bench.panels.panel import BenchPanel, gain_role, standing_role
from kevtui.bench.snapshot import BenchSnapshot, Machine, Run, RunState, TimeBudget
from kevtui.widgets.line import Line, Pen, Role
from kevtui.widgets.painting import Painting, Row, View

_NAME = 9
"""Cells of the names at the left, "machine" and a gap."""

_BAR = 40
_SHORT = 0.1
"""Left of the time: the share below which it is short."""


class RunPanel(BenchPanel):
    NAME = "2 Run"

    def paint(self, snapshot: BenchSnapshot, view: View) -> Painting:
        run = snapshot.run
        if run is None:
            return Painting()
        lines = [_time(run.time, view), _scores(run, view), _grading(run, view)]
        if run.time.state is RunState.RUNNING:
            # Of a run that is over the machine says nothing, and would never be still.
            lines.append(_machine(snapshot.machine, view))
        return Painting([Row.of(line) for line in lines])

    def has_nothing(self, snapshot: BenchSnapshot) -> bool:
        return snapshot.run is None


def time_bar(time: TimeBudget, width: int) -> tuple[str, str]:
    """What is used and what is left of the time, as two pieces of a bar of `width` cells."""
    done = round((time.share or 0.0) * width)
    return glyphs.SPENT * done, glyphs.FREE * (width - done)


def _named(name: str, view: View) -> Pen:
    pen = view.pen().gap(1 if view.narrow else 0)
    return pen.add(name, Role.DIM, width=_NAME)


def _time(time: TimeBudget, view: View) -> Line:
    pen = _named("time", view)
    told = words.used(time.used_s, time.timeout_s)
    left = f"{figures.age(time.left_s)} left" if time.state is RunState.RUNNING else str(time.state)
    room = pen.left - pen.measure(f"  {told} · {left}")
    if time.share is not None and room >= 10:
        is_short = time.state is RunState.TIME_UP or (time.state is RunState.RUNNING and time.share > 1 - _SHORT)
        used, rest = time_bar(time, min(_BAR, room))
        pen.add(used, Role.WARN if is_short else Role.SPENT).add(rest, Role.FREE).gap(2)
    return (
        pen.add(told).add(" · ", Role.DIM).add(left, Role.WARN if time.state is RunState.TIME_UP else Role.TEXT).line()
    )


def _scores(run: Run, view: View) -> Line:
    best = run.best
    pen = _named("score", view).add("baseline ", Role.DIM).add(words.score(run.baseline))
    pen.add(" · best ", Role.DIM).add(words.score(best.score if best else None), Role.STRONG)
    if best is not None:
        pen.add(f" (submission {best.number})", Role.DIM)
    gain = best.improvement if best else None
    pen.add(" · improvement ", Role.DIM).add(words.gain(gain), gain_role(gain))
    if (final := run.final) is not None:
        pen.add(" · final ", Role.DIM).add(final.verdict, standing_role(final.verdict))
        pen.add(f" {words.score(final.score)} against {words.score(final.baseline)} on hidden items")
        if final.words:
            pen.add(f"; {final.words}", Role.WARN)
    return pen.line()


def _grading(run: Run, view: View) -> Line:
    busy = run.evaluation.number is not None
    return _named("grading", view).add(words.evaluation(run.evaluation), Role.TEXT if busy else Role.DIM).line()


def _machine(machine: Machine, view: View) -> Line:
    pen = _named("machine", view)
    for number, (name, told) in enumerate(words.machine(machine)):
        pen.add(f" · {name} " if number else f"{name} ", Role.DIM).add(told)
    return pen.line()
