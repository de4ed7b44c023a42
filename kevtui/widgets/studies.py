"""Every trial of every study: is it moving, will it be in time, is it held, what is it bound to cost."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from kevtui import format as figures
from kevtui import glyphs
from kevtui.observe.snapshot import Section, Snapshot, Trial, TrialState
from kevtui.widgets.line import Line, Pen, Role
from kevtui.widgets.painting import Painting, Row, View
from kevtui.widgets.panel import Panel
from kevtui.widgets.state import LEASE_ROLE, counts
from kevtui.widgets.trial_rows import SORTS, Entry, entries, matching, rate_of, share_of


class Column(NamedTuple):
    title: str
    width: int
    priority: int
    """Columns of a low number stay longest when the width shrinks."""
    draw: Callable[[Pen, Entry, int], object]
    right: bool = False


class StudiesPanel(Panel):
    NAME = "1 Studies"
    SECTIONS = (Section.STUDIES, Section.LEASES)
    CURSOR_ALWAYS = True

    sort = 0

    def paint(self, snapshot: Snapshot, view: View) -> Painting:
        everything = entries(snapshot)
        rows = matching(everything, view.filter)
        sort = SORTS[self.sort]
        if sort.key is not None:
            rows = sorted(rows, key=sort.key)  # type: ignore[arg-type]
        columns = fit(everything, view)
        lines = [Row(row.key, partial(draw, row, columns, view)) for row in rows]
        return Painting(lines, (heading(columns, view),), self._note(snapshot, view, len(rows), len(everything)))

    def head(self, view: View) -> tuple[Line, ...]:
        return (heading(fit([], view), view),)

    @property
    def trial(self) -> Trial | None:
        """The trial under the cursor."""
        trials = self.snapshot.trials if self.snapshot else ()
        return next((trial for trial in trials if trial.id == self.key), None)

    def next_sort(self) -> None:
        self.sort = (self.sort + 1) % len(SORTS)
        self.repaint()

    def set_filter(self, words: str) -> None:
        self.filter = words
        self.repaint()

    def _note(self, snapshot: Snapshot, view: View, shown: int, total: int) -> str:
        note = ""
        if view.filter:
            note += f" · {shown} of {total} match {view.filter!r}"
        elif not view.narrow:
            note += "".join(f" · {number} {word}" for _, word, _, number in counts(snapshot))
        if SORTS[self.sort].name:
            note += f" · by {SORTS[self.sort].name}"
        return note


# ------------------------------------------------------------------------------------------ columns


def fit(rows: list[Entry], view: View) -> list[tuple[Column, int]]:
    """The columns there is room for, in their order, with their widths; what is over goes to the finish column."""
    longest = max((len(row.name) for row in rows), default=10)
    name = max(8, min(longest, max(12, view.width // 4)))
    columns = [
        Column("trial", name, 0, _draw_name),
        Column("state", 13, 1, _draw_state),
        Column("step", 11, 2, _draw_step, right=True),
        Column("", 10, 9, _draw_track),
        Column("rate", 9, 3, _draw_rate, right=True),
        Column("trend", 8, 11, _draw_spark),
        Column("finish / timeout", _finish_width(rows, view), 4, _draw_finish),
        Column("log", 6, 6, _draw_log_age, right=True),
        Column("lease", 8, 5, _draw_lease),
        Column("try", 3, 7, _draw_tries, right=True),
        Column("loss", 6, 10, _draw_loss, right=True),
        Column("bound ≤", 9, 8, _draw_bound, right=True),
    ]
    kept: list[Column] = []
    left = view.width - (1 if view.narrow else 0)
    for column in sorted(columns, key=lambda column: column.priority):
        if column.width + 1 <= left or not kept:
            kept.append(column)
            left -= column.width + _GAP
    return [
        (column, column.width + (max(0, min(left, 24)) if column.draw is _draw_finish else 0))
        for column in columns
        if column in kept
    ]


_GAP = 2


def _finish_width(rows: list[Entry], view: View) -> int:
    """Room for the longest remark, on a screen that has it."""
    if view.width < 100:
        return 16
    return max(16, min(30, max((len(row.trial.note) for row in rows if row.trial), default=0)))


def heading(columns: list[tuple[Column, int]], view: View) -> Line:
    pen = view.pen().gap(1 if view.narrow else 0)
    for column, width in columns:
        title = f"{column.title} UTC" if column.draw is _draw_finish and width >= 20 else column.title
        pen.add(title, Role.DIM, width=width, right=column.right).gap(_GAP)
    return pen.line()


def draw(row: Entry, columns: list[tuple[Column, int]], view: View) -> Line:
    pen = view.pen().gap(1 if view.narrow else 0)
    for column, width in columns:
        column.draw(pen, row, width)
        pen.gap(_GAP)
    return pen.line()


def _missing(pen: Pen, width: int, *, right: bool = False) -> None:
    pen.add(figures.MISSING, Role.DIM, width=width, right=right)


def _draw_name(pen: Pen, row: Entry, width: int) -> None:
    pen.add(row.name, Role.STRONG if _needs_a_look(row) else Role.TEXT, width=width)


def _needs_a_look(row: Entry) -> bool:
    return row.state[2] in (Role.BAD, Role.WARN)


def _draw_state(pen: Pen, row: Entry, width: int) -> None:
    glyph, word, role = row.state
    pen.add(f"{glyph} {word}", role, width=width)


def _draw_step(pen: Pen, row: Entry, width: int) -> None:
    trial = row.trial
    if trial is None or trial.step is None:
        _missing(pen, width, right=True)
    else:
        pen.add(f"{trial.step}/{figures.MISSING if trial.steps is None else trial.steps}", width=width, right=True)


def _draw_track(pen: Pen, row: Entry, width: int) -> None:
    share = share_of(row)
    if share is None:
        pen.gap(width)
        return
    done = max(0, min(width, int(share * width)))
    role = row.state[2] if _needs_a_look(row) else Role.ACCENT
    pen.add(glyphs.TRACK_DONE * done, Role.DIM if row.state[1] == TrialState.DONE else role)
    pen.add(glyphs.TRACK_LEFT * (width - done), Role.FREE)


def _draw_rate(pen: Pen, row: Entry, width: int) -> None:
    rate = rate_of(row)
    if row.state[0] != glyphs.LIVE and rate is None:
        pen.gap(width)
    elif rate is None:
        _missing(pen, width, right=True)
    else:
        pen.add(f"{rate:.1f}/min", width=width, right=True)


def _draw_spark(pen: Pen, row: Entry, width: int) -> None:
    points = row.trial.points[-width:] if row.trial else ()
    rates = [point.steps_per_minute for point in points if point.steps_per_minute is not None]
    pen.add(glyphs.sparkline(rates, width), Role.DIM, width=width)


def _draw_finish(pen: Pen, row: Entry, width: int) -> None:
    trial = row.trial
    start = pen.column
    if trial is None:
        pen.add(row.study.status_text, Role.DIM, width=width)
        return
    projection = trial.projection
    if trial.error:
        pen.add(trial.error, Role.BAD, width=width)
    elif projection is None:
        pen.add(trial.note or (trial.rate_note if trial.state is TrialState.RUNNING else ""), Role.DIM, width=width)
    else:
        past = projection.past_timeout
        pen.add(f"{projection.finish_at:%H:%M}", Role.WARN if past else Role.TEXT)
        spread = f" ±{figures.age((projection.remaining_high_s - projection.remaining_low_s) / 2)}"
        if width >= 16 + len(spread):
            pen.add(spread, Role.DIM)
        if projection.timeout_at is not None:
            pen.add(" > " if past else " / ", Role.WARN if past else Role.DIM)
            pen.add(f"{projection.timeout_at:%H:%M}", Role.WARN if past else Role.DIM)
        if trial.note and start + width - pen.column > len(trial.note) + 2:
            pen.add(f"  {trial.note}", Role.DIM)
    pen.to(start + width)


def _draw_log_age(pen: Pen, row: Entry, width: int) -> None:
    trial = row.trial
    if trial is None or trial.log_age_s is None or trial.state is not TrialState.RUNNING:
        pen.gap(width)
    else:
        pen.add(figures.age(trial.log_age_s), width=width, right=True)


def _draw_lease(pen: Pen, row: Entry, width: int) -> None:
    lease = row.lease
    if lease is None:
        pen.gap(width)
        return
    role = Role.BAD if lease.nonce_matches is False else LEASE_ROLE[lease.state]
    age = figures.age(lease.unchanged_s) if lease.unchanged_s is not None else lease.state.value
    pen.add(f"{glyphs.LEASE[lease.state]} {age}", role, width=width)


def _draw_tries(pen: Pen, row: Entry, width: int) -> None:
    trial = row.trial
    if trial is None or trial.attempts_used is None:
        pen.gap(width)
        return
    allowed = trial.attempts_allowed
    last = allowed is not None and trial.attempts_used >= allowed > 1
    text = f"{trial.attempts_used}/{allowed if allowed is not None else figures.MISSING}"
    pen.add(text, Role.WARN if last else Role.TEXT, width=width, right=True)


def _draw_loss(pen: Pen, row: Entry, width: int) -> None:
    trial = row.trial
    if trial is None or trial.loss is None:
        _missing(pen, width, right=True)
    else:
        pen.add(f"{trial.loss:.4g}", width=width, right=True)


def _draw_bound(pen: Pen, row: Entry, width: int) -> None:
    study = row.study
    if not row.first:
        pen.gap(width)
    elif study.bound is None:
        _missing(pen, width, right=True)
    else:
        # What can cost nothing more is no longer committed: it is there, and quiet.
        pen.add(figures.money(study.bound), Role.DIM if study.settled else Role.TEXT, width=width, right=True)
