"""The columns of the studies as they are drawn: each one's title and cells, and which of them there is room for."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kevtui import format as figures
from kevtui import glyphs
from kevtui.columns import EVERY, LONGEST_FIRST
from kevtui.observe.snapshot import Lease, TrialState
from kevtui.widgets.line import Line, Pen, Role
from kevtui.widgets.painting import View
from kevtui.widgets.state import LEASE_ROLE
from kevtui.widgets.trial_rows import Entry, rate_of, share_of


class Column(NamedTuple):
    title: str
    width: int
    draw: Callable[[Pen, Entry, int], object]
    right: bool = False


Fitted = list[tuple[Column, int]]
"""Columns with their widths."""

_GAP = 2


def fit(rows: list[Entry], view: View, wanted: Sequence[str] = EVERY) -> Fitted:
    """Those of the `wanted` columns that there is room for, in that order; what is over goes to the finish column."""
    columns = _columns(rows, view)
    kept: set[str] = set()
    left = view.width - (1 if view.narrow else 0)
    for name in sorted(wanted, key=LONGEST_FIRST.index):
        if columns[name].width + 1 > left and kept:
            break
        kept.add(name)
        left -= columns[name].width + _GAP
    more = max(0, min(left, 24))
    return [(columns[name], columns[name].width + (more if name == "finish" else 0)) for name in wanted if name in kept]


def _columns(rows: list[Entry], view: View) -> dict[str, Column]:
    longest = max((len(row.name) for row in rows), default=10)
    name = max(8, min(longest, max(12, view.width // 4)))
    return {
        "trial": Column("trial", name, _draw_name),
        "state": Column("state", 13, _draw_state),
        "step": Column("step", 11, _draw_step, right=True),
        "progress": Column("", 10, _draw_track),
        "rate": Column("rate", 9, _draw_rate, right=True),
        "trend": Column("trend", 8, _draw_spark),
        "finish": Column("finish / timeout", _finish_width(rows, view), _draw_finish),
        "log": Column("log", 6, _draw_log_age, right=True),
        "lease": Column("lease", _lease_width(rows), _draw_lease),
        "tries": Column("try", 3, _draw_tries, right=True),
        "loss": Column("loss", 6, _draw_loss, right=True),
        "bound": Column("bound ≤", 9, _draw_bound, right=True),
    }


def _finish_width(rows: list[Entry], view: View) -> int:
    """Room for the longest remark, on a screen that has it."""
    if view.width < 100:
        return 16
    return max(16, min(30, max((len(row.trial.note) for row in rows if row.trial), default=0)))


def heading(columns: Fitted, view: View) -> Line:
    pen = view.pen().gap(1 if view.narrow else 0)
    for column, width in columns:
        title = f"{column.title} UTC" if column.draw is _draw_finish and width >= 20 else column.title
        pen.add(title, Role.DIM, width=width, right=column.right).gap(_GAP)
    return pen.line()


def draw(row: Entry, columns: Fitted, view: View) -> Line:
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
        pen.add(figures.ending(projection.finish_at, projection.remaining_s), Role.WARN if past else Role.TEXT)
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


def _lease_width(rows: list[Entry]) -> int:
    """Room for ages, and for the words that stand where no age is known."""
    ageless = [row.lease for row in rows if row.lease is not None and row.lease.unchanged_s is None]
    return max(8, *(len(_lease_words(lease)) for lease in ageless), 0)


def _lease_words(lease: Lease) -> str:
    age = figures.age(lease.unchanged_s) if lease.unchanged_s is not None else lease.state.value
    return f"{glyphs.LEASE[lease.state]} {age}"


def _draw_lease(pen: Pen, row: Entry, width: int) -> None:
    lease = row.lease
    if lease is None:
        pen.gap(width)
    else:
        role = Role.BAD if lease.nonce_matches is False else LEASE_ROLE[lease.state]
        pen.add(_lease_words(lease), role, width=width)


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
